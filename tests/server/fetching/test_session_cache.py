"""Fetch sessions: partitions are requested once, and only changes are returned."""

from random import Random

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.server.fetching.fetch_session import INITIAL_EPOCH, SessionPartition
from barnabas.server.fetching.session_cache import (
    FINAL_EPOCH,
    ContextKind,
    FetchContext,
    FetchSessionCache,
)
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import (
    EpochEndOffset,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)

V = 13
EVICTION_MS = 1000


def topic_id(name: str) -> bytes:
    return name.encode().ljust(16, b"_")


def a_fetch(
    session_id: int = 0,
    epoch: int = INITIAL_EPOCH,
    partitions: dict[tuple[str, int], int] | None = None,
    forgotten: list[tuple[str, int]] | None = None,
    replica_id: int = -1,
) -> FetchRequest:
    """`partitions` has the requested offset by topic and partition."""
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        replica_state=ReplicaState(replica_id=replica_id),
        topics=[
            FetchTopic(
                topic=topic,
                topic_id=topic_id(topic),
                partitions=[
                    FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=99)
                ],
            )
            for (topic, index), offset in (partitions or {}).items()
        ],
        forgotten_topics_data=[
            ForgottenTopic(topic=topic, topic_id=topic_id(topic), partitions=[index])
            for topic, index in forgotten or []
        ],
    )


def sessions_of(slots: int = 2) -> FetchSessionCache:
    return FetchSessionCache(slots, eviction_ms=EVICTION_MS, random=Random(7))


def result_of(
    partitions: SessionPartition, high_watermark: int = 10, records: bytes = b"", **more: object
) -> tuple[SessionPartition, PartitionData]:
    return partitions, PartitionData(
        partition_index=partitions.index,
        high_watermark=high_watermark,
        log_start_offset=0,
        records=records,
        **more,  # type: ignore[arg-type]
    )


def answer_all(context: FetchContext, now_ms: int = 0, **ends: object) -> FetchResponse:
    return context.response([result_of(p, **ends) for p in context.partitions()], now_ms)  # type: ignore[arg-type]


def returned_partitions(response: FetchResponse) -> list[tuple[bytes, int]]:
    return [
        (topic.topic_id, partition.partition_index)
        for topic in response.responses
        for partition in topic.partitions
    ]


def opened(
    sessions: FetchSessionCache,
    partitions: dict[tuple[str, int], int],
    now_ms: int = 0,
    replica_id: int = -1,
) -> int:
    context = sessions.context(a_fetch(partitions=partitions, replica_id=replica_id), 15, now_ms)
    return answer_all(context, now_ms).session_id


TWO = {("a", 0): 5, ("b", 1): 6}


def test_a_full_fetch_returns_all_partitions_and_opens_a_session() -> None:
    sessions = sessions_of()
    context = sessions.context(a_fetch(partitions=TWO), V, 0)
    assert context.kind is ContextKind.FULL
    assert [(p.topic, p.index, p.fetch_offset, p.max_bytes) for p in context.partitions()] == [
        ("a", 0, 5, 99),
        ("b", 1, 6, 99),
    ]
    response = answer_all(context)
    assert response.session_id != 0
    assert returned_partitions(response) == [(topic_id("a"), 0), (topic_id("b"), 1)]
    assert (len(sessions), sessions.partition_count) == (1, 2)


def test_an_incremental_fetch_reads_every_partition_and_returns_only_what_is_new() -> None:
    sessions = sessions_of()
    session_id = opened(sessions, TWO)
    context = sessions.context(a_fetch(session_id, 1, {("a", 0): 7}), V, 0)
    assert [(p.topic, p.fetch_offset) for p in context.partitions()] == [("a", 7), ("b", 6)]
    assert not any(p.has_changed(10, 0) for p in context.partitions())
    response = answer_all(context)
    assert (response.error_code, response.session_id, returned_partitions(response)) == (
        0,
        session_id,
        [],
    )


@pytest.mark.parametrize(
    "news",
    [
        {"high_watermark": 11},
        {"records": b"some"},
        {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER},
        {"preferred_read_replica": 2},
        {"diverging_epoch": EpochEndOffset(epoch=3, end_offset=4)},
    ],
)
def test_changed_offsets_are_returned(news: dict[str, object]) -> None:
    sessions = sessions_of()
    session_id = opened(sessions, TWO)
    context = sessions.context(a_fetch(session_id, 1), V, 0)
    first, second = context.partitions()
    response = context.response([result_of(first), result_of(second, **news)], 0)  # type: ignore[arg-type]
    assert returned_partitions(response) == [(topic_id("b"), 1)]


