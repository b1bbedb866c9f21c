"""The Produce lane gives the responses, logs and metrics of the handler, and takes its work."""

import asyncio
import errno
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from tests.replication.world import NODE_ID, START_MS, batch_of, id_of, registration
from tests.server.acls import ClientAcls
from tests.server.lanes.produce_brokers import FOLLOWER, LaneFactory, ProduceBroker, frame_of
from tests.uncompiled import load_uncompiled

from barnabas.security.authorizer.model import AclOperation, topic_resource
from barnabas.server.lanes import _produce
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from barnabas.wire.records import _loops, _validation
from barnabas.wire.records.compression import Codec

PLAIN = load_uncompiled(_produce, validation=load_uncompiled(_validation, loops=_loops))
LANES = {"compiled": _produce.ProduceLane, "plain": PLAIN.ProduceLane}
"""The lane with compiled modules, and the lane and its checks as plain Python."""

NewBroker = Callable[[LaneFactory | None], ProduceBroker]

TOPICS: dict[str, dict[str, Any]] = {
    "orders": {"partitions": 3},
    "replicated": {"replicas": (NODE_ID, FOLLOWER), "min_insync_replicas": "2"},
    "compacted": {"cleanup_policy": "compact"},
    "rolling": {"internal_segment_bytes": "400"},
    "flushed": {"flush_messages": "2"},
    "strict": {"max_message_bytes": "300", "message_timestamp_before_max_ms": "1000"},
    "stamped": {"message_timestamp_type": "LogAppendTime"},
    "gzip": {"compression_type": "gzip"},
    "foreign": {"replicas": (FOLLOWER,), "leader": FOLLOWER},
    "__consumer_offsets": {},
}


@pytest.fixture
def new_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewBroker]:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    made: list[ProduceBroker] = []
    root = tmp_path_factory.mktemp("brokers")

    def make(lane: LaneFactory | None) -> ProduceBroker:
        folder = root / f"{len(made):08}"
        folder.mkdir()
        broker = ProduceBroker(folder, loop, lane)
        broker.world.metadata(registration(FOLLOWER))
        for name, options in TOPICS.items():
            broker.world.create_topic(name, **options)
        for name, options in TOPICS.items():
            for index in range(options.get("partitions", 1) if name != "foreign" else 0):
                broker.world.partition(name, index)
        made.append(broker)
        return broker

    yield make
    for broker in made:
        broker.close()
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture(params=LANES)
def lane(request: pytest.FixtureRequest) -> LaneFactory:
    if request.param == "compiled" and not _produce.COMPILED:
        pytest.skip("the modules are not compiled")
    return LANES[request.param]


# Requests

TopicPartition = tuple[str, int]


def request_of(
    batches: list[tuple[TopicPartition, Any]],
    *,
    acks: int = -1,
    timeout_ms: int = 1_000,
    transactional_id: str | None = None,
) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[
            TopicProduceData(
                name=topic,
                topic_id=id_of(topic),
                partition_data=[PartitionProduceData(index=index, records=records)],
            )
            for (topic, index), records in batches
        ],
    )


def idempotent(sequence: int, **fields: Any) -> memoryview:
    given = {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence, **fields}
    return batch_of(b"value", keys=(b"key",), **given)


# The plain shapes take the lane


def served_by_lane(broker: ProduceBroker, frame: bytes) -> bool:
    handled = broker.handled
    broker.send(frame)
    return broker.handled == handled


@pytest.mark.parametrize("acks", [-1, 0, 1])
@pytest.mark.parametrize("version", range(3, 14))
def test_the_lane_serves_plain_requests_of_every_version(
    new_broker: NewBroker, lane: LaneFactory, version: int, acks: int
) -> None:
    broker = new_broker(lane)
    batches = [(("orders", index), batch_of(b"a", b"b")) for index in range(3)]
    assert served_by_lane(broker, frame_of(request_of(batches, acks=acks), version))
    assert [broker.world.partition("orders", index).high_watermark for index in range(3)] == [2] * 3


