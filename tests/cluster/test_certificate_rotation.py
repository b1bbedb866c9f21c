"""The certificates of a cluster are replaced while clients write, also those of the authority.

The order is that of docs/security.md: all trust both authorities, then the nodes get certificates
of the new one, then nobody trusts the old one.
"""

import socket
import ssl
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cluster.cluster import Cluster
from tests.cluster.node import BARNABAS, ProcessNode
from tests.cluster.numbered_records import NumberedWriter, read_numbers
from tests.cluster.security import NODE_HOSTS, ClusterSecurity
from tests.tls_certificates import Authority
from tests.wait import wait_until

from barnabas.testing.requests import METADATA_VERSION, exchange
from barnabas.wire.messages.metadata import MetadataRequest

TOPIC, PARTITIONS = "orders", 3
LISTENERS = ("client", "broker", "controller")
TIMEOUT_S = 10
GOAL = 50
"""Records that are acknowledged after each step before the next one begins."""


def reload_stores(cluster: Cluster, store: str, file: str) -> None:
    """Sets the location of a store again, with the same value, on each node."""
    assert cluster.security
    settings = [f"listener.name.{name}.ssl.{store}.location={file}" for name in LISTENERS]
    for node_id in cluster.nodes:
        done = subprocess.run(
            [
                *(Path(sys.executable).parent / "kafka-configs", "--alter"),
                *("--bootstrap-server", cluster.bootstrap_servers),
                *("--command-config", str(cluster.security.command_config())),
                *("--entity-type", "brokers", "--entity-name", str(node_id)),
                *("--add-config", ",".join(settings)),
            ],
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def is_trusted(node: ProcessNode, authority: Authority) -> bool:
    """Whether a client that trusts only this authority connects to each listener of the node."""
    context = ssl.create_default_context(cadata=authority.pem)
    for port in (node.port, node.broker_port, node.controller_port):
        with socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S) as plain:
            try:
                context.wrap_socket(plain, server_hostname="127.0.0.1").close()
            except ssl.SSLCertVerificationError:
                return False
    return True


def write_more(writer: NumberedWriter) -> None:
    goal = writer.acknowledged.total + GOAL
    wait_until(
        lambda: writer.failure or writer.acknowledged.total >= goal, "more is acknowledged", 30
    )
    assert writer.failure is None, writer.failure


@pytest.mark.timeout(200)
def test_certificates_and_their_authority_are_replaced_under_load(tmp_path: Path) -> None:
    old, new = Authority("CN=Old CA"), Authority("CN=New CA")
    security = ClusterSecurity(tmp_path / "security", authority=old)
    trust_store, key_store = Path(security.authority_file), Path(security.key_store)
    with (
        Cluster.combined(tmp_path, [BARNABAS] * 3, security=security) as cluster,
        ExitStack() as stack,
    ):
        cluster.create_topic(TOPIC, PARTITIONS)
        connect = security.connect_as()
        connected = [stack.enter_context(connect(node.port, TIMEOUT_S)) for node in cluster.brokers]
        clients = security.client_settings()
        both = tmp_path / "both.pem"
        both.write_text(old.pem + new.pem)
        writer = NumberedWriter(
            *(cluster.bootstrap_servers, TOPIC, PARTITIONS),
            record_bytes=100,
            pause_s=0.005,
            settings=clients | {"ssl.ca.location": str(both)},
        )
        writer.start()
        write_more(writer)

        trust_store.write_text(old.pem + new.pem)
        reload_stores(cluster, "truststore", str(trust_store))
        write_more(writer)

        new.issue("CN=node", NODE_HOSTS).write_pem(key_store.parent, key_store.stem)
        reload_stores(cluster, "keystore", str(key_store))
        for node in cluster.nodes.values():
            wait_until(lambda node=node: is_trusted(node, new), "the new certificate is served")
            assert not is_trusted(node, old)
        write_more(writer)

        trust_store.write_text(new.pem)
        reload_stores(cluster, "truststore", str(trust_store))
        write_more(writer)

        for connection in connected:
            assert exchange(connection, MetadataRequest(topics=None), METADATA_VERSION).brokers
        security.authority = new
        cluster.connect = security.connect_as()
        cluster.stop_node(cluster.nodes[1])  # so that it and the others connect again
        cluster.start_node(cluster.nodes[1])
        cluster.wait_until_ready()
        cluster.wait_until_in_sync()
        writer.stop()
        for partition, numbers in writer.acknowledged.numbers.items():
            found = read_numbers(cluster.bootstrap_servers, TOPIC, partition, clients)
            assert found == list(range(len(found)))
            assert all(found[offset] == number for offset, number in numbers.items())
