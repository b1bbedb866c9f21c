"""Clusters of a Barnabas broker and a real Kafka broker, with controllers of either."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cluster.cluster import Cluster, Quorum
from tests.cluster.node import BARNABAS, KAFKA, NodeProgram, ProcessNode
from tests.conformance.cluster import (
    assert_equal_replicas,
    assert_no_problems_logged,
    cluster_tool,
    concatenate,
    consume,
    elect_preferred,
    read,
    reassign,
    write,
)
from tests.wait import wait_until

from barnabas.testing.requests import fetch_metadata, send_request
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]

PARTITIONS = 4
TOPIC = 2
"""The resource type of topics."""
GROUP, TRANSACTION = 0, 1
"""The key types of FindCoordinator."""
SETTINGS = {
    "default.replication.factor": "2",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "auto.leader.rebalance.enable": "false",
    "metadata.log.max.record.bytes.between.snapshots": "10000",
    "metadata.max.retention.ms": "1000",
}
METADATA = "__cluster_metadata-0"


@pytest.fixture(
    scope="module", params=[KAFKA, BARNABAS], ids=["kafka-controllers", "barnabas-controllers"]
)
def mixed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Broker 1 is Barnabas, broker 2 the real Kafka."""
    program: NodeProgram = request.param
    controllers = [program] * (1 if program is KAFKA else 3)
    with Cluster.separate(
        tmp_path_factory.mktemp("mixed"),
        controllers,
        [BARNABAS, KAFKA],
        quorum=Quorum.STATIC if program is KAFKA else Quorum.DYNAMIC,
        settings=SETTINGS,
    ) as cluster:
        yield cluster
        assert_no_problems_logged(cluster)


def new_topic(mixed: Cluster, topic: str) -> None:
    mixed.create_topic(topic, PARTITIONS, 2)
    mixed.wait_until_in_sync()


def test_both_brokers_lead_and_follow(mixed: Cluster, topic: str) -> None:
    new_topic(mixed, topic)
    written = write(mixed, topic, 2_000, partitions=PARTITIONS)
    assert read(mixed, topic, partitions=PARTITIONS) == written
    assert {mixed.leader_of(topic, index).node_id for index in range(PARTITIONS)} == {1, 2}
    for index in range(PARTITIONS):
        assert_equal_replicas(mixed.brokers, topic, index)


@pytest.mark.parametrize("victim", [1, 2], ids=["barnabas", "kafka"])
@pytest.mark.parametrize("method", ["kill", "stop"])
def test_leadership_moves_to_the_other_broker_and_back(
    mixed: Cluster, topic: str, victim: int, method: str
) -> None:
    new_topic(mixed, topic)
    node = mixed.nodes[victim]
    led = [index for index in range(PARTITIONS) if mixed.leader_of(topic, index) is node]
    written = write(mixed, topic, 500, partitions=PARTITIONS)
    (mixed.kill_node if method == "kill" else mixed.stop_node)(node)
    written = concatenate(written, write(mixed, topic, 500, partitions=PARTITIONS))
    for index in led:
        assert mixed.leader_of(topic, index) is not node
    restart_node(mixed, node)
    assert read(mixed, topic, partitions=PARTITIONS) == written
    elect_preferred(mixed, topic, led[0])
    wait_until(lambda: mixed.leader_of(topic, led[0]) is node, f"{victim} leads again")
    written = concatenate(written, write(mixed, topic, 100, partitions=PARTITIONS))
    assert read(mixed, topic, partitions=PARTITIONS) == written
    for index in range(PARTITIONS):
        assert_equal_replicas(mixed.brokers, topic, index)


def test_transactions_span_both_brokers(mixed: Cluster, topic: str) -> None:
    """The coordinator is one broker, and some partitions are led by the other."""
    new_topic(mixed, topic)
    written: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
    for number in range(6):
        transactional_id = f"{topic}-{number}"  # for all partitions of the internal topic
        more = write(mixed, topic, 20, partitions=PARTITIONS, transactional_id=transactional_id)
        written = concatenate(written, more)
    assert read(mixed, topic, partitions=PARTITIONS) == written
    for index in range(PARTITIONS):
        assert_equal_replicas(mixed.brokers, topic, index)