@pytest.mark.parametrize("topic", ["compacted", "rolling", "flushed", "strict", "replicated"])
def test_the_lane_serves_topics_of_all_kinds(
    new_broker: NewBroker, lane: LaneFactory, topic: str
) -> None:
    broker = new_broker(lane)
    for sequence in range(12):
        request = request_of([((topic, 0), idempotent(sequence))])
        assert served_by_lane(broker, frame_of(request, 13))
    assert broker.world.partition(topic).log.log_end_offset == 12


@pytest.mark.parametrize("codec", Codec)
def test_the_lane_serves_every_codec(
    new_broker: NewBroker, lane: LaneFactory, codec: Codec
) -> None:
    broker = new_broker(lane)
    batch = batch_of(*[b"value" * 20] * 30, codec=codec)
    assert served_by_lane(broker, frame_of(request_of([(("orders", 0), batch)]), 13))
    assert broker.world.partition("orders").high_watermark == 30


def test_the_lane_serves_retries_and_errors_of_sequences(
    new_broker: NewBroker, lane: LaneFactory
) -> None:
    broker = new_broker(lane)
    for sequence in (0, 1, 0, 9, 2):
        request = request_of([(("orders", 0), idempotent(sequence))])
        assert served_by_lane(broker, frame_of(request, 13))
    assert broker.world.partition("orders").high_watermark == 3


def test_the_lane_serves_all_but_the_first_batch_of_a_transaction(
    new_broker: NewBroker, lane: LaneFactory
) -> None:
    broker = new_broker(lane)
    served = []
    for sequence in range(3):
        batch = idempotent(sequence, transactional=True)
        request = request_of([(("orders", 0), batch)], transactional_id="tx")
        served.append(served_by_lane(broker, frame_of(request, 12)))
    assert served == [False, True, True]


def test_several_requests_wait_for_replicas_at_a_time(
    new_broker: NewBroker, lane: LaneFactory
) -> None:
    broker = new_broker(lane)
    for number in range(3):
        frame = frame_of(request_of([(("replicated", 0), batch_of(b"a"))]), 9)
        response, pending, allows_next_produce = broker.send(frame)[1:4]
        assert (response, pending, allows_next_produce) == (b"", number + 1, [True] * (number + 1))
    broker.replicate("replicated")
    response, pending = broker.notice()[:2]
    assert response != b""
    assert (pending, broker.handled) == (0, 0)


def test_clients_with_permission_take_the_lane_and_others_do_not(
    new_broker: NewBroker, lane: LaneFactory
) -> None:
    broker = new_broker(lane)
    acls = ClientAcls(broker.world)
    frame = frame_of(request_of([(("orders", 0), batch_of(b"a"))]), 13)
    assert not served_by_lane(broker, frame)
    acls.allow(AclOperation.WRITE, topic_resource("orders"))
    assert served_by_lane(broker, frame)
    assert broker.world.partition("orders").high_watermark == 1


def test_a_denial_counts_for_the_next_request_of_a_client_that_was_allowed(
    new_broker: NewBroker, lane: LaneFactory
) -> None:
    broker = new_broker(lane)
    acls = ClientAcls(broker.world)
    acls.allow(AclOperation.WRITE, topic_resource("orders"))
    frame = frame_of(request_of([(("orders", 0), batch_of(b"a"))]), 13)
    assert served_by_lane(broker, frame)
    acls.deny(AclOperation.WRITE, topic_resource("orders"))
    assert not served_by_lane(broker, frame)
    assert broker.world.partition("orders").log.log_end_offset == 1


