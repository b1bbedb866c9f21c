"""The lane of Fetch does what the handler does, for any requests and any changes between them."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replication.world import NODE_ID, id_of, registration
from tests.server.acls import ClientAcls
from tests.server.lanes.two_brokers import OneBroker, frame_of, quotas_of
from tests.uncompiled import load_uncompiled

from barnabas.log import Log
from barnabas.log.segments import page_cache
from barnabas.replication import Partition
from barnabas.security.authorizer.model import CLUSTER, AclOperation, topic_resource
from barnabas.server.lanes import _fetch, _fetch_reads, _fetch_request, _fetch_response
from barnabas.server.nodes import BrokerNode
from barnabas.wire.apis import ApiKey
from barnabas.wire.errors import ErrorCode
from barnabas.wire.headers import read_response_header
from barnabas.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)

FOLLOWER = 2
TOPICS = {"orders": 3, "shared": 2, "ledger": 1}
"""`shared` has a follower; `ledger` is written to in transactions."""
CONSUMED = ("orders", "shared", "ledger")
FOLLOWED = ("shared",)
FOLLOWER_CONNECTION = 2
UNKNOWN = "nowhere"
VERSIONS = (4, 6, 7, 9, 11, 12, 13, 15, 16, 17, 18)

FetchLaneType = Callable[..., _fetch.FetchLane]


@pytest.fixture(params=["compiled", "plain"], scope="module")
def lane_type(request: pytest.FixtureRequest) -> FetchLaneType:
    if request.param == "plain":
        plain: dict[str, Any] = {}
        for module in (_fetch_request, _fetch_reads, _fetch_response, _fetch):
            name = module.__name__
            plain[name] = load_uncompiled(module, **plain)
            plain[name].__name__ = name
        return plain[_fetch.__name__].FetchLane  # type: ignore[no-any-return]
    if str(_fetch.__file__).endswith(".py"):
        pytest.skip("the lane is not compiled")
    return _fetch.FetchLane


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    created = asyncio.new_event_loop()
    asyncio.set_event_loop(created)
    yield created
    asyncio.set_event_loop(None)
    created.close()


@dataclass
class Sessions:
    """What the clients know of their sessions: id, next epoch and version, by connection."""

    by_connection: dict[int, tuple[int, int, int]] = field(default_factory=dict)


class BothBrokers:
    """Every step is done on both brokers, which must agree after it."""

    def __init__(
        self, folder: Path, loop: asyncio.AbstractEventLoop, lane_type: FetchLaneType
    ) -> None:
        def lanes(broker: BrokerNode) -> dict[Any, Any]:
            self.lane = lane_type(broker, broker.metrics.request("Fetch"))
            return {ApiKey.FETCH: self.lane}

        self._loop = loop
        self.with_lane = OneBroker(folder / "lane", loop, lanes)
        self.without = OneBroker(folder / "handler", loop, lambda _: {})
        self.both = (self.with_lane, self.without)
        self.sessions = Sessions()
        self.transactions: dict[int, int] = {}
        """The next sequence number of each producer with an open transaction."""
        for one in self.both:
            one.world.metadata(registration(FOLLOWER))
            one.world.create_topic("orders", TOPICS["orders"])
            one.world.create_topic("shared", TOPICS["shared"], replicas=(NODE_ID, FOLLOWER))
            one.world.create_topic("ledger", TOPICS["ledger"])

    def close(self) -> None:
        for one in self.both:
            one.close()

    def each(self, step: Callable[[OneBroker], Any]) -> Any:
        with_lane, without = (step(one) for one in self.both)
        self.turn()
        assert with_lane == without
        self.compare()
        return without

    def turn(self) -> None:
        """Runs the loop until everything that was scheduled has run."""
        for _ in range(4):
            self._loop.run_until_complete(asyncio.sleep(0))

    def compare(self) -> None:
        for connections in zip(*(one.connections for one in self.both), strict=True):
            responses = [connection.take_responses() for connection in connections]
            assert responses[0] == responses[1]
        with_lane, without = map(state_of, self.both)
        assert with_lane == without

    # Requests

    def fetch(self, connection: int, request: FetchRequest, version: int) -> FetchResponse | None:
        """Returns the response, or None if it is delayed."""
        return self.send(connection, frame_of(request, version), version)

    def send(self, connection: int, frame: bytes, version: int) -> FetchResponse | None:
        if self.with_lane.connections[connection].suspended:
            return None  # one request at a time
        response = self.each(lambda one: one.handle(connection, frame))
        if not isinstance(response, bytes) or not response:
            return None
        _, body = read_response_header(response[4:], ApiKey.FETCH, version)
        return FetchResponse.read_exactly(response[4:], version, body)

    def expire_delayed(self) -> None:
        self.each(lambda one: one.world.timer.ring())


def state_of(one: OneBroker) -> dict[str, Any]:
    """Returns everything that a fetch may change, except what only makes it faster."""
    broker, world = one.world.broker, one.world
    requests = broker.metrics.request("Fetch")
    return {
        "requests": dict(requests.requests),
        "errors": {code: count for code, count in requests.errors.items() if count},
        "histograms": [
            (name, getattr(requests, name).buckets)
            for name in ("request_bytes", "queue_ns", "local_ns", "remote_ns", "response_queue_ns")
        ],
        "topics": {
            name: [getattr(metrics, counter) for counter in type(metrics).__slots__]
            for name, metrics in broker.metrics.topics().items()
        },
        "sessions": [_session(session) for session in broker.fetch_sessions._by_id.values()],
        "delayed": dict(broker.purgatory.sizes),
        "quotas": quotas_of(broker),
        "delays": [connection.delays_ms for connection in one.connections],
        "followers": [
            (partition.topic, partition.index, partition.high_watermark, _followers(partition))
            for partition in world.partitions.opened()
        ],
        "controller": [str(request) for request, _ in world.controller_requests],
    }


def _session(session: Any) -> Any:
    names = ("session_id", "epoch", "last_used_ms", "cached_size", "is_mature", "checked_client")
    return (
        [getattr(session, name) for name in names],
        [_session_partition(partition) for partition in session.partitions.values()],
        [partition.key for partition in session.dirty.partitions],
    )


def _session_partition(partition: Any) -> Any:
    names = [
        name for name in type(partition).__slots__ if name not in ("partition", "watched_keys")
    ]
    return (
        [getattr(partition, name) for name in names],
        str(partition.partition),
        [type(key).__name__ for key in partition.watched_keys],
    )


def _followers(partition: Partition) -> Any:
    if partition.leader_state is None:
        return None
    return [
        [getattr(follower, name) for name in type(follower).__slots__]
        for follower in partition.leader_state.followers.values()
    ]


# The steps


def draw_topics(
    data: st.DataObject, both: BothBrokers, version: int, names: tuple[str, ...]
) -> list[FetchTopic]:
    """Draws the partitions of a request, most of them valid; a list of topics."""
    topics = []
    for name in data.draw(st.lists(st.sampled_from(names), max_size=3)):
        count = TOPICS.get(name, 1)
        indexes = data.draw(st.lists(st.integers(0, count), min_size=0, max_size=3))
        requested = [draw_partition(data, both, version, name, index) for index in indexes]
        topics.append(FetchTopic(topic=name, topic_id=id_of(name), partitions=requested))
    return topics


def draw_partition(
    data: st.DataObject, both: BothBrokers, version: int, name: str, index: int
) -> FetchPartition:
    partition = both.without.world.partitions.find_opened(name, index)
    end, epoch = (partition.log.log_end_offset, partition.leader_epoch) if partition else (0, 0)
    offset = data.draw(
        st.one_of(st.just(end), st.integers(0, max(end, 1)), st.sampled_from([-1, end + 1]))
    )
    return FetchPartition(
        partition=index,
        fetch_offset=offset,
        current_leader_epoch=data.draw(st.sampled_from([-1, epoch, epoch, epoch - 1, epoch + 1])),
        last_fetched_epoch=data.draw(st.sampled_from([-1, -1, -1, epoch, epoch - 1]))
        if version >= 12
        else -1,
        log_start_offset=data.draw(st.sampled_from([-1, 0, 1])),
        partition_max_bytes=data.draw(st.sampled_from([0, 1, 200, 1 << 20, 1 << 20])),
    )


def draw_plain_topics(
    data: st.DataObject, both: BothBrokers, version: int, names: tuple[str, ...], *, least: int
) -> list[FetchTopic]:
    """Draws partitions as clients name them, which are mostly at the end of the log."""
    keys = [(name, index) for name in names for index in range(TOPICS[name])]
    topics: dict[str, FetchTopic] = {}
    for name, index in data.draw(st.lists(st.sampled_from(keys), unique=True, min_size=least)):
        partition = both.without.world.partition(name, index)
        epoch, end = partition.leader_epoch, partition.log.log_end_offset
        if names != FOLLOWED:
            end = partition.high_watermark
        behind = data.draw(st.sampled_from([0, 0, 0, 1, 5]))
        is_checked = version >= 12 and data.draw(st.booleans())
        requested = FetchPartition(
            partition=index,
            fetch_offset=max(end - behind, partition.log.log_start_offset),
            current_leader_epoch=data.draw(st.sampled_from([-1, epoch])),
            last_fetched_epoch=partition.log.latest_epoch if is_checked else -1,
            log_start_offset=data.draw(st.sampled_from([0, 1])),
            partition_max_bytes=data.draw(st.sampled_from([200, 1 << 20, 1 << 20])),
        )
        topic = topics.setdefault(name, FetchTopic(topic=name, topic_id=id_of(name)))
        topic.partitions.append(requested)
    return list(topics.values())


def draw_request(
    data: st.DataObject, both: BothBrokers, connection: int, *, is_plain: bool
) -> tuple[FetchRequest, int]:
    """Draws a request of a consumer or a follower, and its version."""
    owner = data.draw(st.sampled_from([connection] * 12 + [0, 1, 2]))
    session_id, epoch, version = both.sessions.by_connection.get(owner, (0, 0, 0))
    kinds = ["continue"] * 4 * bool(session_id)
    if is_plain:
        kinds = kinds or ["none", "open", "open"]
    else:
        kinds += ["none", "open", "broken"] + ["close"] * bool(session_id)
    kind = data.draw(st.sampled_from(kinds))
    if kind not in ("continue", "close"):
        version = data.draw(st.sampled_from(VERSIONS))
    match kind:
        case "none":
            session_id, epoch = 0, -1
        case "open":
            session_id, epoch = 0, 0
        case "close":
            epoch = -1
        case "broken":
            session_id, epoch = (
                data.draw(st.sampled_from([0, session_id, 7])),
                data.draw(st.integers(-2, 3)),
            )
    is_consumer = connection != FOLLOWER_CONNECTION
    names = CONSUMED if is_consumer else FOLLOWED
    request = FetchRequest(
        max_wait_ms=data.draw(st.sampled_from([0, 500, 500, 500])),
        min_bytes=data.draw(st.sampled_from([0, 1, 1, 1, 500, 100_000])),
        max_bytes=data.draw(st.sampled_from([0, 300, 1 << 20, 1 << 20])),
        isolation_level=data.draw(st.sampled_from([0, 0, 1] if is_consumer else [0])),
        session_id=session_id if version >= 7 else 0,
        session_epoch=epoch if version >= 7 else -1,
    )
    replica_epoch = 5
    if is_plain:
        least = 0 if kind == "continue" else 1
        request.topics = draw_plain_topics(data, both, version, names, least=least)
    else:
        if data.draw(st.integers(0, 9)) == 0:
            names = (*names, UNKNOWN)
            request.isolation_level = data.draw(st.sampled_from([0, 2]))
        replica_epoch = data.draw(st.sampled_from([-1, 5, 5, 4]))
        request.topics = draw_topics(data, both, version, names)
        if kind == "continue" and version >= 7 and data.draw(st.integers(0, 3)) == 0:
            forgotten = ForgottenTopic(topic="orders", topic_id=id_of("orders"), partitions=[0])
            request.forgotten_topics_data = [forgotten]
        request.rack_id = data.draw(st.sampled_from(["", "", "r1"])) if version >= 11 else ""
    if kind == "continue" and data.draw(st.booleans()):
        request.topics = []
    for name, value in follower_fields(connection, version, replica_epoch).items():
        setattr(request, name, value)
    return request, version


def step_open(data: st.DataObject, both: BothBrokers, connection: int) -> None:
    """Opens a session with all partitions."""
    version = data.draw(st.sampled_from([v for v in VERSIONS if v >= 7]))
    names = CONSUMED if connection != FOLLOWER_CONNECTION else FOLLOWED
    partitions = {(name, index): 0 for name in names for index in range(TOPICS[name])}
    request = a_fetch(partitions, session_epoch=0, **follower_fields(connection, version))
    response = both.fetch(connection, request, version)
    assert response is not None
    both.sessions.by_connection[connection] = (response.session_id, 1, version)


def follower_fields(connection: int, version: int, replica_epoch: int = 5) -> dict[str, Any]:
    """Returns the fields that say who fetches: a connection is a consumer's, or a follower's."""
    if connection != FOLLOWER_CONNECTION:
        return {}
    if version < 15:
        return {"replica_id": FOLLOWER}
    return {"replica_state": ReplicaState(replica_id=FOLLOWER, replica_epoch=replica_epoch)}


def step_fetch(data: st.DataObject, both: BothBrokers) -> None:
    connection = data.draw(st.integers(0, 2))
    is_plain = data.draw(st.sampled_from([True, True, True, False]))
    request, version = draw_request(data, both, connection, is_plain=is_plain)
    response = both.fetch(connection, request, version)
    known = both.sessions.by_connection
    if request.session_epoch == 0 and response is not None and response.session_id:
        known[connection] = (response.session_id, 1, version)
    for owner, state in known.items():
        if state == (request.session_id, request.session_epoch, version):
            known[owner] = (request.session_id, request.session_epoch + 1, version)


def step_broken_frame(data: st.DataObject, both: BothBrokers) -> None:
    connection = data.draw(st.integers(0, 2))
    request, version = draw_request(data, both, connection, is_plain=True)
    frame = bytearray(frame_of(request, version))
    header_bytes = 14
    if data.draw(st.booleans()):
        del frame[data.draw(st.integers(header_bytes, len(frame))) :]
    else:
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(header_bytes, len(frame) - 1))
            frame[at] ^= 1 << data.draw(st.integers(0, 7))
    both.send(connection, bytes(frame), version)


APPENDABLE = [(name, index) for name in ("orders", "shared") for index in range(TOPICS[name])]


def watched_partitions(both: BothBrokers) -> list[tuple[str, int]]:
    """Returns the partitions that delayed fetches or sessions wait for."""
    watched: dict[tuple[str, int], None] = {}
    for key in both.without.world.purgatory._watching:
        if isinstance(key, Log):
            watched[key.topic, key.partition] = None
        elif isinstance(key, Partition):
            watched[key.topic, key.index] = None
    return [key for key in watched if key in APPENDABLE]


def step_append(data: st.DataObject, both: BothBrokers) -> None:
    name, index = data.draw(st.sampled_from(watched_partitions(both) or APPENDABLE))
    value = b"v" * data.draw(st.sampled_from([1, 100, 400, 70_000]))
    values = [value] * data.draw(st.integers(1, 2))
    if both.without.world.partition(name, index).is_leader:
        both.each(lambda one: one.world.append(name, *values, index=index, acks=1))


def step_transaction(data: st.DataObject, both: BothBrokers) -> None:
    producer_id = data.draw(st.integers(7, 8))
    sequence = both.transactions.get(producer_id)
    if not both.without.world.partition("ledger").is_leader:
        return
    if sequence is not None and data.draw(st.booleans()):
        committed = data.draw(st.booleans())
        both.each(
            lambda one: one.world.end_transaction(
                "ledger", committed=committed, producer_id=producer_id
            )
        )
        del both.transactions[producer_id]
        both.transactions[-producer_id] = sequence
        return
    sequence = both.transactions.pop(-producer_id, 0) if sequence is None else sequence
    both.each(
        lambda one: one.world.write_in_transaction(
            "ledger", b"t", producer_id=producer_id, sequence=sequence
        )
    )
    both.transactions[producer_id] = sequence + 1


def step_leader(data: st.DataObject, both: BothBrokers) -> None:
    """Another broker leads, or this one again; a follower may truncate its log."""
    name = data.draw(st.sampled_from(["orders", "shared"]))
    index = data.draw(st.integers(0, TOPICS[name] - 1))
    partition = both.without.world.partition(name, index)
    leader = data.draw(st.sampled_from([NODE_ID, NODE_ID, FOLLOWER]))
    both.each(lambda one: one.world.lead(name, index, leader=leader))
    if leader == FOLLOWER:
        log = partition.log
        offset = data.draw(st.integers(log.log_start_offset, log.log_end_offset))

        def truncate(one: OneBroker) -> None:
            replica = one.world.partition(name, index)
            replica.log.truncate_to(offset)
            replica.high_watermark = min(replica.high_watermark, replica.log.log_end_offset)

        both.each(truncate)


def step_log(data: st.DataObject, both: BothBrokers) -> None:
    """A log rolls, or its start advances."""
    name = data.draw(st.sampled_from(list(TOPICS)))
    index = data.draw(st.integers(0, TOPICS[name] - 1))
    partition = both.without.world.partition(name, index)
    if data.draw(st.booleans()):
        both.each(lambda one: one.world.partition(name, index).log.maintenance.roll())
        return
    offset = data.draw(st.integers(partition.log.log_start_offset, partition.high_watermark))

    def advance(one: OneBroker) -> None:
        replica = one.world.partition(name, index)
        replica.advance_log_start_offset(offset)
        replica.log.maintenance.delete_old_segments(one.world.now_ms, replica.high_watermark)

    both.each(advance)


def step_time(data: st.DataObject, both: BothBrokers) -> None:
    passed_ms = data.draw(st.sampled_from([1, 1000, 121_000]))
    for one in both.both:
        one.world.now_ms += passed_ms
    if data.draw(st.booleans()):
        both.expire_delayed()


def step_disconnect(data: st.DataObject, both: BothBrokers) -> None:
    connection = data.draw(st.integers(0, 2))
    both.each(lambda one: one.disconnect(connection))


def step_cold_append(data: st.DataObject, both: BothBrokers) -> None:
    """What is appended is not in the page cache when the fetches that wait for it are woken."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_cache, "preadv", _not_cached)
        step_append(data, both)