@pytest.mark.parametrize("coordinator", [1, 2], ids=["barnabas", "kafka"])
def test_leaders_add_partitions_to_transactions_of_either(
    mixed: Cluster, topic: str, coordinator: int
) -> None:
    """Kafka's producer relies on that; librdkafka's adds partitions itself (KIP-890)."""
    new_topic(mixed, topic)
    transactional_id = name_coordinated_by(mixed, coordinator, TRANSACTION, topic)
    cluster_tool(
        *(mixed, "producer-perf-test", "--topic", topic, "--transactional-id", transactional_id),
        *("--num-records", "4000", "--record-size", "100", "--throughput", "-1"),
        *("--transaction-duration-ms", "100", "--command-property", "batch.size=1000"),
    )
    records = read(mixed, topic, partitions=PARTITIONS)
    assert sum(map(len, records.values())) == 4_000
    assert all(records.values())
    for index in range(PARTITIONS):
        assert_equal_replicas(mixed.brokers, topic, index)


@pytest.mark.parametrize("victim", [1, 2], ids=["barnabas", "kafka"])
def test_a_group_continues_when_its_coordinator_is_killed(
    mixed: Cluster, topic: str, victim: int
) -> None:
    new_topic(mixed, topic)
    written = write(mixed, topic, 300, partitions=PARTITIONS)
    group = name_coordinated_by(mixed, victim, GROUP, topic)
    assert consume(mixed, group, topic, 600) == 600
    mixed.kill_node(mixed.nodes[victim])
    left = sum(map(len, written.values())) - 600
    assert consume(mixed, group, topic, left) == left
    restart_node(mixed, mixed.nodes[victim])


def test_kafkas_tools_work_on_both_brokers(mixed: Cluster, topic: str, tmp_path: Path) -> None:
    new_topic(mixed, topic)
    written = write(mixed, topic, 200, partitions=PARTITIONS)
    described = cluster_tool(mixed, "topics", "--describe", "--topic", topic)
    assert len(re.findall(r"Isr: (1,2|2,1)", described)) == PARTITIONS
    reassign(mixed, topic, {0: [1], 1: [2]}, tmp_path / "apart.json")
    assert mixed.leader_of(topic, 0).node_id == 1
    assert mixed.leader_of(topic, 1).node_id == 2
    reassign(mixed, topic, {0: [2, 1], 1: [1, 2]}, tmp_path / "together.json")
    mixed.wait_until_in_sync()
    everything = ("--election-type", "preferred", "--all-topic-partitions")
    cluster_tool(mixed, "leader-election", *everything)
    wait_until(lambda: mixed.leader_of(topic, 0).node_id == 2, "2 leads 0")
    wait_until(lambda: mixed.leader_of(topic, 1).node_id == 1, "1 leads 1")
    assert read(mixed, topic, partitions=PARTITIONS) == written
    status = cluster_tool(mixed, "metadata-quorum", "describe", "--status")
    assert re.search(r"LeaderId: +10\d", status)
    replication = cluster_tool(mixed, "metadata-quorum", "describe", "--replication")
    assert len(re.findall("Observer", replication)) == 2
    consume(mixed, f"{topic}-group", topic, 200 * PARTITIONS)
    groups = cluster_tool(mixed, "consumer-groups", "--describe", "--group", f"{topic}-group")
    assert len(re.findall(rf" {topic} +\d +200 +200 +0 ", groups)) == PARTITIONS


def test_both_brokers_apply_a_change_of_features(mixed: Cluster, topic: str) -> None:
    new_topic(mixed, topic)
    written: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
    for method, level in {"downgrade": 1, "upgrade": 2}.items():
        cluster_tool(mixed, "features", method, "--feature", f"transaction.version={level}")
        wait_until(
            lambda level=level: {transaction_level(broker) for broker in mixed.brokers} == {level},
            "both have it",
        )
        more = write(mixed, topic, 5, partitions=PARTITIONS, transactional_id=topic)
        written = concatenate(written, more)
    assert read(mixed, topic, partitions=PARTITIONS) == written