def test_the_first_good_result_after_an_error_is_returned() -> None:
    sessions = sessions_of()
    session_id = opened(sessions, {("a", 0): 0})
    answer_all(
        sessions.context(a_fetch(session_id, 1), V, 0), error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    assert returned_partitions(answer_all(sessions.context(a_fetch(session_id, 2), V, 0)))
    assert not returned_partitions(answer_all(sessions.context(a_fetch(session_id, 3), V, 0)))


def test_partitions_with_records_are_read_last_next_time() -> None:
    sessions = sessions_of()
    session_id = opened(sessions, {("a", 0): 0, ("b", 0): 0, ("c", 0): 0})
    context = sessions.context(a_fetch(session_id, 1), V, 0)
    first, second, third = context.partitions_to_read()
    context.response([result_of(first, records=b"some"), result_of(second), result_of(third)], 0)
    context = sessions.context(a_fetch(session_id, 2), V, 0)
    assert [p.topic for p in context.partitions_to_read()] == ["b", "c", "a"]


def test_forgotten_partitions_are_removed_and_new_ones_come_last() -> None:
    sessions = sessions_of()
    session_id = opened(sessions, TWO)
    request = a_fetch(session_id, 1, {("c", 0): 1}, forgotten=[("a", 0)])
    assert [p.topic for p in sessions.context(request, V, 0).partitions()] == ["b", "c"]
    assert sessions.partition_count == 2


def test_a_session_without_partitions_is_closed() -> None:
    sessions = sessions_of()
    session_id = opened(sessions, TWO)
    context = sessions.context(a_fetch(session_id, 1, forgotten=list(TWO)), V, 0)
    assert context.kind is ContextKind.SESSIONLESS
    assert answer_all(context).session_id == 0
    assert (len(sessions), sessions.partition_count) == (0, 0)


def test_the_final_epoch_closes_the_session_and_opens_none() -> None:
    sessions = sessions_of()
    session_id = opened(sessions, TWO)
    response = answer_all(sessions.context(a_fetch(session_id, FINAL_EPOCH, TWO), V, 0))
    assert response.session_id == 0
    assert len(returned_partitions(response)) == 2
    assert len(sessions) == 0


def test_a_new_full_fetch_replaces_the_old_session() -> None:
    sessions = sessions_of(slots=1)
    session_id = opened(sessions, TWO)
    response = answer_all(sessions.context(a_fetch(session_id, INITIAL_EPOCH, TWO), V, 0))
    assert response.session_id not in (0, session_id)


@pytest.mark.parametrize(
    ("version", "change_id", "epoch", "error"),
    [
        (V, 1, 1, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (V, 0, 2, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (12, 0, 1, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ],
)
def test_a_session_that_the_client_does_not_expect_is_an_error(
    version: int, change_id: int, epoch: int, error: ErrorCode
) -> None:
    sessions = sessions_of()
    session_id = opened(sessions, TWO)
    context = sessions.context(a_fetch(session_id + change_id, epoch), version, 0)
    assert (context.error, list(context.partitions())) == (error, [])
    response = context.response([], 0)
    assert (response.error_code, response.responses) == (error, [])


def test_a_fetch_repeated_while_the_first_is_delayed_is_rejected_and_so_is_the_late_response() -> (
    None
):
    sessions = sessions_of()
    session_id = opened(sessions, TWO)
    parked = sessions.context(a_fetch(session_id, 1), V, 0)
    repeated = sessions.context(a_fetch(session_id, 1), V, 0)
    assert repeated.error is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    following = sessions.context(a_fetch(session_id, 2), V, 0)
    assert answer_all(parked).error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert answer_all(following).error_code == ErrorCode.NONE


def test_epochs_wrap_around_past_the_reserved_ones() -> None:
    sessions = sessions_of()
    session_id = opened(sessions, TWO)
    sessions._by_id[session_id].epoch = 2**31 - 1
    assert sessions.context(a_fetch(session_id, 2**31 - 1), V, 0).error is ErrorCode.NONE
    assert sessions.context(a_fetch(session_id, 1), V, 0).error is ErrorCode.NONE


def test_names_identify_partitions_before_topic_ids_do() -> None:
    sessions = sessions_of()
    context = sessions.context(a_fetch(partitions=TWO), 12, 0)
    assert [p.key for p in context.partitions()] == [("a", 0), ("b", 1)]
    session_id = answer_all(context).session_id
    assert sessions.context(a_fetch(session_id, 1), 12, 0).error is ErrorCode.NONE


def test_a_session_keeps_the_partition_that_the_handler_looked_up() -> None:
    sessions = sessions_of()
    context = sessions.context(a_fetch(partitions=TWO), V, 0)
    marker = object()
    for requested in context.partitions():
        requested.partition = marker  # type: ignore[assignment]
    session_id = answer_all(context).session_id
    again = sessions.context(a_fetch(session_id, 1, {("a", 0): 9}), V, 0)
    assert [p.partition for p in again.partitions()] == [marker, marker]


# Eviction


def large(size: int) -> dict[tuple[str, int], int]:
    return {("t", index): 0 for index in range(size)}


def test_young_sessions_of_consumers_are_not_evicted_by_consumers() -> None:
    sessions = sessions_of(slots=1)
    assert opened(sessions, large(1), now_ms=0)
    assert opened(sessions, large(50), now_ms=EVICTION_MS) == 0


def test_a_session_unused_for_long_is_evicted() -> None:
    sessions = sessions_of(slots=1)
    opened(sessions, large(9), now_ms=0)
    assert opened(sessions, large(1), now_ms=EVICTION_MS + 1)
    assert (len(sessions), sessions.evictions, sessions.partition_count) == (1, 1, 1)


def grown_old(sessions: FetchSessionCache, size: int) -> int:
    """A session in use for longer than the eviction time."""
    session_id = opened(sessions, large(size), now_ms=0)
    for epoch, now_ms in enumerate((EVICTION_MS // 2, EVICTION_MS, EVICTION_MS + 1), 1):
        answer_all(sessions.context(a_fetch(session_id, epoch), V, now_ms))
    return session_id


def test_an_old_session_is_evicted_by_a_larger_fetch_only() -> None:
    sessions = sessions_of(slots=1)
    grown_old(sessions, 5)
    assert opened(sessions, large(5), now_ms=EVICTION_MS + 2) == 0
    assert opened(sessions, large(6), now_ms=EVICTION_MS + 2)


def test_a_follower_evicts_a_young_consumer_session_but_a_consumer_evicts_no_follower() -> None:
    sessions = sessions_of(slots=1)
    opened(sessions, large(5), now_ms=0)
    assert opened(sessions, large(1), now_ms=1, replica_id=3)
    assert opened(sessions, large(99), now_ms=2) == 0
    assert opened(sessions, large(99), now_ms=2, replica_id=4) == 0


def test_no_slots_means_no_sessions() -> None:
    sessions = sessions_of(slots=0)
    assert opened(sessions, TWO) == 0
    assert opened(sessions, {}) == 0


class SessionMachine(RuleBasedStateMachine):
    """A client that keeps its own view of the partitions always learns their watermarks."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions = sessions_of(slots=1)
        self.watermarks: dict[tuple[str, int], int] = {}
        self.followed: dict[tuple[str, int], int] = {}
        self.learned: dict[tuple[str, int], int] = {}
        self.session_id = 0
        self.epoch = 0

    @rule(index=st.integers(0, 3), watermark=st.integers(0, 5))
    def move(self, index: int, watermark: int) -> None:
        self.watermarks["t", index] = watermark

    @rule(added=st.sets(st.integers(0, 3)), dropped=st.sets(st.integers(0, 3)))
    def fetch(self, added: set[int], dropped: set[int]) -> None:
        sent_request = {("t", index): 0 for index in added}
        forgotten = [("t", i) for i in dropped - added if ("t", i) in self.followed]
        if self.session_id == 0:
            self.followed = sent_request
            request = a_fetch(partitions=sent_request)
        else:
            self.followed |= sent_request
            for key in forgotten:
                del self.followed[key]
            request = a_fetch(self.session_id, self.epoch, sent_request, forgotten)
        context = self.sessions.context(request, V, 0)
        assert context.error is ErrorCode.NONE
        assert {(p.topic, p.index) for p in context.partitions()} == set(self.followed)
        responses = []
        for requested in context.partitions():
            watermark = self.watermarks.get(("t", requested.index), 0)
            if requested.has_changed(watermark, 0):
                responses.append(result_of(requested, watermark))
        response = context.response(responses, 0)
        for topic in response.responses:
            for partition in topic.partitions:
                self.learned["t", partition.partition_index] = partition.high_watermark
        self.epoch = 1 if self.session_id == 0 else self.epoch + 1
        self.session_id = response.session_id
        for key in self.followed:
            assert self.learned[key] == self.watermarks.get(key, 0)
        self.learned = {key: self.learned[key] for key in self.followed}

    @precondition(lambda self: self.session_id)
    @rule()
    def break_off(self) -> None:
        context = self.sessions.context(a_fetch(self.session_id, FINAL_EPOCH), V, 0)
        answer_all(context)
        self.session_id = 0

    @invariant()
    def counts_agree(self) -> None:
        assert len(self.sessions) == (1 if self.session_id else 0)
        assert self.sessions.partition_count == (len(self.followed) if self.session_id else 0)


TestSessions = SessionMachine.TestCase