def _not_cached(*_: object) -> int:
    raise BlockingIOError


def step_throttle(data: st.DataObject, both: BothBrokers) -> None:
    """The replicas of a topic are throttled, or not any more."""
    throttled = data.draw(st.sampled_from(["*", None]))
    both.each(
        lambda one: one.world.configure("shared", leader_replication_throttled_replicas=throttled)
    )


def step_quota(data: st.DataObject, both: BothBrokers) -> None:
    quotas = {
        key: bound
        for key, bounds in QUOTAS.items()
        if (bound := data.draw(st.sampled_from(bounds))) is not None
    }
    owner = data.draw(st.sampled_from([(("user", "alice"),), (("client-id", "another"),)]))
    both.each(lambda one: one.world.broker.quotas.update({owner: quotas} if quotas else {}))


QUOTAS = {
    "consumer_byte_rate": [None, 10, 100, 10_000, 1e9],
    "request_percentage": [None, 1, 100],
}

STEPS = (
    [step_fetch] * 12
    + [step_append] * 10
    + [step_time] * 2
    + [step_broken_frame, step_transaction, step_leader, step_log]
    + [step_disconnect, step_cold_append, step_throttle, step_quota]
)


@settings(max_examples=150)
@given(data=st.data())
def test_a_broker_with_the_lane_and_one_without_do_the_same(
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
    loop: asyncio.AbstractEventLoop,
    lane_type: FetchLaneType,
) -> None:
    folder = tmp_path_factory.mktemp("brokers")
    with closing(BothBrokers(folder, loop, lane_type)) as both:
        for name, count in TOPICS.items():
            for index in range(count):
                both.each(lambda one, n=name, i=index: str(one.world.partition(n, i)))
        for connection in range(3):
            step_open(data, both, connection)
        for step in data.draw(st.lists(st.sampled_from(STEPS), min_size=20, max_size=60)):
            step(data, both)
        both.expire_delayed()


