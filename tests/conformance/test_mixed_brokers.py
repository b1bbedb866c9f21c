"""One cluster of both: a Barnabas broker and a real Kafka broker, led by either's controllers."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from tests.cluster.cluster import Cluster
from tests.cluster.node import BARNABAS, KAFKA, Node, Program
from tests.conformance.brokers import wait_until
from tests.conformance.cluster import (
    DEADLINE_S,
    PATIENT,
    assert_equal_copies,
    cluster_tool,
    elect_preferred,
    read,
    reassign,
    write,
)

pytestmark = [pytest.mark.peer, pytest.mark.timeout(240)]

PARTITIONS = 4
SETTINGS = {
    "default.replication.factor": "2",
    "min.insync.replicas": "1",
    "offsets.topic.replication.factor": "2",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "auto.leader.rebalance.enable": "false",
}


@pytest.fixture(
    scope="module", params=[KAFKA, BARNABAS], ids=["kafka-controllers", "barnabas-controllers"]
)
def mixed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    """Broker 1 is Barnabas, broker 2 the real Kafka."""
    program: Program = request.param
    controllers = [program] * (1 if program is KAFKA else 3)
    with Cluster.separate(
        tmp_path_factory.mktemp("mixed"), controllers, [BARNABAS, KAFKA], settings=SETTINGS
    ) as cluster:
        yield cluster


def new_topic(mixed: Cluster, topic: str) -> None:
    mixed.create_topic(topic, PARTITIONS, 2)
    mixed.await_whole()


def test_each_leads_and_follows(mixed: Cluster, topic: str) -> None:
    new_topic(mixed, topic)
    written = write(mixed, topic, 2_000, partitions=PARTITIONS)
    assert read(mixed, topic, partitions=PARTITIONS) == written
    assert {mixed.leader_of(topic, index).node_id for index in range(PARTITIONS)} == {1, 2}
    for index in range(PARTITIONS):
        assert_equal_copies(mixed.brokers, topic, index)


@pytest.mark.parametrize("victim", [1, 2], ids=["barnabas", "kafka"])
@pytest.mark.parametrize("way", ["kill", "stop"])
def test_leadership_goes_to_the_other_and_comes_back(
    mixed: Cluster, topic: str, victim: int, way: str
) -> None:
    new_topic(mixed, topic)
    node = mixed.nodes[victim]
    led = [index for index in range(PARTITIONS) if mixed.leader_of(topic, index) is node]
    written = write(mixed, topic, 500, partitions=PARTITIONS)
    (mixed.kill_node if way == "kill" else mixed.stop_node)(node)
    written = joined(written, write(mixed, topic, 500, partitions=PARTITIONS))
    for index in led:
        assert mixed.leader_of(topic, index) is not node
    come_back(mixed, node)
    assert read(mixed, topic, partitions=PARTITIONS) == written
    elect_preferred(mixed, topic, led[0])
    wait_until(lambda: mixed.leader_of(topic, led[0]) is node, f"{victim} leads again")
    written = joined(written, write(mixed, topic, 100, partitions=PARTITIONS))
    assert read(mixed, topic, partitions=PARTITIONS) == written
    for index in range(PARTITIONS):
        assert_equal_copies(mixed.brokers, topic, index)


def test_transactions_span_both(mixed: Cluster, topic: str) -> None:
    """Whoever coordinates them, some partitions are led by the other."""
    new_topic(mixed, topic)
    written: dict[int, list[bytes]] = {index: [] for index in range(PARTITIONS)}
    for number in range(6):
        transactional_id = f"{topic}-{number}"  # over all partitions of the coordinators
        more = write(mixed, topic, 20, partitions=PARTITIONS, transactional_id=transactional_id)
        written = joined(written, more)
    assert read(mixed, topic, partitions=PARTITIONS) == written
    for index in range(PARTITIONS):
        assert_equal_copies(mixed.brokers, topic, index)


@pytest.mark.parametrize("victim", [1, 2], ids=["barnabas", "kafka"])
def test_a_group_goes_on_when_its_coordinator_is_killed(
    mixed: Cluster, topic: str, victim: int
) -> None:
    new_topic(mixed, topic)
    written = write(mixed, topic, 300, partitions=PARTITIONS)
    group = next(
        name
        for name in (f"{topic}-{number}" for number in range(50))
        if coordinator(mixed, name) == victim
    )
    assert taken(mixed, group, topic, 600) == 600
    mixed.kill_node(mixed.nodes[victim])
    left = sum(map(len, written.values())) - 600
    assert taken(mixed, group, topic, left) == left
    come_back(mixed, mixed.nodes[victim])


def test_kafkas_tools(mixed: Cluster, topic: str, tmp_path: Path) -> None:
    new_topic(mixed, topic)
    written = write(mixed, topic, 200, partitions=PARTITIONS)
    described = cluster_tool(mixed, "topics", "--describe", "--topic", topic)
    assert len(re.findall(r"Isr: (1,2|2,1)", described)) == PARTITIONS
    reassign(mixed, topic, {0: [1], 1: [2]}, tmp_path / "apart.json")
    assert mixed.leader_of(topic, 0).node_id == 1
    assert mixed.leader_of(topic, 1).node_id == 2
    reassign(mixed, topic, {0: [2, 1], 1: [1, 2]}, tmp_path / "together.json")
    mixed.await_whole()
    assert read(mixed, topic, partitions=PARTITIONS) == written
    status = cluster_tool(mixed, "metadata-quorum", "describe", "--status")
    assert re.search(r"LeaderId: +10\d", status)
    replication = cluster_tool(mixed, "metadata-quorum", "describe", "--replication")
    assert len(re.findall("Observer", replication)) == 2
    taken(mixed, f"{topic}-group", topic, 200 * PARTITIONS)
    groups = cluster_tool(mixed, "consumer-groups", "--describe", "--group", f"{topic}-group")
    assert len(re.findall(rf" {topic} +\d +200 +200 +0 ", groups)) == PARTITIONS


def come_back(mixed: Cluster, node: Node) -> None:
    mixed.start_node(node)
    mixed.await_ready()
    mixed.await_whole()


def joined(before: dict[int, list[bytes]], after: dict[int, list[bytes]]) -> dict[int, list[bytes]]:
    return {index: before[index] + after[index] for index in before}


def coordinator(mixed: Cluster, group: str) -> int:
    """Who leads the partition of the group's offsets."""
    partitions = int(mixed.settings["offsets.topic.num.partitions"])
    place = java_hash(group) % partitions
    return mixed.leader_of("__consumer_offsets", place).node_id


def java_hash(text: str) -> int:
    """Java's String.hashCode without its sign, as Kafka takes it."""
    code = 0
    for character in text:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    return code & 0x7FFFFFFF


def taken(mixed: Cluster, group: str, topic: str, count: int) -> int:
    """Consume so many records as a group, and commit them."""
    consumer = Consumer(
        PATIENT
        | {
            "bootstrap.servers": mixed.bootstrap,
            "group.id": group,
            "session.timeout.ms": 6_000,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    got = 0

    def enough() -> bool:
        nonlocal got
        messages = [each for each in consumer.consume(count - got, 0.5) if not each.error()]
        got += len(messages)
        return got == count

    wait_until(enough, f"{group} has taken {count} records", DEADLINE_S)
    consumer.commit(asynchronous=False)
    consumer.close()
    return got
