"""Operations on clusters of Barnabas and Kafka nodes."""

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
from tests.cluster.chaos.invariants import records_on_disk
from tests.cluster.cluster import Cluster
from tests.cluster.node import ProcessNode
from tests.conformance.brokers import run_peer
from tests.wait import wait_until

DEADLINE_S = 60
CLIENT_SETTINGS = {
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 250,
    "retry.backoff.ms": 50,
    "metadata.recovery.strategy": "none",
    "log_level": 0,
}

PROBLEM = re.compile(
    r"^(\[[\d :,-]+\] (ERROR|FATAL) |[\d :,-]+(WARNING|ERROR) |Traceback )", re.MULTILINE
)
EXPECTED_PROBLEMS = re.compile(
    "|".join(
        (
            # On a busy machine.
            "Exceptionally slow controller event",
            "controller event queue overloaded",
            "rejected a heartbeat: REQUEST_TIMED_OUT",
            # Kafka, for requests while the active controller changes or stops.
            r"\n(org|java).*NotControllerException",
            r"\njava.*NullPointerException: .*RequestMetrics\$ErrorMeter",
            # Kafka, for every partition that is moved to it or added.
            "Expected partition .* to exist, but it was missing. Creating",
            # Kafka, for producers whose requests reach a new leader out of order.
            r"\norg.*OutOfOrderSequenceException",
            # Nodes that start before their controllers, and nodes that are killed.
            "No controller has registered broker .* so far",
            "no active controller for",
            "is dead: its connection broke and",
            "it disconnected during the TLS handshake",
            "Authentication of .* failed: user '.*' is unknown",
        )
    )
)


def write(
    cluster: Cluster, topic: str, count: int, *, partitions: int, transactional_id: str = ""
) -> dict[int, list[bytes]]:
    """Writes `count` records to each partition, in a transaction if there is a transactional id."""
    producer = Producer(
        CLIENT_SETTINGS
        | {
            **cluster.client_settings(),
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

    started_ns = time.time_ns()
    for number in range(count):
        for index, values in written.items():
            values.append(b"%d %d " % (started_ns, number) + bytes(100))
            producer.produce(topic, values[-1], partition=index, on_delivery=on_delivery)
        producer.poll(0)
    if transactional_id:
        producer.commit_transaction(DEADLINE_S)
    assert producer.flush(DEADLINE_S) == 0
    assert not failures, failures
    return written


def read(cluster: Cluster, topic: str, *, partitions: int) -> dict[int, list[bytes]]:
    """Returns all committed records."""
    consumer = Consumer(
        CLIENT_SETTINGS
        | {
            **cluster.client_settings(),
            "group.id": "not-joined",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
        }
    )
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    records: dict[int, list[bytes]] = {index: [] for index in range(partitions)}
    at_end: set[int | None] = set()
    deadline_s = time.monotonic() + DEADLINE_S
    while len(at_end) < partitions:
        assert time.monotonic() < deadline_s, f"{topic} was not read in {DEADLINE_S} s"
        for message in consumer.consume(1_000, timeout=0.2):
            index, value, error = message.partition(), message.value(), message.error()
            if error and error.code() == KafkaError._PARTITION_EOF:
                at_end.add(index)
            elif not error and index is not None and value is not None:
                records[index].append(value)
    consumer.close()
    return records


def concatenate(
    before: dict[int, list[bytes]], after: dict[int, list[bytes]]
) -> dict[int, list[bytes]]:
    return {index: before[index] + after[index] for index in before}


def consume(
    cluster: Cluster, group: str, topic: str, count: int, *, protocol: str = "classic"
) -> int:
    """Consumes `count` records as a group and commits them."""
    consumer = Consumer(
        CLIENT_SETTINGS
        | {
            **cluster.client_settings(),
            "group.id": group,
            "group.protocol": protocol,
            **({"session.timeout.ms": 6_000} if protocol == "classic" else {}),
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    consumed = 0

    def has_all() -> bool:
        nonlocal consumed
        messages = [
            message for message in consumer.consume(count - consumed, 0.5) if not message.error()
        ]
        consumed += len(messages)
        return consumed == count

    wait_until(has_all, f"{group} has consumed {count} records", DEADLINE_S)
    consumer.commit(asynchronous=False)
    consumer.close()
    return consumed


def cluster_tool(
    cluster: Cluster, name: str, *arguments: str, server: ProcessNode | None = None
) -> str:
    """Runs one of Kafka's tools, with one server or all, as the administrator."""
    bootstrap = cluster.bootstrap_servers if server is None else server.bootstrap_server
    if cluster.security:
        arguments = ("--command-config", str(cluster.security.command_config()), *arguments)
    return run_peer("tool", name, "--bootstrap-server", bootstrap, *arguments)


def elect_preferred(cluster: Cluster, topic: str, partition: int) -> None:
    admin = AdminClient(cluster.client_settings())
    topic_partition = TopicPartition(topic, partition)
    (failure,) = (
        admin.elect_leaders(ElectionType.PREFERRED, [topic_partition]).result(DEADLINE_S).values()
    )
    assert failure is None, failure


def reassign(cluster: Cluster, topic: str, replicas: dict[int, list[int]], plan: Path) -> None:
    """Reassigns partitions with Kafka's tool and waits until it reports completion."""
    partitions = [
        {"topic": topic, "partition": index, "replicas": replica_ids}
        for index, replica_ids in replicas.items()
    ]
    plan.write_text(json.dumps({"version": 1, "partitions": partitions}))
    file = ("--reassignment-json-file", str(plan))
    cluster_tool(cluster, "reassign-partitions", "--execute", *file)

    def is_complete() -> bool:
        output = cluster_tool(cluster, "reassign-partitions", "--verify", *file)
        return output.count("is completed") == len(replicas)

    wait_until(is_complete, f"{topic} has moved", DEADLINE_S)


def assert_equal_replicas(nodes: list[ProcessNode], topic: str, partition: int) -> None:
    """Waits until the log files of all replicas are equal, byte for byte."""
    folders = [node.log_dir / f"{topic}-{partition}" for node in nodes]
    wait_until(
        lambda: len({records_on_disk(folder) for folder in folders}) == 1,
        f"{topic}-{partition} is the same on {[node.node_id for node in nodes]}",
    )


def assert_no_problems_logged(cluster: Cluster) -> None:
    """Fails if the log of a node has unexpected warnings or errors."""
    problems = [
        f"{node.node_id} ({node.program}): {output[:400]}"
        for node in cluster.nodes.values()
        for output in log_entries(node)
        if PROBLEM.match(output) and not EXPECTED_PROBLEMS.search(output)
    ]
    assert not problems, "\n".join(problems)


def log_entries(node: ProcessNode) -> Iterator[str]:
    """Yields each line of the log with the next line, which can be its exception."""
    lines = node.log_file.read_text(errors="replace").splitlines()
    yield from map("\n".join, pairwise([*lines, ""]))
