"""What `barnabas up` is asked to run, and the ports that nobody chose."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.local_ports import any_free_port, next_free_port
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.cli.local_security import LocalSecurity

DEFAULT_METRICS_PORT = 9308
METRICS_LISTENER = "barnabas.metrics.listener"
LOG_FILE = "server.log"
"""In the log directory of a node. Brokers look only at the folders there, Kafka's included."""


@dataclass(slots=True, frozen=True)
class UpOptions:
    host: str
    """As in a URL: an IPv6 address is in brackets."""
    port: int
    directory: Path
    brokers: int
    metrics_port: int | None
    """None if it is not chosen."""
    has_metrics: bool
    is_verbose: bool
    overrides: dict[str, str]
    reserved_ports: tuple[int, ...] = ()
    """Ports of what runs beside the brokers, which must not be chosen for them."""
    security: "LocalSecurity | None" = None
    """None if clients connect without TLS and without a login."""

    @property
    def log_dir_of_one(self) -> Path:
        """The log directory of a single broker. Kafka's allows no other folders in it."""
        return self.directory if self.security is None else self.directory / "1"

    @property
    def client_file(self) -> Path | None:
        """The settings that clients need; None if they need none."""
        return self.security.client_file if self.security is not None else None

    @property
    def registry_file(self) -> Path | None:
        """The settings of the schema registry's listener; None for plain HTTP."""
        return self.security.registry_file if self.security is not None else None

    def client_settings(self) -> dict[str, str]:
        """Returns the settings with which this process connects."""
        return self.security.client_settings() if self.security is not None else {}

    def scram_users(self) -> list[Message]:
        """Returns the records of the first users."""
        return self.security.scram_users() if self.security is not None else []

    def node_properties(self, properties: dict[str, str]) -> dict[str, str]:
        """Returns the properties of a node with the security and the settings of the user."""
        if self.security is not None:
            properties = self.security.secured(properties)
        return properties | self.overrides

    def metrics_listeners(self, count: int, reserved: Sequence[int] = ()) -> list[str]:
        """Returns the addresses of the metrics of `count` brokers; empty if there are none.

        Ports that the user chose are taken as they are. Others are free now, and on loopback.
        """
        if not self.has_metrics or METRICS_LISTENER in self.overrides:
            return []
        if self.metrics_port:
            return [f"{self.host}:{self.metrics_port + number}" for number in range(count)]
        host = "localhost" if self.metrics_port is None else self.host
        first = DEFAULT_METRICS_PORT if self.metrics_port is None and self.port else 0
        ports: list[int] = []
        for _ in range(count):
            taken = (*self.reserved_ports, *reserved, *ports)
            ports.append(
                next_free_port(host, first, taken)
                if first
                else any_free_port(host.strip("[]"), taken)
            )
        return [f"{host}:{port}" for port in ports]
