"""Plain commits are replayed without an object for each, with the same result as one by one."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.coordinator.environment import CoordinatorEnvironment
from tests.uncompiled import compiled_and_plain

from barnabas.coordinator.groups.offsets import _topic_offsets
from barnabas.coordinator.groups.offsets.record import CommittedOffset, LegacyOffsetKey, OffsetKey
from barnabas.coordinator.groups.state import GROUP_RECORDS, GroupCoordinatorState
from barnabas.coordinator.records import CoordinatorRecord, EncodedRecord, RecordTypes, encode
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.uuid import ZERO

loops = compiled_and_plain(_topic_offsets)

NO_PRODUCER = -1

int32s, int64s = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
partitions = st.integers(0, 130) | int32s
keys = st.builds(OffsetKey, st.sampled_from(["g", "h", ""]), st.sampled_from("tü"), partitions)
offsets = st.builds(
    CommittedOffset,
    int64s,
    int32s,
    st.sampled_from(["", "", "", "m"]),
    int64s,
    st.just(-1),
    st.sampled_from([b"1" * 16, b"2" * 16, ZERO]),
)
commits = st.builds(CoordinatorRecord, keys, offsets, st.sampled_from([4, 4, 4, 3, 1]))
tombstones = st.builds(CoordinatorRecord, keys, st.none())


def encoded(record: CoordinatorRecord) -> EncodedRecord:
    written = encode(record, 0)
    return written.key, written.value


def state_after(
    records: list[EncodedRecord], types: type[RecordTypes], pending: CoordinatorRecord | None
) -> Any:
    """Replays the records with `types.replay`. Returns what the state has, or the error."""
    state = CoordinatorEnvironment().lead_groups()
    if pending is not None:
        state.replay(pending, 7)
    try:
        types.replay(GROUP_RECORDS, records, NO_PRODUCER, state)
    except ProtocolViolation as error:
        return str(error)
    if pending is not None:
        state.replay_end(7, True)
    return state.offsets.count, _contents(state)


def _contents(state: GroupCoordinatorState) -> dict[str, Any]:
    return {
        group_id: {topic: dict(offsets) for topic, offsets in state.offsets.of(group_id).items()}
        for group_id in state.by_id
    }


@given(st.lists(commits | tombstones, max_size=30), st.none() | commits)
def test_commits_of_all_kinds_are_replayed_as_one_by_one(
    records: list[CoordinatorRecord], pending: CoordinatorRecord | None
) -> None:
    log = [encoded(record) for record in records]
    one_by_one = state_after(log, RecordTypes, pending)
    assert state_after(log, type(GROUP_RECORDS), pending) == one_by_one


@given(commits, st.booleans(), st.integers(0, 60), st.none() | st.integers(0, 255))
def test_commits_with_a_wrong_byte_or_cut_short_are_replayed_as_one_by_one(
    record: CoordinatorRecord, in_key: bool, at: int, byte: int | None
) -> None:
    """Without a byte, the key or the value ends there."""

    def damaged(whole: bytes) -> bytes:
        return whole[:at] if byte is None else whole[:at] + bytes([byte]) + whole[at + 1 :]

    key, value = encoded(record)
    assert key is not None
    assert value is not None
    log = [(damaged(key), value) if in_key else (key, damaged(value))]
    assert state_after(log, type(GROUP_RECORDS), None) == state_after(log, RecordTypes, None)


def test_records_without_a_key_and_of_the_oldest_kind_are_replayed_in_between() -> None:
    committed = CommittedOffset(5, 1, "", 9, -1, ZERO)
    first = encoded(CoordinatorRecord(OffsetKey("g", "t", 0), committed, 4))
    legacy = encoded(CoordinatorRecord(LegacyOffsetKey("g", "t", 1), committed, 0))
    state = CoordinatorEnvironment().lead_groups()
    GROUP_RECORDS.replay([first, (None, b"?"), legacy, first], NO_PRODUCER, state)
    assert dict(state.offsets.of("g")["t"]) == {
        0: committed,
        1: committed._replace(leader_epoch=-1),
    }


@pytest.mark.parametrize("size", range(2, 12))
def test_a_key_that_is_cut_short_is_a_violation(size: int) -> None:
    committed = CommittedOffset(0, 0, "", 0, -1, ZERO)
    key, value = encoded(CoordinatorRecord(OffsetKey("g", "t", 0), committed, 4))
    with pytest.raises(ProtocolViolation):
        GROUP_RECORDS.decode((key or b"")[:size], value)
