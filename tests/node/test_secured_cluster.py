"""Three nodes, each broker and controller, with SASL_SSL on all listeners and ACLs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from tests.server.harness import on_a_loop
from tests.tls_certificates import castle_authority

from barnabas.cli.operations.scram_users import parse_scram_users
from barnabas.config import BrokerSettings
from barnabas.node import Node
from barnabas.node.format import QuorumBootstrap, format_storage
from barnabas.testing.ports import free_port

NODES = (1, 2, 3)
NODE_PASSWORD = "secret of the nodes"
USERS = {"admin": "secret of admin", "alice": "secret of alice", "mallory": "secret of mallory"}
DENIED = ("TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED")
"""A consumer reports the one that it hears of first."""


class SecuredCluster:
    """Nodes log in to controllers with PLAIN and to brokers with SCRAM-SHA-512."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = {node_id: (free_port(), free_port(), free_port()) for node_id in NODES}
        self._ca = castle_authority().write_pem(folder)
        self.nodes: list[Node] = []

    async def start(self) -> None:
        users = {"node": NODE_PASSWORD, **USERS}
        records = parse_scram_users(
            f"SCRAM-SHA-512=[name={user},password={password}]" for user, password in users.items()
        )
        for node_id in NODES:
            format_storage(
                self._settings(node_id),
                cluster_id="castle",
                quorum=QuorumBootstrap.FROM_SETTINGS,
                scram_users=records,
            )
        self.nodes = await asyncio.gather(*(Node.start(self._settings(node)) for node in NODES))

    def _settings(self, node_id: int) -> BrokerSettings:
        client, broker, controller = self._ports[node_id]
        issued = castle_authority().issue(f"CN=node-{node_id}")
        return BrokerSettings.from_properties(
            {
                "process.roles": "broker,controller",
                "node.id": str(node_id),
                "listeners": f"CLIENT://127.0.0.1:{client},BROKER://127.0.0.1:{broker},"
                f"CONTROLLER://127.0.0.1:{controller}",
                "listener.security.protocol.map": "CLIENT:SASL_SSL,BROKER:SASL_SSL,"
                "CONTROLLER:SASL_SSL",
                "controller.listener.names": "CONTROLLER",
                "inter.broker.listener.name": "BROKER",
                "controller.quorum.voters": ",".join(
                    f"{voter}@127.0.0.1:{ports[2]}" for voter, ports in self._ports.items()
                ),
                "log.dirs": str(self._folder / str(node_id)),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": issued.write_pem(self._folder, f"node-{node_id}"),
                "ssl.truststore.type": "PEM",
                "ssl.truststore.location": self._ca,
                "sasl.enabled.mechanisms": "SCRAM-SHA-512",
                "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
                "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
                "sasl.mechanism.controller.protocol": "PLAIN",
                "barnabas.sasl.users": f"node:{NODE_PASSWORD}",
                "barnabas.sasl.username": "node",
                "barnabas.sasl.password": NODE_PASSWORD,
                "authorizer.class.name": "acl",
                "super.users": "User:node;User:admin",
                "offsets.topic.num.partitions": "1",
                "group.initial.rebalance.delay.ms": "0",
            }
        )

    def login(self, user: str, password: str | None = None) -> dict[str, Any]:
        """Returns the settings of a client."""
        return {
            "bootstrap.servers": ",".join(f"127.0.0.1:{self._ports[node][0]}" for node in NODES),
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": self._ca,
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": user,
            "sasl.password": USERS[user] if password is None else password,
            "log_level": 0,
        }


@asynccontextmanager
async def running_cluster(folder: Path) -> AsyncIterator[SecuredCluster]:
    cluster = SecuredCluster(folder)
    try:
        await cluster.start()
        yield cluster
    finally:
        await asyncio.gather(*(node.stop() for node in cluster.nodes))


def create_topic_for_alice(login: dict[str, Any]) -> None:
    admin = AdminClient(login)
    admin.create_topics([NewTopic("orders", 1, 3)])["orders"].result(30)
    acls = [
        AclBinding(
            kind,
            name,
            ResourcePatternType.LITERAL,
            "User:alice",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for kind, name, operation in (
            (ResourceType.TOPIC, "orders", AclOperation.READ),
            (ResourceType.TOPIC, "orders", AclOperation.WRITE),
            (ResourceType.GROUP, "readers", AclOperation.READ),
        )
    ]
    for created in admin.create_acls(acls).values():
        created.result(30)


def produce(login: dict[str, Any], value: bytes) -> str | None:
    """Returns the name of the error."""
    errors: list[Any] = []
    producer = confluent_kafka.Producer({**login, "acks": "all"})
    producer.produce("orders", value, on_delivery=lambda error, _: errors.append(error))
    producer.flush(30)
    return errors[0].name() if errors[0] is not None else None


def consume(login: dict[str, Any]) -> bytes | str:
    """Returns the first value, or the name of the error."""
    consumer = confluent_kafka.Consumer(
        {**login, "group.id": "readers", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe(["orders"])
    try:
        message = consumer.poll(30)
        error = message.error()
        return error.name() if error is not None else message.value()
    finally:
        consumer.close()


def login_error(login: dict[str, Any]) -> str:
    """Returns the name of the first error of a client."""
    errors: list[Any] = []
    client = confluent_kafka.Producer({**login, "error_cb": errors.append})
    for _ in range(300):
        client.poll(0.1)
        if errors:
            break
    return errors[0].name()


@on_a_loop
async def test_a_user_with_acls_is_served_over_sasl_ssl_and_others_are_denied(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_cluster(tmp_path) as cluster:
        await asyncio.to_thread(create_topic_for_alice, cluster.login("admin"))

        assert await asyncio.to_thread(produce, cluster.login("alice"), b"book") is None
        assert await asyncio.to_thread(consume, cluster.login("alice")) == b"book"

        denied = cluster.login("mallory")
        assert await asyncio.to_thread(produce, denied, b"x") == "TOPIC_AUTHORIZATION_FAILED"
        assert await asyncio.to_thread(consume, denied) in DENIED

        stranger = cluster.login("alice", "a wrong password")
        assert await asyncio.to_thread(login_error, stranger) == "_AUTHENTICATION"
        texts = caplog.text
    assert not [secret for secret in (NODE_PASSWORD, *USERS.values()) if secret in texts]
