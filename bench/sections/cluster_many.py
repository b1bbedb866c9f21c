"""A thousand partitions on three brokers: idle, one broker dies, all brokers restart."""

import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tests.cluster.node import ProcessNode
from tests.wait import wait_until

from barnabas.metadata.frames import decode_record
from barnabas.testing.requests import fetch_metadata
from barnabas.wire.messages.metadata_records import PartitionChangeRecord
from barnabas.wire.records.batch import CONTROL_BIT, BatchHeader, iterate_batches
from barnabas.wire.records.read import read_records
from bench.case import Case, Figures
from bench.clusters import ClusterUnderTest

TOPICS = 10
PARTITIONS_EACH = 100
SETTLE_S = 15
IDLE_S = 20
TIMEOUT_S = 120
POLL_INTERVAL_S = 0.01


@contextmanager
def many_partitions(cluster: ClusterUnderTest) -> Iterator[list[str]]:
    names = [f"many-{uuid.uuid4().hex[:8]}" for _ in range(TOPICS)]
    cluster.create(names, cluster.count(PARTITIONS_EACH))
    cluster.pause_s(SETTLE_S)
    yield names
    cluster.delete(names)


def idle(cluster: ClusterUnderTest, _: list[str]) -> Figures:
    before_s, began_s = cluster.process.cpu_s(), time.perf_counter()
    cluster.pause_s(IDLE_S)
    cores = (cluster.process.cpu_s() - before_s) / (time.perf_counter() - began_s)
    return {"idle_cpu_percent": cores * 100, "rss_mb": cluster.process.rss_mb()}


def fail_over(cluster: ClusterUnderTest, _: list[str]) -> Figures:
    """Kill a broker that is not the active controller; wait until its partitions have leaders."""
    controller = cluster.cluster.active_controller()
    killed = cluster.other_nodes(controller)[0]
    before = _last_offset(controller)
    leaders_lost = _led_by(controller, killed)
    ended_s = time.perf_counter()
    killed.kill()
    wait_until(
        lambda: not _led_by(controller, killed),
        "a leader for all",
        TIMEOUT_S,
        poll_s=POLL_INTERVAL_S,
    )
    led_again_s = time.perf_counter() - ended_s
    batches = [size for size in _elections(controller, before) if size]
    began_s = time.perf_counter()
    cluster.cluster.start_node(killed)
    cluster.cluster.wait_until_ready()
    cluster.cluster.wait_until_in_sync()
    whole_again_s = time.perf_counter() - began_s
    cluster.elect_preferred_leaders()
    return {
        "led_again_s": led_again_s,
        "leaders_lost": leaders_lost,
        "batches_of_elections": len(batches),
        "whole_again_s": whole_again_s,
    }


def restart(cluster: ClusterUnderTest, _: list[str]) -> Figures:
    """Stop all brokers, and start them until every replica is in sync."""
    nodes = cluster.cluster
    partitions = len(_partitions(nodes.brokers[0]))
    began_s = time.perf_counter()
    with ThreadPoolExecutor() as threads:
        list(threads.map(_stop, nodes.nodes.values()))
    stopped_s = time.perf_counter()
    for node in nodes.nodes.values():
        nodes.start_node(node)
    nodes.wait_until_ready()
    _wait_for(lambda: _all_led(nodes.brokers, partitions), "a leader for all")
    led_s = time.perf_counter()
    nodes.wait_until_in_sync(TIMEOUT_S)
    return {
        "stop_s": stopped_s - began_s,
        "start_to_led_s": led_s - stopped_s,
        "start_to_whole_s": time.perf_counter() - stopped_s,
    }


def _stop(node: ProcessNode) -> None:
    with contextlib.suppress(TimeoutError):  # Kafka's last node waits for a quorum forever
        node.stop()


def _partitions(node: ProcessNode) -> dict[tuple[str, int], int]:
    return {key: replicas.leader for key, replicas in fetch_metadata(node.port).partitions.items()}


def _led_by(node: ProcessNode, leader: ProcessNode) -> int:
    return list(_partitions(node).values()).count(leader.node_id)


def _all_led(brokers: list[ProcessNode], count: int) -> bool:
    """Whether every broker has a leader for every partition."""
    leaders_by_broker = [_partitions(node) for node in brokers]
    return all(
        len(leaders) == count and min(leaders.values()) >= 0 for leaders in leaders_by_broker
    )


def _metadata_batches(node: ProcessNode) -> Iterator[tuple[BatchHeader, list[bytes]]]:
    """Yields the metadata log of a node's disk, whose format is the same for both."""
    for segment in sorted((node.log_dir / "__cluster_metadata-0").glob("*.log")):
        content = segment.read_bytes()
        for position, header in iterate_batches(content):
            if not header.attributes & CONTROL_BIT:
                yield header, [record.value or b"" for record in read_records(content, position)]


def _last_offset(node: ProcessNode) -> int:
    return max(header.last_offset for header, _ in _metadata_batches(node))


def _elections(node: ProcessNode, after_offset: int) -> list[int]:
    """Returns the number of elected leaders of each batch after an offset."""
    return [
        sum(_is_election(value) for value in values)
        for header, values in _metadata_batches(node)
        if header.base_offset > after_offset
    ]


def _is_election(value: bytes) -> bool:
    record = decode_record(value)
    return isinstance(record, PartitionChangeRecord) and record.leader >= 0


def _wait_for(condition: Callable[[], object], what: str) -> None:
    wait_until(condition, what, TIMEOUT_S, poll_s=POLL_INTERVAL_S)


_SIZE = f"{TOPICS * PARTITIONS_EACH} partitions"
CASES = [
    Case(f"{_SIZE}, 3 copies: idle", idle, many_partitions, repeat=1),
    Case(f"{_SIZE}, 3 copies: kill -9 of a broker", fail_over, many_partitions),
    Case(f"{_SIZE}, 3 copies: restart of all", restart, many_partitions),
]
