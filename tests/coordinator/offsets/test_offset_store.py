"""The packed store against a plain one, whatever the log says."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.coordinator.environment import CoordinatorEnvironment
from tests.uncompiled import compiled_and_plain

from barnabas.coordinator.decision import CoordinatorDecision, ProducerStamp
from barnabas.coordinator.groups.offsets import _topic_offsets
from barnabas.coordinator.groups.offsets.record import CommittedOffset, OffsetKey
from barnabas.coordinator.groups.offsets.store import OffsetStore
from barnabas.coordinator.ports import TransactionMarker
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.uuid import ZERO

loops = compiled_and_plain(_topic_offsets)

NO_PRODUCER = -1

partitions = st.sampled_from([0, 1, 2, 62, 63, 64, 65, 127, 128, 6_400, 2**31 - 1])
keys = st.builds(OffsetKey, st.sampled_from("gh"), st.sampled_from("tu"), partitions)
offsets = st.builds(
    CommittedOffset,
    st.integers(-(2**63), 2**63 - 1),
    st.integers(-1, 2**31 - 1),
    st.sampled_from(["", "", "m", "longer metadata"]),
    st.integers(0, 2**42),
    st.just(-1),
    st.sampled_from([b"1" * 16, b"2" * 16]),
)
producers = st.sampled_from([1, 2, 3])


@dataclass(frozen=True)
class Put:
    key: OffsetKey
    committed: CommittedOffset
    producer: int


@dataclass(frozen=True)
class Remove:
    key: OffsetKey


@dataclass(frozen=True)
class End:
    producer: int
    committed: bool


Event = Put | Remove | End
events = st.lists(
    st.builds(Put, keys, offsets, st.just(NO_PRODUCER) | producers)
    | st.builds(Remove, keys)
    | st.builds(End, producers, st.booleans()),
    max_size=40,
)


@dataclass
class Model:
    """What Kafka does: each offset knows where in the log it stands, and the later one wins."""

    committed: dict[OffsetKey, tuple[int, CommittedOffset]] = field(default_factory=dict)
    pending: dict[int, dict[OffsetKey, tuple[int, CommittedOffset]]] = field(default_factory=dict)
    position: int = 0

    def apply(self, event: Event) -> None:
        self.position += 1
        match event:
            case Put(key, committed, producer):
                into = self.committed
                if producer != NO_PRODUCER:
                    into = self.pending.setdefault(producer, {})
                into[key] = (self.position, committed)
            case Remove(key):
                for each in (self.committed, *self.pending.values()):
                    each.pop(key, None)
            case End(producer, is_committed):
                for key, ended in self.pending.pop(producer, {}).items():
                    if is_committed and self.committed.get(key, (0, None))[0] < ended[0]:
                        self.committed[key] = ended

    def pending_keys(self) -> set[OffsetKey]:
        return {key for keys in self.pending.values() for key in keys}


def assert_same(store: OffsetStore, model: Model) -> None:
    expected = {key: committed for key, (_, committed) in model.committed.items()}
    held = {
        OffsetKey(group, topic, partition): committed
        for group in "gh"
        for topic, topic_offsets in store.of(group).items()
        for partition, committed in topic_offsets
    }
    assert held == expected
    assert store.count == len(expected)
    for key, committed in expected.items():
        assert store.get(*key) == committed
    waiting = model.pending_keys()
    assert set(store.pending.by_key) == waiting
    for group in "gh":
        everything = {key for key in waiting | set(expected) if key.group == group}
        assert set(store.keys_of(group)) == everything
        assert store.has_any(group) == bool(everything)
    for topic in "tu":
        groups = {key.group for key in expected if key.topic == topic}
        assert store.groups_of(topic) == groups


@settings(deadline=None)
@given(events)
def test_the_store_equals_a_plain_dictionary(log: list[Event]) -> None:
    store, model = OffsetStore(), Model()
    for event in log:
        model.apply(event)
        match event:
            case Put(key, committed, producer):
                store.put(key, committed, producer)
            case Remove(key):
                store.remove(key)
            case End(producer, is_committed):
                store.end_transaction(producer, is_committed)
    assert_same(store, model)
    for key in list(store.keys_of("g")) + list(store.keys_of("h")):
        store.remove(key)
    assert_same(store, Model())


@settings(deadline=None, max_examples=50)
@given(events)
def test_loading_the_log_makes_the_same_store(log: list[Event]) -> None:
    environment, model = CoordinatorEnvironment(), Model()
    environment.lead_groups()
    for event in log:
        model.apply(event)
        match event:
            case Put(key, committed, producer):
                stamp = None if producer == NO_PRODUCER else ProducerStamp(producer, 0)
                records = [CoordinatorRecord(key, committed, 4)]
                decision = CoordinatorDecision(records, None, producer=stamp)
                environment.shard.write(lambda _, decision=decision: decision)
            case Remove(key):
                removal = [CoordinatorRecord(key, None)]
                decision = CoordinatorDecision(removal, None)
                environment.shard.write(lambda _, decision=decision: decision)
            case End(producer, is_committed):
                environment.shard.end_transaction(
                    TransactionMarker(producer, 0, 0, is_committed, 1)
                )
    assert_same(environment.shard.state.offsets, model)
    assert_same(environment.lead_groups().offsets, model)


@given(st.dictionaries(st.integers(-70, 300), offsets, max_size=100), st.data())
def test_partitions_in_any_order_are_packed_without_loss(
    requested: dict[int, CommittedOffset], data: st.DataObject
) -> None:
    packed = _topic_offsets.TopicOffsets()
    for partition in data.draw(st.permutations(list(requested))):
        assert packed.put(partition, requested[partition])
        assert not packed.put(partition, requested[partition])
    assert dict(packed) == requested
    assert len(packed) == len(requested)
    for partition in range(-80, 310):
        assert packed.get(partition) == requested.get(partition)
    for partition in data.draw(st.permutations(list(requested))):
        assert packed.remove(partition)
        assert not packed.remove(partition)
    assert not packed


def test_an_offset_takes_twenty_bytes() -> None:
    packed = _topic_offsets.TopicOffsets()
    for partition in range(640):
        packed.put(partition, CommittedOffset(partition, 0, "", 1, -1, ZERO))
    assert sum(len(page.entries) for _, page in packed.pages()) == 640 * 20
