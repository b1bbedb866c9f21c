"""The nodes of a cluster are replaced one by one: Kafka by Barnabas on the same files, and back."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cluster.cluster import Cluster, Quorum
from tests.cluster.node import BARNABAS, KAFKA, NodeProgram
from tests.cluster.numbered_records import NumberedWriter, read_numbers
from tests.conformance.cluster import (
    assert_equal_replicas,
    assert_no_problems_logged,
    concatenate,
    consume,
    read,
    write,
)

pytestmark = [pytest.mark.peer, pytest.mark.timeout(400)]

PARTITIONS = 3
STREAM, TRANSACTIONS = "stream", "transactions"


@pytest.mark.parametrize(
    ("first", "second", "quorum"),
    [(KAFKA, BARNABAS, Quorum.STATIC), (BARNABAS, KAFKA, Quorum.DYNAMIC)],
    ids=["from-kafka-and-back", "to-kafka-and-back"],
)
def test_nodes_are_replaced_one_by_one_under_load(
    first: NodeProgram, second: NodeProgram, quorum: Quorum, tmp_path: Path
) -> None:
    """Records are written all the time; after each replacement transactions and groups work."""
    with Cluster.combined(tmp_path, [first] * 3, quorum=quorum) as cluster:
        for topic in STREAM, TRANSACTIONS:
            cluster.create_topic(topic, PARTITIONS)
        with background_writer(cluster) as stream:
            written = run_clients(cluster)
            for node in [*cluster.nodes.values()] * 2:
                cluster.stop_node(node)
                node.program = first if node.program is second else second
                cluster.start_node(node)
                cluster.wait_until_ready()
                cluster.wait_until_in_sync()
                written = concatenate(written, run_clients(cluster))
        assert read(cluster, TRANSACTIONS, partitions=PARTITIONS) == written
        for partition, acknowledged in stream.acknowledged.numbers.items():
            numbers = read_numbers(cluster.bootstrap_servers, STREAM, partition)
            assert numbers == list(range(len(numbers)))
            assert all(numbers[offset] == number for offset, number in acknowledged.items())
        for topic in STREAM, TRANSACTIONS:
            for partition in range(PARTITIONS):
                assert_equal_replicas(cluster.brokers, topic, partition)
        assert_no_problems_logged(cluster)


@contextmanager
def background_writer(cluster: Cluster) -> Iterator[NumberedWriter]:
    writer = NumberedWriter(
        cluster.bootstrap_servers, STREAM, PARTITIONS, record_bytes=100, pause_s=0.005
    )
    writer.start()
    try:
        yield writer
    finally:
        writer.stop()


def run_clients(cluster: Cluster) -> dict[int, list[bytes]]:
    """Writes a transaction of the same producer, and reads it with both group protocols."""
    written = write(cluster, TRANSACTIONS, 10, partitions=PARTITIONS, transactional_id="same")
    for protocol in "classic", "consumer":
        count = 10 * PARTITIONS
        assert consume(cluster, protocol, TRANSACTIONS, count, protocol=protocol) == count
    return written
