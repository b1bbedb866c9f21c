"""What tests of mixed clusters do to a cluster, whoever runs its nodes."""

import json
import re
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from confluent_kafka import (
    Consumer,
    ElectionType,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from tests.cluster.chaos.verify import records_on_disk
from tests.cluster.cluster import Cluster
from tests.cluster.node import ProcessNode
from tests.conformance.brokers import peer
from tests.wait import wait_until

DEADLINE_S = 60
PATIENT = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 250,
    "retry.backoff.ms": 50,
    "metadata.recovery.strategy": "none",
    "log_level": 0,
}

COMPLAINT = re.compile(
    r"^(\[[\d :,-]+\] (ERROR|FATAL) |[\d :,-]+(WARNING|ERROR) |Traceback )", re.MULTILINE
)
EXPECTED = re.compile(
    "|".join(
        (
            # Of a busy machine.
            "Exceptionally slow controller event",
            "controller event queue overloaded",
            "refused a heartbeat: REQUEST_TIMED_OUT",
            # Kafka, asked just when the active controller changes, or while it stops.
            r"\n(org|java).*NotControllerException",
            r"\njava.*NullPointerException: .*RequestMetrics\$ErrorMeter",
            # Kafka, of every partition that comes to it when it knows the topic: moved, or added.
            "Expected partition .* to exist, but it was missing. Creating",
            # Kafka, of a producer whose requests overtake each other on the way to a new leader.
            r"\norg.*OutOfOrderSequenceException",
            # Of nodes that were started before their controllers, and of those that were killed.
            "No controller has registered broker .* so far",
            "no active controller for",
            "nobody listens at .* any more: it has died",
        )
    )
)


def write(
    cluster: Cluster, topic: str, count: int, *, partitions: int, transactional_id: str = ""
) -> dict[int, list[bytes]]:
    """So many records to each partition, in one transaction if there is an id for it."""
    producer = Producer(
        PATIENT
        | {
            "bootstrap.servers": cluster.bootstrap_servers,
            "enable.idempotence": True,
            "acks": "all",
            "delivery.timeout.ms": DEADLINE_S * 1000,
            **({"transactional.id": transactional_id} if transactional_id else {}),
        }
    )
    if transactional_id:
        producer.init_transactions(DEADLINE_S)
        producer.begin_transaction()
    written: dict[int, list[bytes]] = {index: [] for index in range(partitions)}
    failures: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error:
            failures.append(error)

    begun = time.time_ns()
    for number in range(count):
        for index, values in written.items():
            values.append(b"%d %d " % (begun, number) + bytes(100))
            producer.produce(topic, values[-1], partition=index, on_delivery=on_delivery)
        producer.poll(0)
    if transactional_id:
        producer.commit_transaction(DEADLINE_S)
    assert producer.flush(DEADLINE_S) == 0
    assert not failures, failures
    return written


def read(cluster: Cluster, topic: str, *, partitions: int) -> dict[int, list[bytes]]:
    """All that is committed."""
    consumer = Consumer(
        PATIENT
        | {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "not-joined",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    found: dict[int, list[bytes]] = {index: [] for index in range(partitions)}
    at_end: set[int | None] = set()
    deadline_s = time.monotonic() + DEADLINE_S
    while len(at_end) < partitions:
        assert time.monotonic() < deadline_s, f"{topic} was not read in {DEADLINE_S} s"
        for message in consumer.consume(1_000, timeout=0.2):
            index, value, error = message.partition(), message.value(), message.error()
            if error and error.code() == KafkaError._PARTITION_EOF:
                at_end.add(index)
            elif not error and index is not None and value is not None:
                found[index].append(value)
    consumer.close()
    return found


def joined(before: dict[int, list[bytes]], after: dict[int, list[bytes]]) -> dict[int, list[bytes]]:
    return {index: before[index] + after[index] for index in before}


def taken(
    cluster: Cluster, group: str, topic: str, count: int, *, protocol: str = "classic"
) -> int:
    """Consume so many records as a group, and commit them."""
    consumer = Consumer(
        PATIENT
        | {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "group.protocol": protocol,
            **({"session.timeout.ms": 6_000} if protocol == "classic" else {}),
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


def cluster_tool(cluster: Cluster, name: str, *arguments: str) -> str:
    return peer("tool", name, "--bootstrap-server", cluster.bootstrap_servers, *arguments)


def elect_preferred(cluster: Cluster, topic: str, partition: int) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    place = TopicPartition(topic, partition)
    (failure,) = admin.elect_leaders(ElectionType.PREFERRED, [place]).result(DEADLINE_S).values()
    assert failure is None, failure


def reassign(cluster: Cluster, topic: str, replicas: dict[int, list[int]], plan: Path) -> None:
    """Move partitions with Kafka's tool, and wait until it says that they have moved."""
    partitions = [
        {"topic": topic, "partition": index, "replicas": wanted}
        for index, wanted in replicas.items()
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    file = ("--reassignment-json-file", str(plan))
    cluster_tool(cluster, "reassign-partitions", "--execute", *file)

    def is_complete() -> bool:
        said = cluster_tool(cluster, "reassign-partitions", "--verify", *file)
        return said.count("is completed") == len(replicas)

    wait_until(is_complete, f"{topic} has moved", DEADLINE_S)


def assert_equal_copies(nodes: list[ProcessNode], topic: str, partition: int) -> None:
    """Byte for byte, as soon as the followers have what the leader has."""
    folders = [node.log_dir / f"{topic}-{partition}" for node in nodes]
    wait_until(
        lambda: len({records_on_disk(folder) for folder in folders}) == 1,
        f"{topic}-{partition} is the same on {[node.node_id for node in nodes]}",
    )


def assert_no_complaints(cluster: Cluster) -> None:
    """No node has found fault with another."""
    complaints = [
        f"{node.node_id} ({node.program}): {said[:400]}"
        for node in cluster.nodes.values()
        for said in entries(node)
        if COMPLAINT.match(said) and not EXPECTED.search(said)
    ]
    assert not complaints, "\n".join(complaints)


def entries(node: ProcessNode) -> Iterator[str]:
    """Each line of its log, and the next: the exception, if it is about one."""
    lines = node.log_file.read_text(errors="replace").splitlines()
    yield from map("\n".join, pairwise([*lines, ""]))