# What takes the lane


@pytest.fixture
def both(
    tmp_path: Path, loop: asyncio.AbstractEventLoop, lane_type: FetchLaneType
) -> Iterator[BothBrokers]:
    with closing(BothBrokers(tmp_path, loop, lane_type)) as made:
        for name, count in TOPICS.items():
            for index in range(count):
                made.each(lambda one, n=name, i=index: one.world.append(n, b"v" * 100, index=i))
        yield made


def a_fetch(partitions: dict[tuple[str, int], int], **fields: Any) -> FetchRequest:
    """A fetch of a consumer, by topic, index and offset."""
    topics = [
        FetchTopic(
            topic=name,
            topic_id=id_of(name),
            partitions=[
                FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
                for (other, index), offset in partitions.items()
                if other == name
            ],
        )
        for name in dict.fromkeys(name for name, _ in partitions)
    ]
    return FetchRequest(**{"topics": topics, "min_bytes": 1, "max_wait_ms": 0, **fields})


def takes_the_lane(
    both: BothBrokers, request: FetchRequest, version: int, connection: int = 0
) -> FetchResponse:
    """Returns the response, to which the handler has not contributed."""
    handled = both.with_lane.handled
    response = both.fetch(connection, request, version)
    assert response is not None
    assert both.with_lane.handled == handled
    return response


