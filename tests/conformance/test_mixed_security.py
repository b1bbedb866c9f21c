"""Secured clusters of a Barnabas broker and a real Kafka broker, with controllers of either.

SASL_SSL is on all listeners: SCRAM between brokers, PLAIN to controllers. Both decide by the same
ACLs, forward requests with their principals, and accept each other's users and delegation tokens.
"""

import base64
import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType
from tests.cluster.cluster import Cluster, Quorum
from tests.cluster.node import BARNABAS, KAFKA, NodeProgram, ProcessNode
from tests.cluster.security import (
    CLIENT_MECHANISM,
    PREFIXED,
    ClusterSecurity,
    allow,
    connect_over_tls,
    deny,
    login_of,
    password_of,
)
from tests.conformance.cluster import (
    assert_equal_replicas,
    assert_no_problems_logged,
    cluster_tool,
    concatenate,
    read,
    write,
)
from tests.wait import wait_until

from barnabas.net.sasl import SaslClient
from barnabas.testing.requests import Connect, send_request
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    ExpireDelegationTokenRequest,
)
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]

PARTITIONS = 4
SHOP, MALLORY = "shop", "mallory"
TOPICS = ("orders", "orders-secret", "orders-paid", "public", "other")
SETTINGS = {
    "default.replication.factor": "2",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "2",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "delegation.token.secret.key": "the key of all nodes",
}
ACLS = [
    allow(SHOP, AclOperation.READ, ResourceType.TOPIC, "orders", PREFIXED),
    deny(SHOP, AclOperation.READ, ResourceType.TOPIC, "orders-secret"),
    allow(SHOP, AclOperation.WRITE, ResourceType.TOPIC, "orders-paid"),
    allow(SHOP, AclOperation.ALTER_CONFIGS, ResourceType.TOPIC, "orders-paid"),
    allow("*", AclOperation.DESCRIBE, ResourceType.TOPIC, "public"),
    allow(SHOP, AclOperation.ALL, ResourceType.TOPIC, "other", host="10.9.9.9"),
    allow(SHOP, AclOperation.CREATE, ResourceType.TOPIC, "shop-", PREFIXED),
]