@pytest.mark.parametrize("receiver", [1, 2], ids=["barnabas", "kafka"])
def test_a_broker_forwards_requests_to_the_controller(
    mixed: Cluster, topic: str, receiver: int
) -> None:
    node, brokers = mixed.nodes[receiver], mixed.brokers
    new = CreatableTopic(name=topic, num_partitions=1, replication_factor=2)
    created = [
        send_request(node.port, CreateTopicsRequest(topics=[new]), 7).topics[0] for _ in range(2)
    ]
    assert [result.error_code for result in created] == [
        ErrorCode.NONE,
        ErrorCode.TOPIC_ALREADY_EXISTS,
    ]
    more = CreatePartitionsTopic(name=topic, count=3, assignments=None)
    request = CreatePartitionsRequest(topics=[more], timeout_ms=10_000)
    assert send_request(node.port, request, 3).results[0].error_code == ErrorCode.NONE
    assert alter(node, topic, "retention.ms", "1234567") == ErrorCode.NONE
    assert alter(node, topic, "retention.ms", "soon") == ErrorCode.INVALID_CONFIG
    wait_until(
        lambda: all(retention_ms(broker, topic) == "1234567" for broker in brokers),
        "the setting is applied",
    )
    assert all((topic, 2) in fetch_metadata(broker.port).partitions for broker in brokers)
    gone = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], timeout_ms=10_000)
    assert send_request(node.port, gone, 6).responses[0].error_code == ErrorCode.NONE
    wait_until(
        lambda: not any((broker.log_dir / f"{topic}-0").exists() for broker in brokers),
        "the topic's files are gone",
    )


def test_a_broker_without_metadata_fetches_a_snapshot(mixed: Cluster, topic: str) -> None:
    """The broker of another program than the controllers."""
    controllers = mixed.controllers
    node = next(broker for broker in mixed.brokers if broker.program is not controllers[0].program)
    new_topic(mixed, topic)
    written = write(mixed, topic, 100, partitions=PARTITIONS)
    mixed.stop_node(node)
    shutil.rmtree(node.log_dir / METADATA)
    # Kafka deletes log segments that snapshots cover once a minute.
    wait_until(
        lambda: all(log_start(controller) > 0 for controller in controllers),
        "the log start has moved",
        90,
    )
    restart_node(mixed, node)
    assert log_start(node) > 0
    assert fetch_metadata(node.port) == fetch_metadata(
        next(broker.port for broker in mixed.brokers if broker is not node)
    )
    assert read(mixed, topic, partitions=PARTITIONS) == written


def restart_node(mixed: Cluster, node: ProcessNode) -> None:
    mixed.start_node(node)
    mixed.wait_until_ready()
    mixed.wait_until_in_sync()


def name_coordinated_by(mixed: Cluster, broker: int, key_type: int, prefix: str) -> str:
    """Returns the name of a group or transactional id that the broker coordinates."""
    coordinated: list[str] = []

    def has_name() -> bool:
        names = [f"{prefix}-{number}" for number in range(50)]
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=names)
        response = send_request(mixed.nodes[broker].port, request, 4)
        coordinated.extend(
            coordinator.key
            for coordinator in response.coordinators
            if coordinator.node_id == broker
        )
        return bool(coordinated)

    wait_until(has_name, f"{broker} coordinates")
    return coordinated[0]


def alter(node: ProcessNode, topic: str, key: str, value: str) -> int:
    change = IncrementalAlterableConfig(name=key, value=value)
    resource = IncrementalAlterConfigsResource(
        resource_type=TOPIC, resource_name=topic, configs=[change]
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    code: int = send_request(node.port, request, 1).responses[0].error_code
    return code


def retention_ms(node: ProcessNode, topic: str) -> str | None:
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name=topic, configuration_keys=["retention.ms"]
    )
    response = send_request(node.port, DescribeConfigsRequest(resources=[resource]), 4)
    value: str | None = response.results[0].configs[0].value
    return value


def transaction_level(node: ProcessNode) -> int | None:
    request = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    features = send_request(node.port, request, 3).finalized_features
    levels = {feature.name: feature.max_version_level for feature in features}
    return levels.get("transaction.version")


def log_start(node: ProcessNode) -> int:
    """Returns the end of the oldest metadata snapshot; the log before it is deleted."""
    ends = [int(file.name[:20]) for file in (node.log_dir / METADATA).glob("*.checkpoint")]
    return min(ends, default=0)
