"""Consumer groups: offset commits, heartbeats, and rebalances with one more member."""

import statistics
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import repeat

from confluent_kafka.admin import NewTopic

from bench.brokers import BrokerUnderTest
from bench.case import Case, Figures
from bench.connection_swarm import ConnectionSwarm
from bench.group_members import ClassicGroup, ConsumerGroup
from bench.offsets import check_commit, commit_frame, find_coordinator, wait_for_groups
from bench.raw_client import RawConnection

COMMITS = 40_000
COMMITS_IN_FLIGHT = 64
MANY_GROUPS = 100
MANY_PARTITIONS = 100
HEARTBEATS = 50_000
WARM_UP_FACTOR = 2
"""A just-in-time compiler needs some 100,000 requests of a kind."""
REPEAT = 5
MEMBERS = 100
MANY_MEMBERS = 500
PARTITIONS_A_MEMBER = 4
ONE_BY_ONE = 5
SETTLE_S = 2
ASSIGNMENT_INTERVAL_S = 1.1
"""A little more than group.consumer.assignment.interval.ms (KIP-1263)."""

AnyGroup = ClassicGroup | ConsumerGroup


@contextmanager
def topic_for(partitions: int, group_ids: list[str], broker: BrokerUnderTest) -> Iterator[str]:
    name = create_topic(partitions, group_ids, broker)
    yield name
    broker.delete([name])


def create_topic(partitions: int, group_ids: list[str], broker: BrokerUnderTest) -> str:
    """Create a topic, and wait for the coordinator of the groups."""
    name = f"groups-{partitions}"
    admin = broker.admin()
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result()
    find_coordinator(broker.address, name)
    wait_for_groups(broker.address, group_ids)
    return name


# Commits


def group_ids_of(count: int) -> list[str]:
    return [f"committers-{index}" for index in range(count)]


def commit(
    groups: int, partitions: int, times: int, broker: BrokerUnderTest, topic: str
) -> Figures:
    """Each group has its own connection, with one commit in flight."""
    figures: Figures = {}
    count = max(broker.count(times), 2 * groups)
    frames = [commit_frame(group_id, topic, partitions) for group_id in group_ids_of(groups)]
    swarm = ConnectionSwarm(broker.address, groups)
    swarm.exchange(dict(enumerate(frames)), lambda _, response: check_commit(response))
    with broker.one_core():
        swarm.send_repeatedly(frames, WARM_UP_FACTOR * count)
        with broker.cpu_per_request(figures, count):
            swarm.send_repeatedly(frames, count)
    swarm.close()
    return figures


def commit_ahead(broker: BrokerUnderTest, topic: str) -> Figures:
    """One group, which pipelines its commits."""
    figures: Figures = {}
    count = broker.count(COMMITS)
    (group_id,) = group_ids_of(1)
    request = commit_frame(group_id, topic, 1)
    connection = RawConnection(broker.address)
    with broker.one_core():
        warm_up = repeat(request, WARM_UP_FACTOR * count)
        connection.send_pipelined(warm_up, in_flight=COMMITS_IN_FLIGHT)
        with broker.cpu_per_request(figures, count):
            connection.send_pipelined(repeat(request, count), in_flight=COMMITS_IN_FLIGHT)
    check_commit(connection.send(request))
    connection.close()
    return figures


# Members


@contextmanager
def group_of(
    group_type: type[AnyGroup], members: int, broker: BrokerUnderTest
) -> Iterator[AnyGroup]:
    """A stable group. The last members join one by one, to warm up a just-in-time compiler."""
    count = max(broker.count(members), 2 * ONE_BY_ONE)
    group_id = f"members-{uuid.uuid4().hex[:8]}"
    partitions = PARTITIONS_A_MEMBER * count
    with topic_for(partitions, [group_id], broker) as topic:
        group = group_type(broker.address, group_id, topic, partitions)
        group.join(count - ONE_BY_ONE)
        time.sleep(SETTLE_S)  # new partitions cause work for a while
        for _ in range(ONE_BY_ONE):
            join_one(group)
        yield group
        group.close()


def join_one(group: AnyGroup) -> float:
    """Returns the milliseconds from the first request until every member has its assignment."""
    if isinstance(group, ConsumerGroup):
        time.sleep(ASSIGNMENT_INTERVAL_S)
    began_s = time.perf_counter()
    group.join(1)
    return (time.perf_counter() - began_s) * 1000


def rejoin(broker: BrokerUnderTest, group: AnyGroup) -> Figures:
    cpu_s = broker.process.cpu_s()
    times_ms = [join_one(group) for _ in range(ONE_BY_ONE)]
    return {
        "stable_again_ms": statistics.median(times_ms),
        "broker_cpu_ms": (broker.process.cpu_s() - cpu_s) * 1000 / ONE_BY_ONE,
    }


def heartbeat(broker: BrokerUnderTest, group: AnyGroup) -> Figures:
    figures: Figures = {}
    frames = group.heartbeats()
    count = max(broker.count(HEARTBEATS), 2 * len(frames))
    swarm = ConnectionSwarm(broker.address, len(frames))
    with broker.one_core():
        swarm.send_repeatedly(frames, WARM_UP_FACTOR * count)
        with broker.cpu_per_request(figures, count):
            swarm.send_repeatedly(frames, count)
    swarm.close()
    return figures


KINDS: dict[str, type[AnyGroup]] = {"classic": ClassicGroup, "KIP-848": ConsumerGroup}

COMMIT = [
    *(
        Case(
            f"commit, {count} group{'s' if count > 1 else ''}, one in flight each",
            partial(commit, count, 1, COMMITS),
            partial(topic_for, 1, group_ids_of(count)),
            REPEAT,
        )
        for count in (1, MANY_GROUPS)
    ),
    Case(
        f"commit, 1 group, {COMMITS_IN_FLIGHT} in flight",
        commit_ahead,
        partial(topic_for, 1, group_ids_of(1)),
        REPEAT,
    ),
    Case(
        f"commit, 4 groups, {MANY_PARTITIONS} partitions in each",
        partial(commit, 4, MANY_PARTITIONS, COMMITS // 10),
        partial(topic_for, MANY_PARTITIONS, group_ids_of(4)),
        REPEAT,
    ),
]

MEMBERSHIP = [
    *(
        Case(
            f"{name} group of {count}: one more",
            rejoin,
            partial(group_of, group_type, count),
            repeat,
        )
        for count, repeat in ((MEMBERS, None), (MANY_MEMBERS, 1))
        for name, group_type in KINDS.items()
    ),
    *(
        Case(
            f"{name} heartbeats of {MEMBERS}",
            heartbeat,
            partial(group_of, group_type, MEMBERS),
            REPEAT,
        )
        for name, group_type in KINDS.items()
    ),
]