@pytest.mark.parametrize("version", VERSIONS)
def test_consumers_without_sessions_take_the_lane(both: BothBrokers, version: int) -> None:
    offsets = {("orders", 0): 0, ("orders", 2): 0, ("shared", 1): 1, ("ledger", 0): 0}
    for isolation_level in (0, 1):
        takes_the_lane(both, a_fetch(offsets, isolation_level=isolation_level), version)


@pytest.mark.parametrize("version", [7, 12, 17])
def test_incremental_fetches_take_the_lane(both: BothBrokers, version: int) -> None:
    offsets = {("orders", index): 1 for index in range(3)}
    opened = both.fetch(0, a_fetch(offsets, session_epoch=0), version)
    assert opened is not None
    session = {"session_id": opened.session_id}
    both.each(lambda one: one.world.append("orders", b"new", index=1))
    response = takes_the_lane(both, a_fetch({}, session_epoch=1, **session), version)
    ((partition,),) = (topic.partitions for topic in response.responses)
    assert (partition.partition_index, partition.high_watermark) == (1, 2)
    assert partition.records
    after = a_fetch({("orders", 1): 2}, session_epoch=2, **session)
    assert not takes_the_lane(both, after, version).responses
    both.each(lambda one: one.world.append("orders", b"newer", index=0))
    assert takes_the_lane(both, a_fetch({}, session_epoch=3, **session), version).responses


