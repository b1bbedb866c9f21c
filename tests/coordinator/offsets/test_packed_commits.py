"""Commits without metadata are packed: the log and the state are as with an object for each."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.coordinator.offsets.harness import OffsetHarness
from tests.uncompiled import compiled_and_plain

from barnabas.coordinator.groups.offsets import _plain_commits, _topic_offsets, commit
from barnabas.coordinator.groups.offsets.commit import _draft
from barnabas.coordinator.groups.offsets.plain_commit import PlainCommit
from barnabas.coordinator.groups.offsets.record import CommittedOffset, OffsetKey
from barnabas.coordinator.records import CoordinatorRecord, encode
from barnabas.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchResponsePartitions,
)
from barnabas.wire.records.batch import HEADER_BYTES
from barnabas.wire.records.build import build_batch, complete_batch
from barnabas.wire.uuid import ZERO

loops = compiled_and_plain(_plain_commits, _topic_offsets)

NO_PRODUCER = -1
NOW_MS = 1_700_000_000_000

int32s, int64s = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
indexes = st.integers(0, 200) | st.integers(0, 2**31 - 1)
partitions = st.builds(
    OffsetCommitRequestPartition,
    partition_index=indexes,
    committed_offset=int64s,
    committed_leader_epoch=int32s,
    committed_metadata=st.sampled_from(["", None]),
)
topics = st.tuples(
    st.sampled_from(["t", "ü", "a-longer-name" * 9]),
    st.sampled_from([ZERO, b"1" * 16, b"2" * 16]),
    st.lists(partitions, max_size=150),
)
commits = st.lists(topics, max_size=3)


def packed(requested: list[Any], group_id: str = "g") -> PlainCommit:
    commit = PlainCommit(group_id, NOW_MS)
    for name, topic_id, offered in requested:
        assert commit.add(name, topic_id, range(2**31), offered) == [0] * len(offered)
    return commit


def one_by_one(requested: list[Any], group_id: str = "g") -> list[CoordinatorRecord]:
    return [
        CoordinatorRecord(
            OffsetKey(group_id, name, each.partition_index),
            CommittedOffset(
                each.committed_offset, each.committed_leader_epoch, "", NOW_MS, -1, topic_id
            ),
            4,
        )
        for name, topic_id, offered in requested
        for each in offered
    ]


@given(commits, st.sampled_from(["g", "grüppe", "a group" * 20]), int64s)
def test_packed_commits_are_encoded_as_one_by_one(
    requested: list[Any], group_id: str, now_ms: int
) -> None:
    commit, records = packed(requested, group_id), one_by_one(requested, group_id)
    assert list(commit) == records
    assert len(commit) == len(records)
    if records:
        batch = commit.encode(HEADER_BYTES)
        complete_batch(batch, len(commit), now_ms, 0)
        encoded = [encode(record, now_ms) for record in records]
        assert batch == build_batch(encoded, base_sequence=0)


@given(
    st.lists(commits, max_size=4),
    st.lists(st.tuples(st.booleans(), partitions, st.sampled_from(["", "m"])), max_size=4),
)
def test_packed_commits_are_replayed_as_one_by_one(
    sequence: list[list[Any]], others: list[tuple[bool, Any, str]]
) -> None:
    """Some of the partitions have metadata, or an offset of an open transaction, before that."""
    harnesses = OffsetHarness(), OffsetHarness()
    for harness in harnesses:
        for is_pending, each, metadata in others:
            harness.groups.replay(
                CoordinatorRecord(
                    OffsetKey("g", "t", each.partition_index),
                    CommittedOffset(each.committed_offset, 1, metadata, 5, -1, ZERO),
                    4,
                ),
                7 if is_pending else NO_PRODUCER,
            )
    for requested in sequence:
        packed(requested).replay(harnesses[0].groups)
        for record in one_by_one(requested):
            harnesses[1].groups.replay(record, NO_PRODUCER)
    for harness in harnesses:
        harness.groups.replay_end(7, True)
    assert harnesses[0].held() == harnesses[1].held()
    assert harnesses[0].groups.offsets.count == harnesses[1].groups.offsets.count


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["t", "u", "missing"]),
            st.lists(
                st.builds(
                    OffsetCommitRequestPartition,
                    partition_index=st.integers(-1, 5),
                    committed_offset=int64s,
                    committed_leader_epoch=int32s,
                    committed_metadata=st.sampled_from(["", "", "", "m", None, "m" * 5000]),
                ),
                max_size=6,
            ),
        ),
        max_size=3,
    )
)
def test_every_commit_has_the_decision_of_the_general_way(offered: list[Any]) -> None:
    harness = OffsetHarness()
    request = OffsetCommitRequest(
        group_id="g",
        topics=[OffsetCommitRequestTopic(name=name, partitions=each) for name, each in offered],
    )
    context = harness.context(9)
    decided = commit(request, harness.groups, context)
    draft = _draft("g", request.topics, False, -1, context)
    assert list(decided.records) == draft.records
    codes = [[each.error_code for each in topic.partitions] for topic in decided.response.topics]
    assert codes == draft.codes


def test_packed_commits_are_in_the_log_and_survive_a_reload() -> None:
    harness = OffsetHarness()
    harness.commit({"t": {0: 10, 3: 13}, "u": {1: 21}})
    written = harness.written
    assert [record.key for record in written] == [("g", "t", 0), ("g", "t", 3), ("g", "u", 1)]
    held = harness.held()
    harness.reload()
    assert harness.held() == held
    assert {key: offset.offset for key, offset in held.items()} == {
        ("g", "t", 0): 10,
        ("g", "t", 3): 13,
        ("g", "u", 1): 21,
    }


@given(
    st.lists(st.tuples(indexes, int64s, int32s, st.sampled_from(["", "m"])), max_size=20),
    st.lists(indexes, max_size=20),
    st.sampled_from([ZERO, b"1" * 16, b"2" * 16]),
    st.sampled_from([ZERO, b"1" * 16]),
)
def test_offsets_are_listed_as_they_are_stored(
    stored: list[Any], others: list[int], wanted_id: bytes, topic_id: bytes
) -> None:
    offsets = _topic_offsets.TopicOffsets()
    expected: dict[int, tuple[int, int, str | None]] = {}
    for index, offset, epoch, metadata in stored:
        offsets.put(index, CommittedOffset(offset, epoch, metadata, NOW_MS, -1, topic_id))
        is_wanted = ZERO in (wanted_id, topic_id) or wanted_id == topic_id
        expected[index] = (offset, epoch, metadata) if is_wanted else (-1, -1, "")
    wanted = [*expected, *others]
    for source in (offsets, None):
        listed = _topic_offsets.list_offsets(
            source, wanted, wanted_id, OffsetFetchResponsePartitions
        )
        assert [
            (
                each.partition_index,
                (each.committed_offset, each.committed_leader_epoch, each.metadata),
                each.error_code,
            )
            for each in listed
        ] == [
            (index, expected.get(index, (-1, -1, "")) if source else (-1, -1, ""), 0)
            for index in wanted
        ]
