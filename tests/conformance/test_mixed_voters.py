"""One quorum of both: Barnabas and the real Kafka vote for each other and follow each other."""

import contextlib
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest
from tests.cluster.ask import quorum_view
from tests.cluster.chaos.run import ChaosRun
from tests.cluster.chaos.verify import records_on_disk
from tests.cluster.cluster import Cluster, Quorum
from tests.cluster.node import BARNABAS, KAFKA, NodeProgram, ProcessNode
from tests.conformance.brokers import peer
from tests.conformance.cluster import assert_no_complaints, read, write
from tests.wait import wait_until

from barnabas.testing.requests import fetch_metadata, send_request
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest

pytestmark = [pytest.mark.peer, pytest.mark.timeout(400)]

PARTITIONS = 3
METADATA = "__cluster_metadata-0"


def test_either_leads_the_quorum(tmp_path: Path) -> None:
    """The active controller is killed until each implementation has led the others."""
    with Cluster.combined(tmp_path, [BARNABAS, KAFKA, BARNABAS], quorum=Quorum.STATIC) as cluster:
        written: dict[str, dict[int, list[bytes]]] = {}
        for active in until_each_has_led(cluster):
            topic = f"topic-{len(written)}"
            cluster.create_topic(topic, PARTITIONS)
            written[topic] = write(cluster, topic, 100, partitions=PARTITIONS)
            cluster.kill_node(active)
            another(cluster, active)
            cluster.start_node(active)
            cluster.wait_until_ready()
            cluster.wait_until_in_sync()
        for topic, values in written.items():
            assert read(cluster, topic, partitions=PARTITIONS) == values
        assert_no_complaints(cluster)
        cluster.close()
        assert_equal_metadata(cluster)


def test_a_leader_cut_off_gives_up_what_the_others_never_had(tmp_path: Path) -> None:
    """Again and again, until it has been one of each implementation."""
    with Cluster.combined(tmp_path, [KAFKA, BARNABAS, KAFKA], with_network=True) as cluster:
        network = cluster.network
        assert network
        for number, active in enumerate(until_each_has_led(cluster)):
            others = [each for each in cluster.nodes if each != active.node_id]
            ways = [way for each in others for way in permutations((active.node_id, each))]
            network.cut(ways)
            assert not creates(active, f"lost-{number}")
            await_creation(another(cluster, active), f"kept-{number}")
            network.heal(ways)
            cluster.wait_until_ready()
            cluster.wait_until_in_sync()
        topics = {
            topic for node in cluster.brokers for topic, _ in fetch_metadata(node.port).partitions
        }
        assert topics == {f"kept-{each}" for each in range(number + 1)}
        cluster.close()
        assert_equal_metadata(cluster)


@pytest.mark.parametrize(
    ("first", "joining"),
    [(KAFKA, BARNABAS), (BARNABAS, KAFKA)],
    ids=["barnabas-joins-kafka", "kafka-joins-barnabas"],
)
def test_an_observer_is_made_a_voter_by_kafkas_tool(
    first: NodeProgram, joining: NodeProgram, tmp_path: Path
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
            *("tool", "metadata-quorum", "--bootstrap-server", cluster.bootstrap_servers),
            *("--command-config", str(second.properties_file), "add-controller"),
        )
        assert set_of_voters(cluster) == {1, 2}
        cluster.create_topic("while-both-vote", PARTITIONS, 1)
        (directory_id,) = (
            line.partition("=")[2]
            for line in (second.log_dir / "meta.properties").read_text().splitlines()
            if line.startswith("directory.id=")
        )
        peer(
            *("tool", "metadata-quorum", "--bootstrap-server", cluster.bootstrap_servers),
            *("remove-controller", "--controller-id", "2"),
            *("--controller-directory-id", directory_id),
        )
        assert set_of_voters(cluster) == {1}


@pytest.mark.parametrize("programs", [[BARNABAS, KAFKA, BARNABAS]], ids=["one-kafka"])
def test_a_mixed_cluster_keeps_its_promises_whatever_happens(
    programs: list[NodeProgram], tmp_path: Path
) -> None:
    chaos = ChaosRun(tmp_path, programs, seed=1, duration_s=40)
    chaos.run()
    assert not chaos.findings, chaos.report


def until_each_has_led(cluster: Cluster) -> Iterator[ProcessNode]:
    """The active controller, which is another one each time."""
    led: set[NodeProgram] = set()
    while led != {BARNABAS, KAFKA}:
        active = cluster.active_controller()
        led.add(active.program)
        yield active


def another(cluster: Cluster, active: ProcessNode) -> ProcessNode:
    """Who leads instead, by its own word: Kafka's brokers may still wait for the one before."""
    found: list[ProcessNode] = []

    def is_led_by_another() -> bool:
        for node in cluster.controllers:
            if node is not active and node.is_running:
                with contextlib.suppress(OSError):
                    seen = quorum_view(node.controller_port)
                    if seen is not None and seen.leader == node.node_id:
                        found.append(node)
        return bool(found)

    wait_until(is_led_by_another, "another controller is active")
    return found[0]


def await_creation(active: ProcessNode, topic: str) -> None:
    wait_until(lambda: creates(active, topic), f"{active.node_id} creates {topic}")


def creates(active: ProcessNode, topic: str) -> bool:
    """Whether the controller does so, and says it in time."""
    new = CreatableTopic(name=topic, num_partitions=1, replication_factor=3)
    with contextlib.suppress(OSError):
        answer = send_request(active.controller_port, CreateTopicsRequest(topics=[new]), 7)
        return answer.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    return False


def assert_equal_metadata(cluster: Cluster) -> None:
    """As far as each has it; all have been stopped."""
    logs = sorted(
        (records_on_disk(node.log_dir / METADATA) for node in cluster.nodes.values()), key=len
    )
    assert all(logs[-1].startswith(log) for log in logs)


def set_of_voters(cluster: Cluster) -> set[int]:
    seen = cluster.quorum_view()
    assert seen
    return set(seen.voters)