@pytest.mark.parametrize("version", [11, 12, 14, 17, 18])
def test_followers_take_the_lane_and_are_acknowledged(both: BothBrokers, version: int) -> None:
    who: dict[str, Any] = (
        {"replica_state": ReplicaState(replica_id=FOLLOWER, replica_epoch=5)}
        if version >= 15
        else {"replica_id": FOLLOWER}
    )
    opened = both.fetch(2, a_fetch({("shared", 0): 0}, session_epoch=0, **who), version)
    assert opened is not None
    both.each(lambda one: one.world.append("shared", b"new", acks=1))
    request = a_fetch({("shared", 0): 2}, session_id=opened.session_id, session_epoch=1, **who)
    response = takes_the_lane(both, request, version, connection=2)
    assert response.responses[0].partitions[0].high_watermark == 2
    request = a_fetch({("shared", 1): 0}, **who)
    assert takes_the_lane(both, request, version, connection=2).responses[0].partitions[0].records


def test_aborted_transactions_take_the_lane(both: BothBrokers) -> None:
    for one in both.both:
        one.world.write_in_transaction("ledger", b"t")
        one.world.end_transaction("ledger", committed=False)
    request = a_fetch({("ledger", 0): 0}, isolation_level=1)
    (aborted,) = takes_the_lane(both, request, 17).responses[0].partitions[0].aborted_transactions
    assert (aborted.producer_id, aborted.first_offset) == (7, 1)


def test_large_responses_have_regions_and_take_the_lane(both: BothBrokers) -> None:
    for _ in range(3):
        both.each(lambda one: one.world.append("orders", b"v" * 70_000))
    takes_the_lane(both, a_fetch({("orders", 0): 2}), 17)


def test_a_response_that_was_sent_keeps_no_file_open(both: BothBrokers) -> None:
    both.each(lambda one: one.world.append("orders", b"v" * 70_000))
    file = both.with_lane.world.partition("orders").log.segments.active.file()
    references = sys.getrefcount(file)
    takes_the_lane(both, a_fetch({("orders", 0): 0}), 17)
    assert sys.getrefcount(file) == references


# What is allowed


