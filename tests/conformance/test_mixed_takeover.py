"""A cluster's directories taken over, node by node: stopped by one, started by the other."""

from pathlib import Path

import pytest
from tests.cluster.cluster import Cluster, Quorum
from tests.cluster.node import BARNABAS, KAFKA, Program
from tests.cluster.numbered import NumberedWriter, read_numbers
from tests.conformance.cluster import (
    assert_equal_copies,
    assert_no_complaints,
    joined,
    read,
    taken,
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
def test_nodes_change_one_by_one_under_load(
    first: Program, second: Program, quorum: Quorum, tmp_path: Path
) -> None:
    """Records are written all the time; after each change a transaction and a group go on."""
    with Cluster.combined(tmp_path, [first] * 3, quorum=quorum) as cluster:
        for topic in STREAM, TRANSACTIONS:
            cluster.create_topic(topic, PARTITIONS)
        written = write(cluster, TRANSACTIONS, 10, partitions=PARTITIONS, transactional_id="id")
        assert taken(cluster, "group", TRANSACTIONS, 10 * PARTITIONS) == 10 * PARTITIONS
        load = NumberedWriter(
            cluster.bootstrap, STREAM, PARTITIONS, record_bytes=100, pause_s=0.005
        )
        load.start()
        for node in [*cluster.nodes.values()] * 2:
            cluster.stop_node(node)
            node.program = first if node.program is second else second
            cluster.start_node(node)
            cluster.await_ready()
            cluster.await_whole()
            more = write(cluster, TRANSACTIONS, 10, partitions=PARTITIONS, transactional_id="id")
            written = joined(written, more)
            assert taken(cluster, "group", TRANSACTIONS, 10 * PARTITIONS) == 10 * PARTITIONS
        load.stop()
        assert read(cluster, TRANSACTIONS, partitions=PARTITIONS) == written
        for partition, acknowledged in load.acknowledged.numbers.items():
            numbers = read_numbers(cluster.bootstrap, STREAM, partition)
            assert numbers == list(range(len(numbers)))
            assert all(numbers[offset] == number for offset, number in acknowledged.items())
        for topic in STREAM, TRANSACTIONS:
            for partition in range(PARTITIONS):
                assert_equal_copies(cluster.brokers, topic, partition)
        assert_no_complaints(cluster)
