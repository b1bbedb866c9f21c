"""Nodes log in to each other: brokers to brokers, and to the controller."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.server.harness import on_a_loop

import barnabas
from barnabas.config import BrokerSettings
from barnabas.metadata.image import MetadataImage
from barnabas.node import Node, NodeError
from barnabas.node.environment import DiskThreads
from barnabas.node.format import QuorumBootstrap, format_storage
from barnabas.node.security import NodeSecurity
from barnabas.testing.ports import LOOPBACK, free_port
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from barnabas.wire.uuid import random_uuid, to_text

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required "
NODE = 'username="node" password="secret" user_node="secret";'
BROKER_LOGIN = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
CONTROLLER_LOGIN = "listener.name.controller.plain.sasl.jaas.config"
TOKENS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    'unsecuredLoginStringClaim_sub="node";'
)


def properties(
    folder: Path, controller_port: int, node_id: int, settings: Mapping[str, str]
) -> BrokerSettings:
    """A broker on any port; node 1 is the controller too."""
    listeners = f"SASL_PLAINTEXT://{LOOPBACK}:{free_port()}"
    if node_id == 1:
        listeners += f",CONTROLLER://{LOOPBACK}:{controller_port}"
    return BrokerSettings.from_properties(
        {
            "process.roles": "broker,controller" if node_id == 1 else "broker",
            "node.id": str(node_id),
            "listeners": listeners,
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.bootstrap.servers": f"{LOOPBACK}:{controller_port}",
            "listener.security.protocol.map": "SASL_PLAINTEXT:SASL_PLAINTEXT,"
            "CONTROLLER:SASL_PLAINTEXT",
            "inter.broker.listener.name": "SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.mechanism.inter.broker.protocol": "PLAIN",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "log.dirs": str(folder / str(node_id)),
            "offsets.topic.num.partitions": "1",
            "offsets.topic.replication.factor": "2",
            **settings,
        }
    )


@asynccontextmanager
async def nodes(
    folder: Path,
    settings: Mapping[str, str],
    second: Mapping[str, str] | None = None,
    timeout_s: float = 30,
) -> AsyncIterator[list[Node]]:
    """Two nodes; the second has settings of its own too, and must join in time."""
    cluster_id, controller_port = to_text(random_uuid()), free_port()
    started: list[Node] = []
    try:
        for node_id, own in ((1, {}), (2, second or {})):
            node_settings = properties(folder, controller_port, node_id, {**settings, **own})
            quorum = QuorumBootstrap.STANDALONE if node_id == 1 else QuorumBootstrap.JOIN
            format_storage(node_settings, cluster_id=cluster_id, quorum=quorum)
            async with asyncio.timeout(timeout_s if node_id == 2 else None):
                started.append(await Node.start(node_settings))
        yield started
    finally:
        for node in reversed(started):
            await node.stop()


def produce(address: str, login: Mapping[str, object]) -> None:
    """Writes a record to both replicas."""
    failures: list[object] = []
    producer = barnabas.Producer(
        {"bootstrap.servers": address, "security.protocol": "SASL_PLAINTEXT", **login}
    )
    producer.produce("t", b"x", on_delivery=lambda error, _: failures.append(error))
    producer.flush(30)
    assert failures == [None]


TOKEN_SETTINGS = {
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "sasl.mechanism.controller.protocol": "OAUTHBEARER",
    "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": TOKENS,
    "listener.name.controller.oauthbearer.sasl.jaas.config": TOKENS,
}
WITHOUT_JAAS = {
    "barnabas.sasl.users": "node:secret",
    "barnabas.sasl.username": "node",
    "barnabas.sasl.password": "secret",
}
PASSWORD = {"sasl.mechanism": "PLAIN", "sasl.username": "node", "sasl.password": "secret"}
TOKEN = {
    "sasl.mechanism": "OAUTHBEARER",
    "enable.sasl.oauthbearer.unsecure.jwt": True,
    "sasl.oauthbearer.config": "principal=node",
}


@pytest.mark.parametrize(
    ("settings", "login"),
    [
        ({BROKER_LOGIN: PLAIN + NODE, CONTROLLER_LOGIN: PLAIN + NODE}, PASSWORD),
        (WITHOUT_JAAS, PASSWORD),
        (TOKEN_SETTINGS, TOKEN),
    ],
    ids=["JAAS", "without-JAAS", "OAUTHBEARER"],
)
@on_a_loop
async def test_brokers_replicate_and_register_over_sasl(
    tmp_path: Path, settings: dict[str, str], login: dict[str, object]
) -> None:
    async with nodes(tmp_path, settings) as (first, second):
        topic = CreatableTopic(
            name="t",
            num_partitions=1,
            replication_factor=2,
            configs=[CreatableTopicConfig(name="min.insync.replicas", value="2")],
        )
        await first.controller.handle(CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
        assert sorted(second.metadata.image.brokers) == [1, 2]
        await asyncio.to_thread(produce, first.address, login)
        logins = {
            gauge.labels["listener"]: gauge.value
            for gauge in first._metrics.gauges()
            if gauge.name.endswith("successful_authentication_total")
        }
        assert logins.keys() == {"SASL_PLAINTEXT", "CONTROLLER"}


@on_a_loop
async def test_a_node_with_a_wrong_password_does_not_join(tmp_path: Path) -> None:
    wrong = {"listener.name.controller.barnabas.sasl.password": "wrong"}
    with pytest.raises(TimeoutError):
        async with nodes(tmp_path, WITHOUT_JAAS, wrong, timeout_s=1):
            raise AssertionError("the second node has joined")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "Nodes log in to listener SASL_PLAINTEXT with PLAIN, and there is no user"),
        ({BROKER_LOGIN: PLAIN}, "plain.sasl.jaas.config cannot be read: it ends"),
        ({BROKER_LOGIN: PLAIN + NODE}, "Nodes log in to listener CONTROLLER with PLAIN"),
        (
            {"barnabas.sasl.username": "a", "barnabas.sasl.password": "b"},
            "has PLAIN and no users",
        ),
        (WITHOUT_JAAS | {"sasl.enabled.mechanisms": "CRAM-MD5"}, "has CRAM-MD5; supported are"),
        (WITHOUT_JAAS | {"sasl.enabled.mechanisms": ""}, "sasl.enabled.mechanisms is empty"),
        (WITHOUT_JAAS | {"barnabas.sasl.users": "node"}, "barnabas.sasl.users cannot be read"),
        (
            WITHOUT_JAAS | {"sasl.mechanism.controller.protocol": "CRAM-MD5"},
            "Nodes cannot log in to listener CONTROLLER with CRAM-MD5",
        ),
        (
            WITHOUT_JAAS | {"sasl.server.callback.handler.class": "com.example.Ldap"},
            "is com.example.Ldap; Java classes are not loaded",
        ),
        (
            WITHOUT_JAAS | {"barnabas.sasl.jaas.file": "/none/of/these"},
            "The JAAS file /none/of/these cannot be read",
        ),
        (
            WITHOUT_JAAS
            | {
                "sasl.enabled.mechanisms": "OAUTHBEARER",
                "sasl.oauthbearer.jwks.endpoint.url": "file:///none",
            },
            "set sasl.oauthbearer.expected.audience",
        ),
    ],
)
@on_a_loop
async def test_settings_with_which_nobody_could_log_in_keep_a_node_from_starting(
    tmp_path: Path, settings: dict[str, str], problem: str
) -> None:
    with pytest.raises(NodeError, match=problem):
        async with nodes(tmp_path, settings):
            pass


@pytest.mark.parametrize(("controllers", "has_warning"), [(1, False), (3, True)])
def test_several_controllers_that_use_scram_are_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, controllers: int, has_warning: bool
) -> None:
    """Each would need the metadata log to know the users, and the others to read it."""
    ports = [free_port() for _ in range(controllers)]
    servers = ",".join(f"{LOOPBACK}:{port}" for port in ports)
    scram = {
        "sasl.mechanism.controller.protocol": "SCRAM-SHA-512",
        "controller.quorum.bootstrap.servers": servers,
    }
    settings = properties(tmp_path, ports[0], 1, WITHOUT_JAAS | scram)
    security = NodeSecurity(settings, DiskThreads, MetadataImage, lambda: 0, {})  # type: ignore[arg-type]
    security.to_controllers()
    assert ("cannot elect a leader when all of them start" in caplog.text) is has_warning
