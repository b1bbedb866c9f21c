"""What a client notices when a node dies or is stopped, and how long until all is well again."""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tests.cluster.quorum_view import quorum_view
from tests.cluster.node import ProcessNode
from tests.wait import wait_until

from barnabas.testing.requests import send_request
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from bench.continuous_producers import ContinuousProducers
from bench.case import Case, Figures
from bench.clusters import ClusterUnderTest

PARTITIONS = 6
STEADY_S = 3
TIMEOUT_S = 60
POLL_INTERVAL_S = 0.005
CREATE_TOPICS_VERSION = 7

StopNode = Callable[[ProcessNode], None]


@contextmanager
def replicated(cluster: ClusterUnderTest) -> Iterator[str]:
    """A topic of which every broker leads some partitions."""
    topic = f"failover-{uuid.uuid4().hex[:8]}"
    cluster.create([topic], PARTITIONS)
    yield topic
    cluster.delete([topic])


def stop_leader(ending: StopNode, cluster: ClusterUnderTest, topic: str) -> Figures:
    """A broker that leads and is not the active controller."""
    controller = cluster.cluster.active_controller()
    leaders = set(_leaders(cluster, topic).values()) - {controller.node_id}
    return _stop_and_restart(ending, cluster, topic, cluster.cluster.nodes[min(leaders)])


def kill_controller_node(cluster: ClusterUnderTest, topic: str) -> Figures:
    """The node of the active controller, which leads partitions too."""
    return _stop_and_restart(ProcessNode.kill, cluster, topic, cluster.cluster.active_controller())


def controller_election(cluster: ClusterUnderTest, _: Any) -> Figures:
    """From the kill until there is another one, and until it decides again."""
    victim = cluster.cluster.active_controller()
    others = cluster.other_nodes(victim)
    ended_s = time.perf_counter()
    victim.kill()
    _wait_for(lambda: any(map(_leads_the_quorum, others)), "another controller is active")
    elected_s = time.perf_counter()
    topic = f"elected-{uuid.uuid4().hex[:8]}"
    _wait_for(lambda: _creates(others[0], topic), "a topic is created")
    created_s = time.perf_counter()
    _restart_node(cluster, victim)
    cluster.delete([topic])
    return {"elected_s": elected_s - ended_s, "topic_created_s": created_s - ended_s}


def _stop_and_restart(
    ending: StopNode, cluster: ClusterUnderTest, topic: str, victim: ProcessNode
) -> Figures:
    led = [index for index, leader in _leaders(cluster, topic).items() if leader == victim.node_id]
    assert led, f"node {victim.node_id} leads nothing"
    brokers = [("127.0.0.1", node.port) for node in cluster.other_nodes()]
    with ContinuousProducers(brokers, topic, PARTITIONS) as acknowledged:
        cluster.pause_s(STEADY_S)
        ended_s = time.perf_counter()
        ending(victim)
        acknowledged.wait_for_acknowledgements(time.perf_counter(), TIMEOUT_S)
        cluster.pause_s(STEADY_S)
        gaps_s = acknowledged.gaps_s(ended_s - 1)
        whole_s = _restart_node(cluster, victim)
    cluster.pause_s(STEADY_S)
    cluster.elect_preferred_leaders()
    return {
        "longest_gap_s": max(gaps_s[index] for index in led),
        "others_gap_s": max(gaps_s[index] for index in range(PARTITIONS) if index not in led),
        "whole_again_s": whole_s,
    }


def _restart_node(cluster: ClusterUnderTest, victim: ProcessNode) -> float:
    """Start the node again; the time until every replica is in sync."""
    began_s = time.perf_counter()
    cluster.cluster.start_node(victim)
    cluster.cluster.wait_until_ready()
    cluster.cluster.wait_until_in_sync()
    return time.perf_counter() - began_s


def _leaders(cluster: ClusterUnderTest, topic: str) -> dict[int, int]:
    seen = cluster.cluster.metadata()
    assert seen is not None, "no broker answers"
    return {
        index: replicas.leader
        for (name, index), replicas in seen.partitions.items()
        if name == topic
    }


def _leads_the_quorum(node: ProcessNode) -> bool:
    with contextlib.suppress(OSError):
        return quorum_view(node.controller_port) is not None
    return False


def _creates(node: ProcessNode, topic: str) -> bool:
    """Whether a topic is created by way of a broker, as a client does it."""
    new = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[new], timeout_ms=TIMEOUT_S * 1000)
    with contextlib.suppress(OSError):
        answer = send_request(node.port, request, CREATE_TOPICS_VERSION)
        done = ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS
        return answer.topics[0].error_code in done
    return False


def _wait_for(condition: Callable[[], object], what: str) -> None:
    wait_until(condition, what, TIMEOUT_S, poll_s=POLL_INTERVAL_S)


CASES = [
    Case("kill -9 of a leader", partial(stop_leader, ProcessNode.kill), replicated),
    Case("clean stop of a leader", partial(stop_leader, ProcessNode.stop), replicated),
    Case("kill -9 of the controller's node", kill_controller_node, replicated),
    Case("kill -9 of the active controller", controller_election),
]
