"""The memory of the coordinators' state, and the time to load it after a restart."""

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from confluent_kafka.admin import ResourceType

from bench.brokers import BrokerUnderTest, Kafka
from bench.case import Case, Figures
from bench.connection_swarm import ConnectionSwarm
from bench.log_cleaning import (
    ALWAYS_DIRTY,
    MIN_SEGMENT_BYTES,
    NEVER_DIRTY,
    alter,
    quick_cleaner,
    wait_until_clean,
)
from bench.offsets import check_commit, commit_frame, wait_for_groups
from bench.sections.groups import KINDS, AnyGroup, create_topic

OFFSETS = 1_000_000
OFFSETS_A_GROUP = 100
ROUNDS = 20
OFFSETS_TOPIC = "__consumer_offsets"
COMMITTERS = 4
MEMBERS_A_GROUP = 100
GROUPS = 10
PARTITIONS = 400
SETTLE_S = 2


def memory_mb(broker: BrokerUnderTest) -> float:
    """Returns memory in use. A JVM keeps its heap, so Kafka's is the size of live objects."""
    time.sleep(SETTLE_S)
    if not isinstance(broker, Kafka):
        return float(broker.process.rss_mb())
    histogram = subprocess.run(
        ["jcmd", str(broker.process.pid), "GC.class_histogram"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    total = re.search(r"^Total +\d+ +(\d+)", histogram, re.MULTILINE)
    assert total is not None
    return int(total[1]) / 1e6


# Members


def members(group_type: type[AnyGroup], broker: BrokerUnderTest, _: Any) -> Figures:
    """Measures members, which have connections only while they join."""
    broker.start_empty()
    group_ids = [f"weighed-{index}" for index in range(GROUPS)]
    topic = create_topic(PARTITIONS, group_ids, broker)
    in_each = broker.count(MEMBERS_A_GROUP)
    join_group(group_type, broker, group_ids[0], topic)  # code and buffers that all groups share
    before_mb = memory_mb(broker)
    for group_id in group_ids[1:]:
        join_group(group_type, broker, group_id, topic)
    used_mb = memory_mb(broker) - before_mb
    return {"kb_per_member": used_mb * 1000 / (in_each * (GROUPS - 1))}


def join_group(
    group_type: type[AnyGroup], broker: BrokerUnderTest, group_id: str, topic: str
) -> None:
    group = group_type(broker.address, group_id, topic, PARTITIONS)
    group.join(broker.count(MEMBERS_A_GROUP))
    group.close()


# Offsets


@contextmanager
def committed_offsets(broker: BrokerUnderTest) -> Iterator[Figures]:
    """A broker with only committed offsets; yields the memory of an offset."""
    broker.start_empty()
    group_ids = groups_with_offsets(broker)
    topic = create_topic(OFFSETS_A_GROUP, group_ids[:1], broker)
    wait_for_groups(broker.address, group_ids)
    before_mb = memory_mb(broker)
    commit_for_each(group_ids, topic, broker)
    used_mb = memory_mb(broker) - before_mb
    yield {"bytes_per_offset": used_mb * 1e6 / (len(group_ids) * OFFSETS_A_GROUP)}
    broker.start_empty()


@contextmanager
def compacted_offsets(broker: BrokerUnderTest) -> Iterator[Figures]:
    """A broker with committed offsets, each of them committed many times and then compacted."""
    broker.start_empty()
    group_ids = groups_with_offsets(broker)
    topic = create_topic(OFFSETS_A_GROUP, group_ids[:1], broker)
    wait_for_groups(broker.address, group_ids)
    with quick_cleaner(broker):
        config = {"segment.bytes": str(MIN_SEGMENT_BYTES), "min.cleanable.dirty.ratio": NEVER_DIRTY}
        alter(broker, ResourceType.TOPIC, OFFSETS_TOPIC, config)
        for _ in range(ROUNDS):
            commit_for_each(group_ids, topic, broker)
        compact_s = compact_offsets(broker)
    yield {"compact_s": compact_s}
    broker.start_empty()


def compact_offsets(broker: BrokerUnderTest) -> float:
    """Compacts all but the active segments; returns the seconds."""
    ends = {
        folder.name.rpartition("-")[2]: max(int(path.stem) for path in folder.glob("*.log"))
        for folder in broker.data.glob(f"{OFFSETS_TOPIC}-*")
    }
    began_s = time.perf_counter()
    ratio = {"min.cleanable.dirty.ratio": ALWAYS_DIRTY}
    alter(broker, ResourceType.TOPIC, OFFSETS_TOPIC, ratio)
    for partition, end_offset in ends.items():
        if end_offset:
            wait_until_clean(broker, OFFSETS_TOPIC, int(partition), end_offset)
    return time.perf_counter() - began_s


def commit_for_each(group_ids: list[str], topic: str, broker: BrokerUnderTest) -> None:
    requests = (commit_frame(group_id, topic, OFFSETS_A_GROUP) for group_id in group_ids)

    def next_request(_: int, response: memoryview) -> bytes | None:
        check_commit(response)
        return next(requests, None)

    swarm = ConnectionSwarm(broker.address, COMMITTERS)
    swarm.exchange({number: next(requests) for number in range(COMMITTERS)}, next_request)
    swarm.close()


def groups_with_offsets(broker: BrokerUnderTest) -> list[str]:
    return [f"holder-{index}" for index in range(broker.count(OFFSETS) // OFFSETS_A_GROUP)]


def load(broker: BrokerUnderTest, figures: Figures) -> Figures:
    """Measures from the start of the process until every group has its offsets."""
    broker.stop()
    began_s = time.perf_counter()
    broker.start()
    started_s = time.perf_counter()
    wait_for_groups(broker.address, groups_with_offsets(broker), f"groups-{OFFSETS_A_GROUP}")
    served_s = time.perf_counter()
    return figures | {
        "start_to_served_s": served_s - began_s,
        "loading_s": served_s - started_s,
        "loading_cpu_s": broker.process.cpu_s(),
        "peak_rss_mb": broker.peak_rss_mb(),
        "memory_mb": memory_mb(broker),
    }


CASES = [
    *(
        Case(f"memory, {name} members", partial(members, group_type), repeat=1)
        for name, group_type in KINDS.items()
    ),
    Case(f"memory, {OFFSETS} committed offsets", load, committed_offsets, repeat=1),
]

COMPACTED = [
    Case(
        f"compacted, {OFFSETS} offsets committed {ROUNDS} times", load, compacted_offsets, repeat=1
    ),
]
