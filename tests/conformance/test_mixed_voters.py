"""Quorums of Barnabas and Kafka nodes, which vote for each other and follow each other."""

import contextlib
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

import pytest
from tests.cluster.chaos.invariants import records_on_disk
from tests.cluster.chaos.run import ChaosRun
from tests.cluster.cluster import Cluster, Quorum
from tests.cluster.node import BARNABAS, KAFKA, NodeProgram, ProcessNode
from tests.cluster.quorum_view import quorum_view
from tests.conformance.brokers import run_peer
from tests.conformance.cluster import assert_no_problems_logged, read, write
from tests.wait import wait_until

from barnabas.testing.requests import fetch_metadata, send_request
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest

pytestmark = [pytest.mark.peer, pytest.mark.timeout(400)]

PARTITIONS = 3
METADATA = "__cluster_metadata-0"


def test_nodes_of_both_programs_lead_the_quorum(tmp_path: Path) -> None:
    """The active controller is killed until nodes of both programs have led."""
    with Cluster.combined(tmp_path, [BARNABAS, KAFKA, BARNABAS], quorum=Quorum.STATIC) as cluster:
        written: dict[str, dict[int, list[bytes]]] = {}
        for active in active_controllers_of_both(cluster):
            topic = f"topic-{len(written)}"
            cluster.create_topic(topic, PARTITIONS)
            written[topic] = write(cluster, topic, 100, partitions=PARTITIONS)
            cluster.kill_node(active)
            wait_for_other_leader(cluster, active)
            cluster.start_node(active)
            cluster.wait_until_ready()
            cluster.wait_until_in_sync()
        for topic, values in written.items():
            assert read(cluster, topic, partitions=PARTITIONS) == values
        assert_no_problems_logged(cluster)
        cluster.close()
        assert_equal_metadata(cluster)


def test_an_isolated_leader_drops_its_uncommitted_records(tmp_path: Path) -> None:
    """Until nodes of both programs have been isolated."""
    with Cluster.combined(tmp_path, [KAFKA, BARNABAS, KAFKA], with_network=True) as cluster:
        network = cluster.network
        assert network
        for number, active in enumerate(active_controllers_of_both(cluster)):
            others = [node_id for node_id in cluster.nodes if node_id != active.node_id]
            links = [method for other in others for method in permutations((active.node_id, other))]
            network.cut(links)
            assert not creates_topic(active, f"lost-{number}")
            wait_until_created(wait_for_other_leader(cluster, active), f"kept-{number}")
            network.heal(links)
            cluster.wait_until_ready()
            cluster.wait_until_in_sync()
        topics = {
            topic for node in cluster.brokers for topic, _ in fetch_metadata(node.port).partitions
        }
        assert topics == {f"kept-{index}" for index in range(number + 1)}
        cluster.close()
        assert_equal_metadata(cluster)


@pytest.mark.parametrize(
    ("first", "joining"),
    [(KAFKA, BARNABAS), (BARNABAS, KAFKA)],
    ids=["barnabas-joins-kafka", "kafka-joins-barnabas"],
)
def test_kafkas_tool_adds_and_removes_a_voter(
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
        run_peer(
            *("tool", "metadata-quorum", "--bootstrap-server", cluster.bootstrap_servers),
            *("--command-config", str(second.properties_file), "add-controller"),
        )
        assert voter_ids(cluster) == {1, 2}
        cluster.create_topic("while-both-vote", PARTITIONS, 1)
        (directory_id,) = (
            line.partition("=")[2]
            for line in (second.log_dir / "meta.properties").read_text().splitlines()
            if line.startswith("directory.id=")
        )
        run_peer(
            *("tool", "metadata-quorum", "--bootstrap-server", cluster.bootstrap_servers),
            *("remove-controller", "--controller-id", "2"),
            *("--controller-directory-id", directory_id),
        )
        assert voter_ids(cluster) == {1}


@pytest.mark.parametrize("programs", [[BARNABAS, KAFKA, BARNABAS]], ids=["one-kafka"])
@pytest.mark.parametrize("is_secured", [False, True], ids=["plaintext", "secured"])
def test_a_mixed_cluster_keeps_its_invariants_under_faults(
    programs: list[NodeProgram], is_secured: bool, tmp_path: Path
) -> None:
    chaos = ChaosRun(tmp_path, programs, seed=1, duration_s=40, is_secured=is_secured)
    chaos.run()
    assert not chaos.findings, chaos.report


def active_controllers_of_both(cluster: Cluster) -> Iterator[ProcessNode]:
    """Yields the active controller until nodes of both programs have led."""
    led: set[NodeProgram] = set()
    while led != {BARNABAS, KAFKA}:
        active = cluster.active_controller()
        led.add(active.program)
        yield active


def wait_for_other_leader(cluster: Cluster, active: ProcessNode) -> ProcessNode:
    """Returns a new leader by its own response: Kafka's brokers may still wait for the old one."""
    records: list[ProcessNode] = []

    def has_other_leader() -> bool:
        for node in cluster.controllers:
            if node is not active and node.is_running:
                with contextlib.suppress(OSError):
                    view = quorum_view(node.controller_port)
                    if view is not None and view.leader == node.node_id:
                        records.append(node)
        return bool(records)

    wait_until(has_other_leader, "another controller is active")
    return records[0]


def wait_until_created(active: ProcessNode, topic: str) -> None:
    wait_until(lambda: creates_topic(active, topic), f"{active.node_id} creates {topic}")


def creates_topic(active: ProcessNode, topic: str) -> bool:
    """Whether the controller creates the topic in time."""
    new = CreatableTopic(name=topic, num_partitions=1, replication_factor=3)
    with contextlib.suppress(OSError):
        response = send_request(active.controller_port, CreateTopicsRequest(topics=[new]), 7)
        return response.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    return False


def assert_equal_metadata(cluster: Cluster) -> None:
    """Fails if the metadata log of a stopped node is not a prefix of the longest one."""
    logs = sorted(
        (records_on_disk(node.log_dir / METADATA) for node in cluster.nodes.values()), key=len
    )
    assert all(logs[-1].startswith(log) for log in logs)


def voter_ids(cluster: Cluster) -> set[int]:
    view = cluster.quorum_view()
    assert view
    return set(view.voters)