def test_the_lane_keeps_nothing_of_the_requests_that_it_serves(
    new_broker: NewBroker, lane: LaneFactory
) -> None:
    broker = new_broker(lane)
    good = batch_of(b"a" * 100, codec=Codec.LZ4)
    for topic in ("orders", "replicated"):
        content = bytearray(frame_of(request_of([(("orders", 0), good), ((topic, 0), good)]), 13))
        with memoryview(content) as view:
            broker.handle(view)
        content.append(0)  # raises BufferError while there is a view
    assert broker.handled == 0


@pytest.mark.parametrize("failing_write", [None, (1, errno.ENOSPC)])
@pytest.mark.parametrize("topic", ["orders", "replicated"])
@pytest.mark.parametrize("acks", [-1, 0, 1])
@pytest.mark.parametrize("version", [8, 9, 12])
def test_the_lane_serves_clients_with_quotas(
    new_broker: NewBroker,
    lane: LaneFactory,
    version: int,
    acks: int,
    topic: str,
    failing_write: tuple[int, int] | None,
) -> None:
    with_lane, without = both = new_broker(lane), new_broker(None)
    batches = [(("orders", 0), batch_of(b"a")), ((topic, 0), batch_of(b"b"))]
    frame = frame_of(request_of(batches, acks=acks), version)
    for bound, is_throttled in ((1e9, False), (1, True)):
        for broker in both:
            quotas = {"producer_byte_rate": bound, "request_percentage": 100.0}
            broker.world.broker.quotas.update({(("user", "alice"),): quotas})
        assert with_lane.send(frame, failing_write) == without.send(frame, failing_write)
        for broker in both:
            broker.replicate("replicated")
        assert with_lane.notice() == without.notice()
        assert with_lane.state() == without.state()
        assert len(list(filter(None, with_lane.delays()))) == is_throttled
    assert with_lane.handled == 0


# The same responses, logs and metrics


@dataclass(frozen=True)
class Send:
    """A Produce request, perhaps damaged, or with a write that fails."""

    version: int
    acks: int
    transactional_id: str | None
    batches: list[tuple[TopicPartition, "Batch"]]
    cut: int | None = None
    flips: list[tuple[int, int]] = field(default_factory=list)
    failing_write: tuple[int, int] | None = None
    """The number of the write, and the error."""

    def frame(self) -> bytes:
        batches = [(topic_partition, batch.encode()) for topic_partition, batch in self.batches]
        request = request_of(batches, acks=self.acks, transactional_id=self.transactional_id)
        frame = bytearray(frame_of(request, self.version))
        for position, value in self.flips:
            # The header is the pipeline's.
            frame[20 + position % (len(frame) - 20)] ^= value
        return bytes(frame[: max(20, len(frame) - self.cut)] if self.cut else frame)


@dataclass(frozen=True)
class Batch:
    fields: dict[str, Any]
    values: list[bytes | None]
    keys: bool
    late_ms: int
    damage: tuple[int, int] | None

    def encode(self) -> Any:
        if not self.values:
            return None
        keys = tuple([b"k" if self.keys else None] * len(self.values))
        batch = batch_of(*self.values, keys=keys, now_ms=START_MS - self.late_ms, **self.fields)
        if self.damage is not None:
            position, value = self.damage
            batch[position % len(batch)] ^= value
        return batch


def sends_of(
    topic_partitions: st.SearchStrategy[TopicPartition],
    batches: st.SearchStrategy[Batch],
    **options: Any,
) -> st.SearchStrategy[Send]:
    return st.builds(
        Send,
        version=st.integers(3, 13),
        batches=st.lists(st.tuples(topic_partitions, batches), min_size=1, max_size=4),
        transactional_id=st.sampled_from([None, "tx", "tx"]),
        failing_write=st.one_of(
            *[st.none()] * 10,
            st.tuples(st.integers(0, 3), st.sampled_from([errno.ENOSPC, errno.EIO])),
        ),
        **options,
    )


