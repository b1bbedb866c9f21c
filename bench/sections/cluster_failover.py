"""The effect on clients when a node dies or is stopped, and the time until all is in sync again."""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from tests.cluster.node import ProcessNode
from tests.cluster.quorum_view import quorum_view
from tests.wait import wait_until

from barnabas.testing.requests import send_request
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from bench.case import Case, Figures
from bench.clusters import ClusterUnderTest
from bench.continuous_producers import ContinuousProducers

PARTITIONS = 6
STEADY_S = 3
TIMEOUT_S = 60
POLL_INTERVAL_S = 0.005
CREATE_TOPICS_VERSION = 7

StopNode = Callable[[ProcessNode], None]


@contextmanager
def replicated(cluster: ClusterUnderTest) -> Iterator[str]:
    """A topic with partitions on every broker."""
    topic = f"failover-{uuid.uuid4().hex[:8]}"
    cluster.create([topic], PARTITIONS)
    yield topic
    cluster.delete([topic])


def stop_leader(stop_node: StopNode, cluster: ClusterUnderTest, topic: str) -> Figures:
    """Stop a leader that is not the active controller."""
    controller = cluster.cluster.active_controller()
    leaders = set(_leaders(cluster, topic).values()) - {controller.node_id}
    return _stop_and_restart(stop_node, cluster, topic, cluster.cluster.nodes[min(leaders)])


def kill_controller_node(cluster: ClusterUnderTest, topic: str) -> Figures:
    """Kill the node of the active controller, which also leads partitions."""
    return _stop_and_restart(ProcessNode.kill, cluster, topic, cluster.cluster.active_controller())


def controller_election(cluster: ClusterUnderTest, _: Any) -> Figures:
    """Measures from the kill until a controller is elected, and until it creates a topic."""
    node = cluster.cluster.active_controller()
    others = cluster.other_nodes(node)
    ended_s = time.perf_counter()
    node.kill()
    _wait_for(lambda: any(map(_leads_the_quorum, others)), "another controller is active")
    elected_s = time.perf_counter()
    topic = f"elected-{uuid.uuid4().hex[:8]}"
    _wait_for(lambda: _creates(others[0], topic), "a topic is created")
    created_s = time.perf_counter()
    _restart_node(cluster, node)
    cluster.delete([topic])
    return {"elected_s": elected_s - ended_s, "topic_created_s": created_s - ended_s}


def _stop_and_restart(
    stop_node: StopNode, cluster: ClusterUnderTest, topic: str, node: ProcessNode
) -> Figures:
    led_partitions = [
        index for index, leader in _leaders(cluster, topic).items() if leader == node.node_id
    ]
    assert led_partitions, f"node {node.node_id} leads nothing"
    brokers = [("127.0.0.1", node.port) for node in cluster.other_nodes()]
    with ContinuousProducers(brokers, topic, PARTITIONS) as producers:
        cluster.pause_s(STEADY_S)
        ended_s = time.perf_counter()
        stop_node(node)
        producers.wait_for_acknowledgements(time.perf_counter(), TIMEOUT_S)
        cluster.pause_s(STEADY_S)
        gaps_s = producers.gaps_s(ended_s - 1)
        in_sync_s = _restart_node(cluster, node)
    cluster.pause_s(STEADY_S)
    cluster.elect_preferred_leaders()
    return {
        "longest_gap_s": max(gaps_s[index] for index in led_partitions),
        "others_gap_s": max(
            gaps_s[index] for index in range(PARTITIONS) if index not in led_partitions
        ),
        "whole_again_s": in_sync_s,
    }


def _restart_node(cluster: ClusterUnderTest, node: ProcessNode) -> float:
    """Restart the node; returns the time until every replica is in sync."""
    began_s = time.perf_counter()
    cluster.cluster.start_node(node)
    cluster.cluster.wait_until_ready()
    cluster.cluster.wait_until_in_sync()
    return time.perf_counter() - began_s


def _leaders(cluster: ClusterUnderTest, topic: str) -> dict[int, int]:
    metadata = cluster.cluster.metadata()
    assert metadata is not None, "no broker responds"
    return {
        index: replicas.leader
        for (name, index), replicas in metadata.partitions.items()
        if name == topic
    }


def _leads_the_quorum(node: ProcessNode) -> bool:
    with contextlib.suppress(OSError):
        return quorum_view(node.controller_port) is not None
    return False


def _creates(node: ProcessNode, topic: str) -> bool:
    """Whether a topic can be created through a broker, as a client does it."""
    new = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    request = CreateTopicsRequest(topics=[new], timeout_ms=TIMEOUT_S * 1000)
    with contextlib.suppress(OSError):
        response = send_request(node.port, request, CREATE_TOPICS_VERSION)
        done = ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS
        return response.topics[0].error_code in done
    return False


def _wait_for(condition: Callable[[], object], what: str) -> None:
    wait_until(condition, what, TIMEOUT_S, poll_s=POLL_INTERVAL_S)


CASES = [
    Case("kill -9 of a leader", partial(stop_leader, ProcessNode.kill), replicated),
    Case("clean stop of a leader", partial(stop_leader, ProcessNode.stop), replicated),
    Case("kill -9 of the controller's node", kill_controller_node, replicated),
    Case("kill -9 of the active controller", controller_election),
]
