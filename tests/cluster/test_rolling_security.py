"""A cluster changes from PLAINTEXT to SASL_SSL without downtime, as docs/security.md describes.

The methods of `RollingChange` are the steps on the page. Producers and consumers run all the time.
"""

import contextlib
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import Consumer
from tests.cluster.cluster import Cluster
from tests.cluster.node import BARNABAS, ProcessNode
from tests.cluster.numbered_records import NumberedWriter, read_numbers
from tests.cluster.security import (
    ADMIN,
    NODE,
    connect_over_tls,
    jaas,
    login_of,
    password_of,
    write_properties,
)
from tests.tls_certificates import Authority
from tests.wait import wait_until

from barnabas.testing.requests import connect

TOPIC, GROUP, PARTITIONS = "orders", "billing", 3
APPLICATION = "shop"
MECHANISM = "SCRAM-SHA-512"
TIMEOUT_S = 10
MAX_GAP_MS = 15_000
"""A record that is not acknowledged within this time fails the test; a clean restart is shorter."""

Settings = dict[str, str]


class RollingChange:
    """Three nodes, whose server.properties change step by step."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cluster = Cluster.combined(directory, [BARNABAS] * 3)
        self._ports = {
            node: {
                "PLAINTEXT": node.port,
                "SASL_SSL": node.port + 1,
                "CONTROLLER": node.controller_port,
                "SECURE_CONTROLLER": node.controller_port + 1,
            }
            for node in self.cluster.nodes.values()
        }
        self._settings = self.cluster.settings | {
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "controller.quorum.bootstrap.servers": self.addresses("CONTROLLER"),
        }
        self._listeners = ["PLAINTEXT", "CONTROLLER"]
        self._admin_file = directory / "admin.properties"
        authority = Authority()
        self._authority_file = authority.write_pem(directory)
        self._key_store = authority.issue("CN=node").write_pem(directory, "node")

    def __enter__(self) -> Self:
        self.cluster.format()
        for node in self.cluster.nodes.values():
            self._configure(node)
        self.cluster.__enter__()
        return self

    def __exit__(self, *failure: object) -> None:
        self.cluster.__exit__(*failure)  # type: ignore[arg-type]

    def addresses(self, listener: str) -> str:
        return ",".join(f"127.0.0.1:{ports[listener]}" for ports in self._ports.values())

    def client_settings(self, user: str) -> Settings:
        return {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": self._authority_file,
            "sasl.mechanism": MECHANISM,
            "sasl.username": user,
            "sasl.password": password_of(user),
        }

    def has_listener(self, name: str) -> bool:
        """Whether any node still accepts connections there."""
        for ports in self._ports.values():
            with contextlib.suppress(ConnectionRefusedError), connect(ports[name], TIMEOUT_S):
                return True
        return False

    # The steps

    def add_secured_listeners(self) -> None:
        users = self.directory / "node.users"
        users.write_text(f"{NODE}:{password_of(NODE)}\n")
        self._listeners = ["PLAINTEXT", "CONTROLLER", "SASL_SSL", "SECURE_CONTROLLER"]
        self._settings |= {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
            "SASL_SSL:SASL_SSL,SECURE_CONTROLLER:SASL_SSL",
            "controller.listener.names": "CONTROLLER,SECURE_CONTROLLER",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self._key_store,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self._authority_file,
            "sasl.enabled.mechanisms": MECHANISM,
            "listener.name.secure_controller.sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": MECHANISM,
            "sasl.mechanism.controller.protocol": "PLAIN",
            "barnabas.sasl.users.file": str(users),
            "barnabas.sasl.username": NODE,
            "barnabas.sasl.password": password_of(NODE),
        }
        self._restart_one_by_one()
        wait_until(self._voters_have_both_listeners, "all voters have both listeners")

    def create_users(self) -> None:
        for user in (NODE, ADMIN, APPLICATION):
            self._run(
                *("kafka-configs", "--bootstrap-server", self.addresses("PLAINTEXT"), "--alter"),
                *("--add-config", f"{MECHANISM}=[password={password_of(user)}]"),
                *("--entity-type", "users", "--entity-name", user),
            )

    def connect_nodes_by_secured_listeners(self) -> None:
        self._settings |= {
            "inter.broker.listener.name": "SASL_SSL",
            "controller.listener.names": "SECURE_CONTROLLER,CONTROLLER",
            "controller.quorum.bootstrap.servers": self.addresses("SECURE_CONTROLLER"),
        }
        self._restart_one_by_one()

    def turn_on_the_authorizer(self) -> None:
        self._settings |= {
            "authorizer.class.name": "acl",
            "super.users": f"User:{NODE};User:{ADMIN}",
            "allow.everyone.if.no.acl.found": "true",
        }
        self._restart_one_by_one()

    def add_acls(self) -> None:
        write_properties(
            self._admin_file,
            {
                "security.protocol": "SASL_SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self._authority_file,
                "sasl.mechanism": MECHANISM,
                "sasl.jaas.config": jaas(MECHANISM, ADMIN),
            },
        )
        self._run(
            *("kafka-acls", "--bootstrap-server", self.addresses("SASL_SSL")),
            *("--command-config", str(self._admin_file), "--add"),
            *("--allow-principal", f"User:{APPLICATION}", "--topic", TOPIC),
            *("--producer", "--consumer", "--group", GROUP),
        )

    def remove_plaintext(self) -> None:
        self._listeners = ["SASL_SSL", "SECURE_CONTROLLER"]
        self._settings |= {
            "listener.security.protocol.map": "SASL_SSL:SASL_SSL,SECURE_CONTROLLER:SASL_SSL",
            "controller.listener.names": "SECURE_CONTROLLER",
            "allow.everyone.if.no.acl.found": "false",
        }
        self._watch_secured_listeners()
        self._restart_one_by_one()

    # How

    def _restart_one_by_one(self) -> None:
        """Waits after each restart until all replicas are in sync again."""
        for node in self.cluster.nodes.values():
            self.cluster.stop_node(node)
            self._configure(node)
            self.cluster.start_node(node)
            self.cluster.wait_until_ready()
            self.cluster.wait_until_in_sync()

    def _configure(self, node: ProcessNode) -> None:
        ports = self._ports[node]
        listeners = ",".join(f"{name}://127.0.0.1:{ports[name]}" for name in self._listeners)
        default_map = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"}
        addresses = {"listeners": listeners, "advertised.listeners": listeners}
        node.configure(default_map | addresses | self._settings)

    def _watch_secured_listeners(self) -> None:
        """From now on the state of the cluster is read from the secured listeners."""
        for node, ports in self._ports.items():
            node.port = ports["SASL_SSL"]
        self.cluster.connect = connect_over_tls(self._authority_file, login_of(ADMIN, MECHANISM))

    def _voters_have_both_listeners(self) -> bool:
        described = self._run(
            *("kafka-metadata-quorum", "--bootstrap-server", self.addresses("PLAINTEXT")),
            *("describe", "--status"),
        )
        (voters,) = (line for line in described.splitlines() if "CurrentVoters" in line)
        return voters.count("SECURE_CONTROLLER://") == len(self.cluster.nodes)

    def _run(self, command: str, *arguments: str) -> str:
        done = subprocess.run(
            [Path(sys.executable).parent / command, *arguments], capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout


class GroupReader(threading.Thread):
    """A consumer of the group, which reads until `stop`."""

    def __init__(self, connection: Mapping[str, str]) -> None:
        super().__init__(daemon=True)
        self.offsets: set[tuple[int, int]] = set()
        self.failure: str | None = None
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                **connection,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "log_level": 0,
            }
        )

    def run(self) -> None:
        self._consumer.subscribe([TOPIC])
        while not self._stopping.is_set():
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            if error := message.error():
                if not error.retriable():
                    self.failure = self.failure or str(error)
                continue
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self.offsets.add((partition, offset))
        self._consumer.close()

    def stop(self) -> None:
        self._stopping.set()
        self.join()
        assert self.failure is None, self.failure


def start_writer(bootstrap: str, settings: Settings | None = None) -> NumberedWriter:
    limited = {"delivery.timeout.ms": MAX_GAP_MS, "request.timeout.ms": 5_000}
    writer = NumberedWriter(
        *(bootstrap, TOPIC, PARTITIONS),
        record_bytes=100,
        pause_s=0.01,
        settings=limited | (settings or {}),
    )
    writer.start()
    return writer


def without_repeats(numbers: list[int]) -> list[int]:
    """Returns the numbers without those that librdkafka has sent again in a new producer epoch.

    It begins one if the new leader rejects a request, because it does not lead yet, but takes the
    next one, whose sequence is then out of order. What it resends may be in the log already.
    """
    return list(dict.fromkeys(numbers))


@pytest.mark.timeout(300)
def test_a_cluster_changes_to_sasl_ssl_while_clients_write_and_read(tmp_path: Path) -> None:
    with RollingChange(tmp_path) as change:
        change.cluster.create_topic(TOPIC, PARTITIONS)
        before = start_writer(change.addresses("PLAINTEXT"))
        reading = GroupReader({"bootstrap.servers": change.addresses("PLAINTEXT")})
        reading.start()

        change.add_secured_listeners()
        change.create_users()
        change.connect_nodes_by_secured_listeners()
        change.turn_on_the_authorizer()

        application = change.client_settings(APPLICATION)
        before.stop()
        after = start_writer(change.addresses("SASL_SSL"), application)
        reading.stop()
        secured = {"bootstrap.servers": change.addresses("SASL_SSL"), **application}
        still_reading = GroupReader(secured)
        still_reading.start()

        change.add_acls()
        change.remove_plaintext()

        after.stop()
        assert not change.has_listener("PLAINTEXT")
        assert not change.has_listener("CONTROLLER")
        everything = 0
        for partition in range(PARTITIONS):
            numbers = read_numbers(
                change.addresses("SASL_SSL"), TOPIC, partition, change.client_settings(ADMIN)
            )
            everything += len(numbers)
            for writer in (before, after):
                for offset, number in writer.acknowledged.numbers[partition].items():
                    assert numbers[offset] == number
            second = numbers.index(0, 1)
            first = without_repeats(numbers[:second])
            assert first == [*range(len(before.acknowledged.numbers[partition]))]
            rest = without_repeats(numbers[second:])
            assert rest == [*range(len(rest))]
        wait_until(
            lambda: len(reading.offsets | still_reading.offsets) == everything,
            "the group has read every record",
        )
        still_reading.stop()