@pytest.fixture(
    scope="module", params=[KAFKA, BARNABAS], ids=["kafka-controllers", "barnabas-controllers"]
)
def secured(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Broker 1 is Barnabas, broker 2 the real Kafka."""
    program: NodeProgram = request.param
    directory = tmp_path_factory.mktemp("secured")
    with Cluster.separate(
        directory,
        [program] * (1 if program is KAFKA else 3),
        [BARNABAS, KAFKA],
        quorum=Quorum.STATIC if program is KAFKA else Quorum.DYNAMIC,
        settings=SETTINGS,
        security=ClusterSecurity(directory / "security", [SHOP, MALLORY]),
    ) as cluster:
        for topic in TOPICS:
            cluster.create_topic(topic, PARTITIONS, 2)
        cluster.create_acls(ACLS)
        cluster.wait_until_in_sync()
        yield cluster
        assert_no_problems_logged(cluster)


def connect_as(secured: Cluster, user: str) -> Connect:
    assert secured.security
    return secured.security.connect_as(user)


@pytest.mark.parametrize("victim", [1, 2], ids=["barnabas", "kafka"])
def test_brokers_replicate_and_take_over_over_sasl_ssl(secured: Cluster, victim: int) -> None:
    topic = f"replicated-{victim}"
    secured.create_topic(topic, PARTITIONS, 2)
    secured.wait_until_in_sync()
    written = write(secured, topic, 500, partitions=PARTITIONS)
    assert {secured.leader_of(topic, index).node_id for index in range(PARTITIONS)} == {1, 2}
    node = secured.nodes[victim]
    secured.stop_node(node)
    written = concatenate(written, write(secured, topic, 500, partitions=PARTITIONS))
    secured.start_node(node)
    secured.wait_until_ready()
    secured.wait_until_in_sync()
    assert read(secured, topic, partitions=PARTITIONS) == written
    for index in range(PARTITIONS):
        assert_equal_replicas(secured.brokers, topic, index)


@pytest.mark.parametrize("user", [SHOP, MALLORY])
def test_both_brokers_allow_the_same_operations(secured: Cluster, user: str) -> None:
    ours, theirs = (
        allowed_operations(broker, connect_as(secured, user)) for broker in secured.brokers
    )
    assert ours == theirs
    visible = {name for name, (code, _) in ours.items() if not code}
    # Who is denied READ may still be allowed to DESCRIBE.
    assert visible == (set(TOPICS) - {"other"} if user == SHOP else {"public"})


@pytest.mark.parametrize("receiver", [1, 2], ids=["barnabas", "kafka"])
def test_forwarded_requests_keep_their_principal(secured: Cluster, receiver: int) -> None:
    node = secured.nodes[receiver]
    allowed, denied = f"shop-{receiver}", f"stolen-{receiver}"
    assert create_topic(node, connect_as(secured, SHOP), allowed) is ErrorCode.NONE
    for user, topic in ((SHOP, denied), (MALLORY, denied), (MALLORY, f"shop-{denied}")):
        code = create_topic(node, connect_as(secured, user), topic)
        assert code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    wait_until(
        lambda: any(
            f"Principal = User:{MALLORY} is Denied operation = CREATE" in line
            for controller in secured.controllers
            for line in controller.log_file.read_text(errors="replace").splitlines()
        ),
        "the audit log of the controller names the client's principal",
    )


@pytest.mark.parametrize(
    ("creator", "verifier"), [(1, 2), (2, 1)], ids=["from-barnabas", "from-kafka"]
)
def test_tokens_of_one_broker_work_on_the_other(
    secured: Cluster, creator: int, verifier: int
) -> None:
    connect = connect_as(secured, SHOP)
    token = send_request(
        secured.nodes[creator].port,
        CreateDelegationTokenRequest(max_lifetime_ms=-1),
        3,
        timeout_s=10,
        connect=connect,
    )
    assert token.error_code == ErrorCode.NONE
    assert (token.principal_type, token.principal_name) == ("User", SHOP)
    assert secured.security
    with_token = connect_over_tls(
        secured.security.authority_file,
        SaslClient(
            CLIENT_MECHANISM,
            token.token_id,
            base64.b64encode(token.hmac).decode(),
            is_token=True,
        ),
    )
    other = secured.nodes[verifier]
    wait_until(lambda: logs_in(other, with_token), "the token is accepted")
    assert allowed_operations(other, with_token) == allowed_operations(other, connect)
    expired = send_request(
        other.port,
        ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1),
        2,
        timeout_s=10,
        connect=connect,
    )
    assert expired.error_code == ErrorCode.NONE
    for broker in secured.brokers:
        wait_until(lambda broker=broker: not logs_in(broker, with_token), "the token is rejected")


@pytest.mark.parametrize("receiver", [1, 2], ids=["barnabas", "kafka"])
def test_users_added_at_one_broker_log_in_at_both(secured: Cluster, receiver: int) -> None:
    user = f"new-{receiver}"
    assert secured.security
    cluster_tool(
        *(secured, "configs", "--alter", "--entity-type", "users", "--entity-name", user),
        *("--add-config", f"{CLIENT_MECHANISM}=[password={password_of(user)}]"),
        server=secured.nodes[receiver],
    )
    login = login_of(user, CLIENT_MECHANISM)
    connect = connect_over_tls(secured.security.authority_file, login)
    for broker in secured.brokers:
        wait_until(lambda broker=broker: logs_in(broker, connect), f"{user} logs in")


def allowed_operations(node: ProcessNode, connect: Connect) -> dict[str, tuple[int, int]]:
    """Returns the error and the authorized operations of each topic."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic) for topic in TOPICS],
        include_topic_authorized_operations=True,
        allow_auto_topic_creation=False,
    )
    response = send_request(node.port, request, 12, connect=connect)
    return {
        topic.name: (topic.error_code, topic.topic_authorized_operations)
        for topic in response.topics
    }


def create_topic(node: ProcessNode, connect: Connect, topic: str) -> ErrorCode:
    new = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    response: Any = send_request(
        node.port, CreateTopicsRequest(topics=[new]), 7, timeout_s=10, connect=connect
    )
    return ErrorCode.of(response.topics[0].error_code)


def logs_in(node: ProcessNode, connect: Connect) -> bool:
    with contextlib.suppress(PermissionError), connect(node.port, 10):
        return True
    return False