@pytest.mark.parametrize("version", [12, 17])
def test_the_lane_serves_what_is_allowed_and_the_handler_denies_the_rest(
    both: BothBrokers, version: int
) -> None:
    acls = [ClientAcls(one.world) for one in both.both]
    orders = topic_resource("orders")
    for client in acls:
        client.allow(AclOperation.READ, orders)
    takes_the_lane(both, a_fetch({("orders", 0): 0}), version)
    denied = both.fetch(0, a_fetch({("orders", 0): 0, ("shared", 0): 0}), version)
    assert denied is not None
    errors = [topic.partitions[0].error_code for topic in denied.responses]
    assert sorted(errors) == [ErrorCode.NONE, ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert both.with_lane.handled == 1
    for client in acls:
        client.revoke(AclOperation.READ, orders)
    denied = both.fetch(0, a_fetch({("orders", 0): 0}), version)
    assert denied is not None
    assert denied.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_session_is_checked_by_the_handler_after_a_change_of_the_acls(both: BothBrokers) -> None:
    acls = [ClientAcls(one.world) for one in both.both]
    for client in acls:
        client.allow(AclOperation.READ, topic_resource("orders"))
    opened = both.fetch(0, a_fetch({("orders", 0): 0}, session_epoch=0), 17)
    assert opened is not None
    both.fetch(0, a_fetch({}, session_id=opened.session_id, session_epoch=1), 17)
    takes_the_lane(both, a_fetch({}, session_id=opened.session_id, session_epoch=2), 17)
    for client in acls:
        client.revoke(AclOperation.READ, topic_resource("orders"))
    denied = both.fetch(0, a_fetch({}, session_id=opened.session_id, session_epoch=3), 17)
    assert denied is not None
    assert denied.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_a_follower_needs_the_permission_of_a_broker(both: BothBrokers) -> None:
    acls = [ClientAcls(one.world) for one in both.both]
    follower: dict[str, Any] = {"replica_state": ReplicaState(replica_id=FOLLOWER, replica_epoch=5)}
    denied = both.fetch(2, a_fetch({("shared", 0): 1}, **follower), 17)
    assert denied is not None
    assert denied.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    for client in acls:
        client.allow(AclOperation.CLUSTER_ACTION, CLUSTER)
    takes_the_lane(both, a_fetch({("shared", 0): 1}, **follower), 17, connection=2)


def test_records_that_are_not_in_the_page_cache_are_left_to_the_response_queue(
    both: BothBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = a_fetch({("orders", 0): 0})
    takes_the_lane(both, request, 17)  # the positions are known from here on
    monkeypatch.setattr(page_cache, "preadv", _not_cached)
    assert takes_the_lane(both, request, 17).responses[0].partitions[0].records


# Quotas


def set_quota(both: BothBrokers, bytes_per_s: float) -> None:
    quotas = {(("user", "alice"),): {"consumer_byte_rate": bytes_per_s}}
    both.each(lambda one: one.world.broker.quotas.update(quotas))


def test_consumers_within_their_quota_take_the_lane(both: BothBrokers) -> None:
    set_quota(both, 1_000)
    response = takes_the_lane(both, a_fetch({("orders", 0): 0}), 17)
    (quota,) = (one for one in quotas_of(both.with_lane.world.broker) if len(one) == 4)
    assert quota[2] * 10 == len(response.write(17))
    assert not both.with_lane.connections[0].delays_ms


def test_consumers_over_their_quota_get_no_records(both: BothBrokers) -> None:
    set_quota(both, 10)
    response = both.fetch(0, a_fetch({("orders", 0): 0}), 17)
    assert response is not None
    assert not response.responses
    assert both.with_lane.connections[0].delays_ms == [response.throttle_time_ms]


def test_no_response_is_larger_than_what_the_quota_can_allow(both: BothBrokers) -> None:
    for _ in range(5):
        both.each(lambda one: one.world.append("orders", b"v" * 100))
    set_quota(both, 30)
    response = takes_the_lane(both, a_fetch({("orders", 0): 0}), 17)
    records = only_partition(response).records
    assert records is not None
    assert 0 < len(records) <= 300


def test_followers_take_the_lane_without_being_measured(both: BothBrokers) -> None:
    set_quota(both, 10)
    takes_the_lane(both, a_fetch({("shared", 0): 0}, **AS_FOLLOWER), 17, connection=2)
    assert all(len(one) == 2 for one in quotas_of(both.with_lane.world.broker))


@pytest.mark.parametrize("bytes_per_s", [1e9, 50])
def test_records_that_were_waited_for_count_for_the_quota(
    both: BothBrokers, bytes_per_s: float
) -> None:
    set_quota(both, bytes_per_s)
    session = session_of(both, {("orders", 0): 1, ("orders", 1): 1})
    waiting = WaitingFetch(both, a_fetch({}, **session))
    response = waiting.response_after(lambda one: one.world.append("orders", b"v" * 400))
    assert bool(response.responses) == (bytes_per_s == 1e9)
    assert bool(response.throttle_time_ms) == (bytes_per_s == 50)


# What waits


@dataclass
class WaitingFetch:
    """A fetch that both brokers delay; the handler has not contributed."""

    both: BothBrokers
    request: FetchRequest
    version: int = 17
    connection: int = 0

    def __post_init__(self) -> None:
        self.request.max_wait_ms = 500
        frame = frame_of(self.request, self.version)
        handled = self.both.with_lane.handled
        self.both.each(lambda one: one.handle(self.connection, frame))
        assert self.both.with_lane.handled == handled
        assert self.is_waiting

    @property
    def is_waiting(self) -> bool:
        return bool(self.both.with_lane.connections[self.connection].suspended)

    def response_after(self, change: Callable[[OneBroker], object]) -> FetchResponse:
        """Returns the response, which the change leads to."""
        for one in self.both.both:
            change(one)
        self.both.turn()
        assert not self.is_waiting
        responses = [one.connections[self.connection].take_responses() for one in self.both.both]
        assert responses[0] == responses[1]
        self.both.compare()
        content = responses[1]
        assert content
        _, body = read_response_header(content[4:], ApiKey.FETCH, self.version)
        return FetchResponse.read_exactly(content[4:], self.version, body)


def only_partition(response: FetchResponse) -> PartitionData:
    ((partition,),) = (topic.partitions for topic in response.responses)
    return partition


def session_of(
    both: BothBrokers,
    offsets: dict[tuple[str, int], int],
    *,
    version: int = 17,
    connection: int = 0,
    **who: Any,
) -> dict[str, Any]:
    """Opens a session, and fetches what is there; returns what the next fetch has."""
    opened = both.fetch(connection, a_fetch(offsets, session_epoch=0, **who), version)
    assert opened is not None
    fields = {"session_id": opened.session_id, **who}
    both.fetch(connection, a_fetch({}, session_epoch=1, **fields), version)
    return {"session_epoch": 2, **fields}


AS_FOLLOWER: dict[str, Any] = {"replica_state": ReplicaState(replica_id=FOLLOWER, replica_epoch=5)}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_consumer_without_a_session_waits_in_the_lane(both: BothBrokers, version: int) -> None:
    offsets = {("orders", 0): 1, ("orders", 1): 1}
    waiting = WaitingFetch(both, a_fetch(offsets), version)
    response = waiting.response_after(lambda one: one.world.append("orders", b"new", index=1))
    assert [bool(p.records) for p in response.responses[0].partitions] == [False, True]


@pytest.mark.parametrize("version", [7, 12, 17])
def test_a_consumer_with_a_session_waits_in_the_lane(both: BothBrokers, version: int) -> None:
    offsets = {("orders", index): 1 for index in range(3)}
    session = session_of(both, offsets, version=version)
    waiting = WaitingFetch(both, a_fetch({}, **session), version)
    response = waiting.response_after(lambda one: one.world.append("orders", b"new", index=2))
    assert only_partition(response).records


@pytest.mark.parametrize("version", [15, 18])
def test_a_follower_waits_in_the_lane(both: BothBrokers, version: int) -> None:
    session = session_of(both, {("shared", 0): 1}, version=version, connection=2, **AS_FOLLOWER)
    waiting = WaitingFetch(both, a_fetch({}, **session), version, connection=2)
    response = waiting.response_after(lambda one: one.world.append("shared", b"new", acks=1))
    assert only_partition(response).records


def test_a_fetch_waits_for_its_minimum_or_the_timeout(both: BothBrokers) -> None:
    waiting = WaitingFetch(both, a_fetch({("orders", 0): 1}, min_bytes=1000))
    for _ in range(3):
        both.each(lambda one: one.world.append("orders", b"v" * 100))
        assert waiting.is_waiting
    response = waiting.response_after(lambda one: one.world.timer.ring())
    assert only_partition(response).high_watermark == 4


def test_a_new_log_start_offset_is_not_delayed_for_followers(both: BothBrokers) -> None:
    session = session_of(both, {("shared", 0): 1}, connection=2, **AS_FOLLOWER)
    waiting = WaitingFetch(both, a_fetch({}, **session), connection=2)
    response = waiting.response_after(
        lambda one: one.world.partition("shared").advance_log_start_offset(1)
    )
    assert only_partition(response).log_start_offset == 1


def test_large_records_that_were_waited_for_have_regions(both: BothBrokers) -> None:
    waiting = WaitingFetch(both, a_fetch({("orders", 0): 1}))
    response = waiting.response_after(lambda one: one.world.append("orders", b"v" * 70_000))
    assert len(only_partition(response).records or b"") > 70_000


def test_a_disconnect_ends_the_wait(both: BothBrokers) -> None:
    waiting = WaitingFetch(both, a_fetch({("orders", 0): 1}))
    both.each(lambda one: one.disconnect(0))
    assert not waiting.is_waiting
    assert both.with_lane.world.purgatory.sizes["Fetch"] == 0


@pytest.mark.parametrize("bytes_per_s", [1e9, 30])
def test_a_fetch_that_was_handed_over_counts_for_the_quota(
    both: BothBrokers, bytes_per_s: float
) -> None:
    set_quota(both, bytes_per_s)
    session = session_of(both, {("orders", 0): 1, ("orders", 1): 1}, version=7)
    waiting = WaitingFetch(both, a_fetch({}, **session), 7)

    def resign_and_append(one: OneBroker) -> None:
        one.world.lead("orders", leader=FOLLOWER)
        one.world.append("orders", b"v" * 100, index=1)

    response = waiting.response_after(resign_and_append)
    assert bool(response.responses) == (bytes_per_s == 1e9)


# What is not plain any more after a wait


@pytest.mark.parametrize(
    ("version", "error"),
    [(7, ErrorCode.NOT_LEADER_OR_FOLLOWER), (17, ErrorCode.FENCED_LEADER_EPOCH)],
)
def test_a_leader_that_resigns_responds_with_an_error(
    both: BothBrokers, version: int, error: ErrorCode
) -> None:
    request = a_fetch({("shared", 0): 1, ("orders", 0): 1})
    request.topics[0].partitions[0].current_leader_epoch = 0
    waiting = WaitingFetch(both, request, version)
    response = waiting.response_after(lambda one: one.world.lead("shared", leader=FOLLOWER))
    errors = [topic.partitions[0].error_code for topic in response.responses]
    assert errors == [error, ErrorCode.NONE]


def test_the_leader_of_a_session_resigns(both: BothBrokers) -> None:
    session = session_of(both, {("shared", 0): 1}, connection=2, **AS_FOLLOWER)
    waiting = WaitingFetch(both, a_fetch({}, **session), connection=2)
    response = waiting.response_after(lambda one: one.world.lead("shared", leader=FOLLOWER))
    assert only_partition(response).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert only_partition(response).current_leader.leader_id == FOLLOWER


def test_a_deleted_topic_is_an_error_of_the_waiting_fetch(both: BothBrokers) -> None:
    waiting = WaitingFetch(both, a_fetch({("orders", 0): 1, ("shared", 0): 1}))
    response = waiting.response_after(lambda one: one.world.delete_topic("orders"))
    errors = [topic.partitions[0].error_code for topic in response.responses]
    assert errors == [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NONE]


@pytest.mark.parametrize("bytes_per_s", [1e9, 60])
def test_records_that_are_read_from_disk_after_the_wait(
    both: BothBrokers, monkeypatch: pytest.MonkeyPatch, bytes_per_s: float
) -> None:
    set_quota(both, bytes_per_s)
    waiting = WaitingFetch(both, a_fetch({("orders", 0): 1, ("orders", 1): 1}, min_bytes=500))
    both.each(lambda one: one.world.append("orders", b"v" * 100, index=1))

    def append_cold(one: OneBroker) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(page_cache, "preadv", _not_cached)
            for _ in range(6):
                one.world.append("orders", b"v" * 100)
            one.world.partition("orders").log.segments.active.recent_positions = None

    response = waiting.response_after(append_cold)
    records = [partition.records for topic in response.responses for partition in topic.partitions]
    assert list(map(bool, records)) == ([True, True] if bytes_per_s == 1e9 else [])


def test_a_fetch_that_was_handed_over_waits_on(both: BothBrokers) -> None:
    session = session_of(both, {("shared", 0): 1, ("shared", 1): 1}, connection=2, **AS_FOLLOWER)
    waiting = WaitingFetch(both, a_fetch({}, min_bytes=500, **session), connection=2)
    for index in (0, 1):  # the second is read by the handler
        both.each(lambda one, i=index: one.world.append("shared", b"v" * 100, index=i, acks=1))
        both.each(
            lambda one: one.world.configure("shared", leader_replication_throttled_replicas="*")
        )
        assert waiting.is_waiting
    response = waiting.response_after(
        lambda one: one.world.append("shared", b"v" * 100, index=1, acks=1)
    )
    assert [bool(p.records) for p in response.responses[0].partitions] == [True, True]


def test_a_permission_that_is_revoked_during_the_wait_is_an_error(both: BothBrokers) -> None:
    acls = [ClientAcls(one.world) for one in both.both]
    for client in acls:
        client.allow(AclOperation.READ, topic_resource("orders"))
    waiting = WaitingFetch(both, a_fetch({("orders", 0): 1}))
    for client in acls:
        client.revoke(AclOperation.READ, topic_resource("orders"))
    response = waiting.response_after(lambda one: one.world.append("orders", b"new"))
    partition = only_partition(response)
    assert (partition.error_code, partition.records) == (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        b"",
    )


def test_a_session_that_another_connection_continues_is_an_error(both: BothBrokers) -> None:
    session = session_of(both, {("orders", 0): 1})
    waiting = WaitingFetch(both, a_fetch({}, **session))
    session["session_epoch"] += 1
    both.fetch(1, a_fetch({("orders", 0): 0}, **session), 17)
    response = waiting.response_after(lambda one: one.world.timer.ring())
    assert response.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH


def test_a_session_that_ends_during_the_wait_is_read_no_more(both: BothBrokers) -> None:
    session = session_of(both, {("orders", 0): 1})
    waiting = WaitingFetch(both, a_fetch({}, **session))
    both.fetch(1, a_fetch({}, session_id=session["session_id"], session_epoch=-1), 17)
    both.each(lambda one: one.world.append("orders", b"new"))
    assert waiting.is_waiting
    response = waiting.response_after(lambda one: one.world.timer.ring())
    assert not response.responses
