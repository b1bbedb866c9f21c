"""One quorum of both: Barnabas and the real Kafka vote for each other and follow each other."""

from pathlib import Path

import pytest
from tests.cluster.chaos.run import ChaosRun
from tests.cluster.chaos.verify import records_on_disk
from tests.cluster.cluster import Cluster, Quorum
from tests.cluster.node import BARNABAS, KAFKA, Node, Program
from tests.conformance.brokers import peer, wait_until
from tests.conformance.cluster import read, write

pytestmark = [pytest.mark.peer, pytest.mark.timeout(400)]

PARTITIONS = 3
METADATA = "__cluster_metadata-0"


@pytest.mark.parametrize("quorum", [Quorum.STATIC, Quorum.DYNAMIC])
def test_either_leads_the_quorum(quorum: Quorum, tmp_path: Path) -> None:
    """The active controller is killed until each implementation has led the others."""
    programs = [BARNABAS, KAFKA, BARNABAS]
    with Cluster.combined(tmp_path, programs, quorum=quorum) as cluster:
        led: set[Program] = set()
        written: dict[str, dict[int, list[bytes]]] = {}
        for number in range(8):
            topic = f"topic-{number}"
            cluster.create_topic(topic, PARTITIONS)
            written[topic] = write(cluster, topic, 100, partitions=PARTITIONS)
            active = cluster.active_controller()
            led.add(active.program)
            if len(led) == 2:
                break
            cluster.kill_node(active)
            await_another(cluster, active)
            cluster.start_node(active)
            cluster.await_ready()
            cluster.await_whole()
        assert led == {BARNABAS, KAFKA}
        for topic, values in written.items():
            assert read(cluster, topic, partitions=PARTITIONS) == values
        cluster.end()
        logs = sorted(
            (records_on_disk(node.data / METADATA) for node in cluster.nodes.values()), key=len
        )
        assert all(logs[-1].startswith(log) for log in logs)


@pytest.mark.parametrize(
    ("first", "joining"),
    [(KAFKA, BARNABAS), (BARNABAS, KAFKA)],
    ids=["barnabas-joins-kafka", "kafka-joins-barnabas"],
)
def test_an_observer_is_made_a_voter_by_kafkas_tool(
    first: Program, joining: Program, tmp_path: Path
) -> None:
    settings = {
        "offsets.topic.replication.factor": "1",
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
    }
    programs = [first, joining]
    with Cluster.combined(
        tmp_path, programs, quorum=Quorum.STANDALONE, settings=settings
    ) as cluster:
        second = cluster.nodes[2]
        before = cluster.quorum_view()
        assert before
        assert (set(before.voters), set(before.observers)) == ({1}, {2})
        peer(
            *("tool", "metadata-quorum", "--bootstrap-server", cluster.bootstrap),
            *("--command-config", str(second.properties_file), "add-controller"),
        )
        assert set_of_voters(cluster) == {1, 2}
        cluster.create_topic("while-both-vote", PARTITIONS, 1)
        (directory_id,) = (
            line.partition("=")[2]
            for line in (second.data / "meta.properties").read_text().splitlines()
            if line.startswith("directory.id=")
        )
        peer(
            *("tool", "metadata-quorum", "--bootstrap-server", cluster.bootstrap),
            *("remove-controller", "--controller-id", "2"),
            *("--controller-directory-id", directory_id),
        )
        assert set_of_voters(cluster) == {1}


@pytest.mark.parametrize("programs", [[BARNABAS, KAFKA, BARNABAS]], ids=["one-kafka"])
def test_a_mixed_cluster_keeps_its_promises_whatever_happens(
    programs: list[Program], tmp_path: Path
) -> None:
    chaos = ChaosRun(tmp_path, programs, seed=1, duration_s=40)
    chaos.run()
    assert not chaos.findings, chaos.report


def await_another(cluster: Cluster, active: Node) -> None:
    wait_until(lambda: cluster.active_controller() is not active, "another controller is active")


def set_of_voters(cluster: Cluster) -> set[int]:
    seen = cluster.quorum_view()
    assert seen
    return set(seen.voters)
