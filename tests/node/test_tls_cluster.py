"""Three nodes, each broker and controller, with TLS and client certificates on all listeners."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from tests.server.harness import on_a_loop
from tests.tls_certificates import castle_authority
from tests.wait import async_wait_until

from barnabas.admin import NewTopic
from barnabas.aio import AdminClient, Consumer, Producer
from barnabas.config import BrokerSettings, ConfigOperation, ConfigResourceType
from barnabas.node import Node
from barnabas.node.format import QuorumBootstrap, format_storage
from barnabas.testing.ports import free_port
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)

NODES = (1, 2, 3)


class TlsCluster:
    """The settings of three nodes, and the nodes that run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = {node_id: (free_port(), free_port(), free_port()) for node_id in NODES}
        authority = castle_authority()
        self.ca = authority.write_pem(folder)
        self.client = authority.issue("CN=client", ()).write_pem(folder, "client")
        self.nodes: dict[int, Node] = {}

    def settings(self, node_id: int) -> BrokerSettings:
        client, broker, controller = self._ports[node_id]
        issued = castle_authority().issue(f"CN=node-{node_id}")
        return BrokerSettings.from_properties(
            {
                "process.roles": "broker,controller",
                "node.id": str(node_id),
                "listeners": f"CLIENT://127.0.0.1:{client},BROKER://127.0.0.1:{broker},"
                f"CONTROLLER://127.0.0.1:{controller}",
                "listener.security.protocol.map": "CLIENT:SSL,BROKER:SSL,CONTROLLER:SSL",
                "controller.listener.names": "CONTROLLER",
                "inter.broker.listener.name": "BROKER",
                "controller.quorum.voters": ",".join(
                    f"{voter}@127.0.0.1:{ports[2]}" for voter, ports in self._ports.items()
                ),
                "log.dirs": str(self._folder / str(node_id)),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": issued.write_pem(self._folder, f"node-{node_id}"),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self.ca,
                "ssl.client.auth": "required",
                "offsets.topic.num.partitions": "1",
                "group.initial.rebalance.delay.ms": "0",
            }
        )

    async def start(self) -> None:
        for node_id in NODES:
            format_storage(
                self.settings(node_id),
                cluster_id="castle",
                quorum=QuorumBootstrap.FROM_SETTINGS,
            )
        await asyncio.gather(*(self.start_node(node_id) for node_id in NODES))

    async def start_node(self, node_id: int) -> None:
        self.nodes[node_id] = await Node.start(self.settings(node_id))

    async def stop_node(self, node_id: int) -> None:
        await self.nodes.pop(node_id).stop()

    @property
    def client_settings(self) -> dict[str, str]:
        return {
            "bootstrap.servers": ",".join(f"127.0.0.1:{self._ports[node][0]}" for node in NODES),
            "security.protocol": "SSL",
            "ssl.ca.location": self.ca,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.client,
        }


@asynccontextmanager
async def running_cluster(folder: Path) -> AsyncIterator[TlsCluster]:
    cluster = TlsCluster(folder)
    await cluster.start()
    try:
        yield cluster
    finally:
        await asyncio.gather(*(node.stop() for node in cluster.nodes.values()))


@on_a_loop
async def test_nodes_replicate_and_elect_leaders_over_tls(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_cluster(tmp_path) as cluster:
        async with AdminClient(cluster.client_settings) as admin:
            await admin.create_topics([NewTopic("orders", 1, 3)])
        async with Producer(cluster.client_settings) as producer:
            await (await producer.produce("orders", b"first"))
            leader = leader_of(cluster, "orders")
            await cluster.stop_node(leader)
            await (await producer.produce("orders", b"second"))
            await cluster.start_node(leader)
            await async_wait_until(
                lambda: in_sync(cluster, "orders") == set(NODES), "the node is in sync again"
            )
        consumer = Consumer(
            {**cluster.client_settings, "group.id": "g", "auto.offset.reset": "earliest"}
        )
        await consumer.subscribe(["orders"])
        values: list[bytes] = []
        async with asyncio.timeout(30):
            while len(values) < 2:
                message = await consumer.poll(1.0)
                if message is not None and message.error() is None:
                    values.append(message.value())
        await consumer.close()
    assert values == [b"first", b"second"]
    # A node that stops may leave a handshake unfinished.
    assert [
        line for line in caplog.messages if "TLS" in line and "it disconnected" not in line
    ] == []


def leader_of(cluster: TlsCluster, topic: str) -> int:
    image = next(iter(cluster.nodes.values())).metadata.image
    registered = image.topics.by_name(topic)
    assert registered is not None
    return int(registered.partitions[0].leader)


def in_sync(cluster: TlsCluster, topic: str) -> set[int]:
    image = next(iter(cluster.nodes.values())).metadata.image
    registered = image.topics.by_name(topic)
    assert registered is not None
    return set(registered.partitions[0].isr)


@on_a_loop
async def test_a_controller_starts_with_the_certificate_of_its_dynamic_settings(
    tmp_path: Path,
) -> None:
    port, authority = free_port(), castle_authority()
    name = "listener.name.controller.ssl.keystore.location"
    path = authority.issue("CN=controller").write_pem(tmp_path, "second")
    settings = BrokerSettings.from_properties(
        {
            "process.roles": "controller",
            "node.id": "1",
            "listeners": f"CONTROLLER://127.0.0.1:{port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "CONTROLLER:SSL",
            "controller.quorum.voters": f"1@127.0.0.1:{port}",
            "log.dirs": str(tmp_path / "data"),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": authority.issue("CN=controller").write_pem(tmp_path, "first"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": authority.write_pem(tmp_path),
        }
    )
    format_storage(settings, cluster_id="castle", quorum=QuorumBootstrap.FROM_SETTINGS)
    node = await Node.start(settings)
    await node.metadata.wait_for(lambda image: 1 in image.controllers)
    change = IncrementalAlterableConfig(name=name, config_operation=ConfigOperation.SET, value=path)
    resource = IncrementalAlterConfigsResource(
        resource_type=ConfigResourceType.BROKER, resource_name="1", configs=[change]
    )
    response = await node.controller.handle(IncrementalAlterConfigsRequest(resources=[resource]))
    assert response.responses[0].error_code == ErrorCode.NONE
    await node.stop()

    node = await Node.start(settings)
    await node.metadata.wait_for(lambda image: 1 in image.controllers)
    expected = x509.load_pem_x509_certificate(Path(path).read_bytes()).serial_number
    await async_wait_until(
        lambda: served_serial_number(node) == expected, "the certificate is served"
    )
    await node.stop()


def served_serial_number(node: Node) -> int:
    tls = node._security.tls.of_listener("CONTROLLER")
    assert tls is not None
    (certificate,) = tls._state.stores.key_store_certificates
    return x509.load_der_x509_certificate(certificate).serial_number
