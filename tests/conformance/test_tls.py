"""Client libraries over TLS: what they send arrives, and what is wrong they and the log name."""

import logging
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest
from cryptography.x509 import load_pem_x509_certificate
from tests.conformance.brokers import is_peer_installed, run_peer
from tests.conformance.tls_clients import LIBRARIES, Connection, ConnectionFailed, RoundTrip
from tests.tls_certificates import PASSWORD, Authority, castle_authority, has_keytool
from tests.wait import wait_until

from barnabas import KafkaException
from barnabas.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from barnabas.testing import Broker
from barnabas.testing.ports import free_port

TOPIC = "orders"
every_library = pytest.mark.parametrize("round_trip", LIBRARIES.values(), ids=LIBRARIES)


def tls_settings(folder: Path, **changes: object) -> dict[str, object]:
    """Returns the settings of a broker whose listeners have TLS."""
    authority = castle_authority()
    return {
        "listener.security.protocol.map": "PLAINTEXT:SSL,CONTROLLER:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.issue("CN=broker").write_pem(folder, "broker"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.write_pem(folder),
        # Nodes verify host names too, and some certificates here are for other hosts.
        "ssl.endpoint.identification.algorithm": "",
        **{name.replace("_", "."): value for name, value in changes.items()},
    }


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def strict_broker(files: Path) -> Iterator[Broker]:
    """A broker that requires certificates of its clients."""
    with Broker(tls_settings(files, ssl_client_auth="required")) as broker:
        yield broker


@pytest.fixture(scope="module")
def connection(files: Path, strict_broker: Broker) -> Connection:
    """A client that is right in everything."""
    return Connection(
        strict_broker.bootstrap_servers,
        castle_authority().write_pem(files),
        castle_authority().issue("CN=client", ()).write_pem(files, "client"),
    )


@every_library
def test_records_arrive(round_trip: RoundTrip, connection: Connection) -> None:
    topic = f"{TOPIC}-{list(LIBRARIES.values()).index(round_trip)}"
    assert round_trip(connection, topic, b"over TLS") == b"over TLS"


@every_library
@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("plain", "it sent plain text, and the listener expects TLS"),
        ("unknown authority", "not trust the certificate of this listener"),
        ("no certificate", "it sent no certificate, and ssl.client.auth is required"),
        ("untrusted certificate", "its certificate is signed by an unknown authority"),
        ("expired certificate", "its certificate has expired"),
    ],
)
def test_a_client_that_is_wrong_gets_an_error_and_a_log_line(
    round_trip: RoundTrip,
    change: str,
    line: str,
    connection: Connection,
    files: Path,
    caplog: pytest.LogCaptureFixture,
    strict_broker: Broker,
) -> None:
    strict_broker.restart()  # each failure is logged once a minute
    changes = {
        "plain": {"is_plain": True},
        "unknown authority": {"ca": Authority("CN=Other").write_pem(files, "other")},
        "no certificate": {"certificate": None},
        "untrusted certificate": {
            "certificate": Authority("CN=Other").issue("CN=x", ()).write_pem(files, "stranger")
        },
        "expired certificate": {
            "certificate": castle_authority().issue("CN=x", (), days=-1).write_pem(files, "old")
        },
    }
    with caplog.at_level(logging.WARNING), pytest.raises(ConnectionFailed):
        round_trip(connection.with_changes(**changes[change]), TOPIC, b"never")
    wait_until(lambda: line in caplog.text, line)


@pytest.fixture(scope="module", params=["expired", "other host"])
def wrong_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """A broker that no client should trust. Nodes connect to its plain listener."""
    folder = tmp_path_factory.mktemp("wrong")
    is_expired = request.param == "expired"
    hosts = ("127.0.0.1",) if is_expired else ("castle.example",)
    issued = castle_authority().issue("CN=broker", hosts, days=-1 if is_expired else 1)
    settings = tls_settings(folder, ssl_keystore_location=issued.write_pem(folder, "wrong"))
    settings |= {
        "listeners": f"SECURE://127.0.0.1:{free_port()},PLAINTEXT://127.0.0.1:{free_port()},"
        f"CONTROLLER://127.0.0.1:{(controller := free_port())}",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SSL,CONTROLLER:PLAINTEXT",
    }
    with Broker(settings) as broker:
        yield broker


@every_library
def test_a_client_does_not_send_to_a_broker_that_it_cannot_trust(
    round_trip: RoundTrip, connection: Connection, wrong_broker: Broker
) -> None:
    with pytest.raises(ConnectionFailed):
        round_trip(connection.with_changes(bootstrap=wrong_broker.bootstrap_servers), TOPIC, b"x")