def batches_of(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Batch]:
    sequences = st.fixed_dictionaries(
        {
            "producer_id": st.sampled_from([7, 7, 8]),
            "producer_epoch": st.sampled_from([0, 0, 0, 1]),
            "base_sequence": st.integers(0, 3),
        },
        optional={"transactional": st.booleans()},
    )
    codecs = st.sampled_from([Codec.NONE] * 3 + list(Codec))
    headers = st.tuples(st.one_of(st.just({}), sequences), codecs)
    return st.builds(
        Batch, fields=headers.map(lambda pair: {**pair[0], "codec": pair[1]}), **fields
    )


plain_sends = sends_of(
    st.tuples(st.sampled_from([*["orders"] * 6, "replicated", "rolling"]), st.just(0)),
    batches_of(
        values=st.lists(st.sampled_from([b"v", b"value" * 30]), min_size=1, max_size=2),
        keys=st.just(True),
        late_ms=st.just(0),
        damage=st.none(),
    ),
    acks=st.sampled_from([-1, 0, 1]),
    cut=st.none(),
    flips=st.just([]),
)
any_sends = sends_of(
    st.tuples(
        st.sampled_from([*TOPICS, *["orders"] * 5, *["replicated"] * 3, "rolling", "unknown"]),
        st.sampled_from([0, 0, 0, 1, 2, 9]),
    ),
    batches_of(
        values=st.lists(st.sampled_from([b"v", b"value" * 30, None]), max_size=3),
        keys=st.booleans(),
        late_ms=st.sampled_from([0, 0, 0, 5000]),
        damage=st.one_of(*[st.none()] * 4, st.tuples(st.integers(0, 200), st.integers(1, 255))),
    ),
    acks=st.sampled_from([-1, -1, 0, 1, 1, 2]),
    cut=st.one_of(*[st.none()] * 6, st.integers(1, 60)),
    flips=st.one_of(
        *[st.just([])] * 5,
        st.lists(st.tuples(st.integers(0, 400), st.integers(1, 255)), min_size=1, max_size=2),
    ),
)
changes = st.sampled_from(
    [
        *["replicate", "expire", "lose leadership", "lead again", "shrink", "commit", "abort"],
        *["wait", "quota", "small quota", "quota of another", "no quota"],
    ]
)


def happen(broker: ProduceBroker, change: str) -> tuple[object, ...]:
    world = broker.world
    match change:
        case "replicate":
            broker.replicate("replicated")
        case "expire":
            world.timer.ring()
        case "lose leadership":
            world.lead("replicated", leader=FOLLOWER)
        case "lead again":
            world.lead("replicated", isr=(NODE_ID, FOLLOWER))
        case "shrink":
            world.lead("replicated", isr=(NODE_ID,))
        case "commit" | "abort":
            if world.partition("orders").is_leader:
                world.end_transaction("orders", committed=change == "commit", epoch=1)
        case "wait":
            world.now_ms += 2000
        case "quota" | "small quota":
            bound = 1e9 if change == "quota" else 10
            quotas = {"producer_byte_rate": bound, "request_percentage": 100}
            world.broker.quotas.update({(("user", "alice"),): quotas})
        case "quota of another":
            world.broker.quotas.update({(("user", "bob"),): {"request_percentage": 1}})
        case "no quota":
            world.broker.quotas.update({})
    return broker.notice()


@given(
    steps=st.lists(st.one_of(plain_sends, plain_sends, any_sends, changes), min_size=1, max_size=12)
)
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_lane_and_handler_give_the_same(
    new_broker: NewBroker, lane: LaneFactory, steps: list[Send | str]
) -> None:
    with_lane, without = new_broker(lane), new_broker(None)
    for step in steps:
        noticed = []
        for broker in (with_lane, without):
            if isinstance(step, Send):
                noticed.append(broker.send(step.frame(), step.failing_write))
            else:
                noticed.append(happen(broker, step))
        assert noticed[0] == noticed[1]
    assert with_lane.state() == without.state()
    event(f"{with_lane.handled} of {without.handled} requests were declined")
