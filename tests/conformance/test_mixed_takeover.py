"""A cluster's directories taken over: stopped by one implementation, started by the other."""

from pathlib import Path

import pytest
from tests.cluster.cluster import Cluster, Quorum
from tests.cluster.node import BARNABAS, KAFKA, Program
from tests.conformance.cluster import assert_equal_copies, read, write

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]

PARTITIONS = 3


@pytest.mark.parametrize("quorum", [Quorum.STATIC, Quorum.DYNAMIC])
@pytest.mark.parametrize(
    ("first", "second"), [(KAFKA, BARNABAS), (BARNABAS, KAFKA)], ids=["from-kafka", "to-kafka"]
)
def test_a_cluster_is_taken_over_and_goes_on(
    first: Program, second: Program, quorum: Quorum, tmp_path: Path
) -> None:
    """And back again; each adds records, a transaction and a topic."""
    cluster = Cluster.combined(tmp_path, [first] * 3, quorum=quorum)
    written: dict[str, dict[int, list[bytes]]] = {}
    with cluster:
        for turn, program in enumerate((first, second, first)):
            if turn:
                cluster.stop()
                for node in cluster.nodes.values():
                    node.program = program
                cluster.start()
            cluster.await_whole()
            for topic, values in written.items():
                assert read(cluster, topic, partitions=PARTITIONS) == values
                add(cluster, topic, values, "")
            topic = f"topic-{turn}"
            cluster.create_topic(topic, PARTITIONS)
            written[topic] = {index: [] for index in range(PARTITIONS)}
            add(cluster, topic, written[topic], "")
            add(cluster, topic, written[topic], "same-id")
        for topic, values in written.items():
            assert read(cluster, topic, partitions=PARTITIONS) == values
            for index in range(PARTITIONS):
                assert_equal_copies(cluster.brokers, topic, index)


def add(
    cluster: Cluster, topic: str, values: dict[int, list[bytes]], transactional_id: str
) -> None:
    more = write(cluster, topic, 200, partitions=PARTITIONS, transactional_id=transactional_id)
    for index, added in more.items():
        values[index] += added
