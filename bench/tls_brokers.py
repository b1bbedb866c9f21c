"""The brokers under test with a second listener, for TLS 1.3.

The other sections use brokers without it, so that it costs them nothing.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.tls_certificates import castle_authority

from bench.brokers import Barnabas, BrokerUnderTest, Kafka

_PORT_DISTANCE = 5
"""From the port of a broker to that of its twin with TLS."""


class _TlsListener(BrokerUnderTest):
    """Kafka's tools connect to the TLS listener; everything else to the plain one."""

    def __init__(self, directory: Path, port: int, *, scale: float) -> None:
        self._settings = _listener_settings(directory, port)
        self.secure_address = ("127.0.0.1", port + 2)
        self._client_file = directory / "client.properties"
        self._client_file.write_text(
            "security.protocol=SSL\n"
            "ssl.enabled.protocols=TLSv1.3\n"
            "ssl.truststore.type=PEM\n"
            f"ssl.truststore.location={directory / 'ca.pem'}\n"
        )
        self.authority_file = str(directory / "ca.pem")
        super().__init__(directory, port, scale=scale)

    def commands(self) -> tuple[str, str]:
        start, stop = super().commands()
        options = " ".join(f"--set {name}={value}" for name, value in self._settings.items())
        return f"{start} {options}", stop

    def tool(self, name: str, *arguments: str, **flags: Any) -> list[str]:
        plain, self.bootstrap = self.bootstrap, "{}:{}".format(*self.secure_address)
        try:
            lines: list[str] = super().tool(
                name, *arguments, command_config=str(self._client_file), **flags
            )
        finally:
            self.bootstrap = plain
        return lines


class TlsKafka(_TlsListener, Kafka):
    """Kafka with TLS."""


class TlsBarnabas(_TlsListener, Barnabas):
    """Barnabas with TLS."""


_TWINS: dict[type[BrokerUnderTest], type[_TlsListener]] = {Kafka: TlsKafka, Barnabas: TlsBarnabas}


@contextlib.contextmanager
def tls_broker(broker: BrokerUnderTest) -> Iterator[_TlsListener]:
    """Runs a broker of the same kind with a TLS listener."""
    directory = broker.directory.parent / f"{broker.name.lower()}-tls"
    directory.mkdir(exist_ok=True)
    twin = _TWINS[type(broker)](directory, broker.port + _PORT_DISTANCE, scale=broker.options.scale)
    twin.start()
    try:
        yield twin
    finally:
        twin.stop()


def _listener_settings(directory: Path, port: int) -> dict[str, str]:
    authority = castle_authority()
    listeners = {"PLAINTEXT": port, "CONTROLLER": port + 1, "SSL": port + 2}
    return {
        "listeners": ",".join(f"{name}://127.0.0.1:{at}" for name, at in listeners.items()),
        "advertised.listeners": ",".join(
            f"{name}://127.0.0.1:{at}" for name, at in listeners.items() if name != "CONTROLLER"
        ),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.issue("CN=broker").write_pem(directory, "broker"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.write_pem(directory),
        "ssl.enabled.protocols": "TLSv1.3",
    }