@every_library
def test_a_client_of_a_plain_listener_that_expects_tls_gets_an_error(
    round_trip: RoundTrip, connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    with Broker() as plain:
        wrong = connection.with_changes(bootstrap=plain.bootstrap_servers)
        with pytest.raises(ConnectionFailed):
            round_trip(wrong, TOPIC, b"never")
    assert "the client speaks TLS, and the listener is PLAINTEXT" in caplog.text


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_our_client_uses_the_stores_of_java(
    kind: str, connection: Connection, tmp_path: Path
) -> None:
    stores = java_stores(kind, tmp_path)
    with_stores = connection.with_changes(stores=tuple(stores.items()))
    assert LIBRARIES["barnabas"](with_stores, f"{TOPIC}-{kind}", b"stores") == b"stores"


def java_stores(kind: str, folder: Path) -> dict[str, str]:
    """Returns the settings of a client's stores in one of Java's formats."""
    if kind == "JKS" and not has_keytool():
        pytest.skip("needs Java's keytool")
    authority, issued = castle_authority(), castle_authority().issue("CN=client", ())
    is_jks = kind == "JKS"
    keys = issued.write_jks(folder, "keys") if is_jks else issued.write_pkcs12(folder, "keys")
    trust = authority.write_jks(folder) if is_jks else authority.write_pkcs12(folder)
    return {
        "ssl.keystore.type": kind,
        "ssl.keystore.location": keys,
        "ssl.keystore.password": PASSWORD,
        "ssl.truststore.type": kind,
        "ssl.truststore.location": trust,
        "ssl.truststore.password": PASSWORD,
    }


@pytest.mark.peer
@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_the_java_client_produces_and_consumes(
    kind: str, strict_broker: Broker, tmp_path: Path
) -> None:
    if not is_peer_installed():
        pytest.skip("the real Kafka is not installed: set PEERS to the folder of its script")
    properties = tmp_path / "client.properties"
    lines = {"security.protocol": "SSL", **java_stores(kind, tmp_path)}
    properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
    bootstrap = ("--bootstrap-server", strict_broker.bootstrap_servers, "--topic", f"java-{kind}")
    command_config = ("--command-config", str(properties))
    run_peer("tool", "console-producer", *bootstrap, *command_config, stdin="over TLS\n")
    printed = run_peer(
        *("tool", "console-consumer", *bootstrap, *command_config),
        *("--from-beginning", "--max-messages", "1", "--timeout-ms", "30000"),
    )
    assert printed.strip() == "over TLS"


# Certificates at run time


def alter_broker(admin: AdminClient, **settings: str) -> None:
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in settings.items()
    ]
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=entries)
    (future,) = admin.incremental_alter_configs([resource]).values()
    future.result(30)


def serial_number(bootstrap: str) -> int:
    """Returns the serial number of the certificate that new connections get."""
    host, _, port = bootstrap.partition(":")
    pem = ssl.get_server_certificate((host, int(port)))
    return load_pem_x509_certificate(pem.encode()).serial_number


def test_certificates_rotate_under_load_without_a_lost_record_or_connection(
    tmp_path: Path,
) -> None:
    with Broker(tls_settings(tmp_path)) as broker:
        settings = Connection(broker.bootstrap_servers, str(tmp_path / "ca.pem"))
        connects: list[str] = []
        producer = confluent_kafka.Producer(
            settings.librdkafka_settings
            | {"error_cb": lambda error: connects.append(str(error)), "linger.ms": 1}
        )
        delivered: list[int] = []
        is_done = threading.Event()

        def produce() -> None:
            number = 0
            while not is_done.is_set():
                producer.produce(
                    TOPIC,
                    number.to_bytes(4),
                    on_delivery=lambda error, message: delivered.append(
                        -1 if error else int.from_bytes(message.value())
                    ),
                )
                number += 1
                producer.poll(0.001)

        load = threading.Thread(target=produce)
        load.start()
        admin = AdminClient(settings.librdkafka_settings)
        location = "listener.name.plaintext.ssl.keystore.location"
        try:
            for _ in range(5):
                issued = castle_authority().issue("CN=broker")
                path = issued.write_pem(tmp_path, "broker")
                count = len(delivered)
                alter_broker(admin, **{location: path})
                expected = issued.certificate.serial_number
                wait_until(lambda: serial_number(broker.bootstrap_servers) == expected)  # noqa: B023
                wait_until(lambda: len(delivered) > count + 50)  # noqa: B023
            other = castle_authority().issue("CN=other").write_pem(tmp_path, "other")
            with pytest.raises(KafkaException, match="is for CN=other and was for CN=broker"):
                alter_broker(admin, **{location: other})
            with pytest.raises(KafkaException, match="cannot be read"):
                alter_broker(admin, **{location: str(tmp_path / "missing.pem")})
        finally:
            is_done.set()
            load.join()
            assert producer.flush(30) == 0
        assert serial_number(broker.bootstrap_servers) == expected
        assert delivered == list(range(len(delivered)))
        assert connects == []
