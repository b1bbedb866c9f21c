"""What a replica fetcher sends, and what it does with the responses."""

import logging
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.log_records import barnabas_log_records
from tests.replication.replica_fetcher.pair import BROKER_EPOCH, LIMITS, TOPIC, Pair

from barnabas.replication.replica_fetcher.followed_partition import (
    FollowedPartition,
    PartitionFetchState,
)
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsRequest


def fetched(pair: Pair) -> list[FetchRequest]:
    return [request for request in pair.leader.requests if isinstance(request, FetchRequest)]


def named(request: FetchRequest) -> list[int]:
    return [each.partition for topic in request.topics for each in topic.partitions]


def forgotten(request: FetchRequest) -> list[int]:
    return [index for topic in request.forgotten_topics_data for index in topic.partitions]


def fail_with(code: ErrorCode, index: int = 0) -> Callable[[FetchResponse], None]:
    def spoil(response: FetchResponse) -> None:
        for topic in response.responses:
            for response in topic.partitions:
                if response.partition_index == index:
                    response.error_code = code
                    response.records = b""

    return spoil


def test_a_fetch_has_the_replica_id_and_the_limits(pair: Pair) -> None:
    pair.exchange()
    [request] = fetched(pair)
    replica = request.replica_state
    assert (replica.replica_id, replica.replica_epoch) == (pair.follower_id, BROKER_EPOCH)
    assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == (500, 1, 10_000)
    [partition] = request.topics[0].partitions
    assert (partition.current_leader_epoch, partition.partition_max_bytes) == (0, 1_000)


def test_only_changed_partitions_are_named_again(new_pair: Callable[..., Pair]) -> None:
    pair = new_pair()
    pair.create_topic(3)
    pair.exchange()
    pair.append(b"a", index=1)
    for _ in range(3):
        pair.exchange()
    first, idle, then, after = fetched(pair)
    assert (named(first), first.session_epoch) == ([0, 1, 2], 0)
    assert (named(idle), idle.session_epoch) == ([], 1)
    assert (named(then), then.session_epoch) == ([1], 2)
    assert (named(after), after.session_epoch) == ([], 3)
    assert first.session_id == 0
    assert idle.session_id == then.session_id == after.session_id != 0


def test_a_removed_partition_is_forgotten_by_the_session(new_pair: Callable[..., Pair]) -> None:
    pair = new_pair()
    pair.create_topic(2)
    pair.exchange()
    pair.fetcher.remove((pair.followed.topic_id, 0))
    pair.exchange()
    assert forgotten(fetched(pair)[1]) == [0]
    pair.fetcher.remove((pair.followed.topic_id, 1))
    assert pair.fetcher.next_request(pair.now_ms) is None


def test_a_partition_removed_while_the_session_opens_is_forgotten_too(
    new_pair: Callable[..., Pair],
) -> None:
    """Otherwise the leader would reject it in every response, and each would be retried at once."""
    pair = new_pair()
    pair.create_topic(2)
    request = pair.fetcher.next_request(pair.now_ms)
    assert isinstance(request, FetchRequest)
    response = pair.leader.respond(request)
    pair.fetcher.remove((pair.followed.topic_id, 0))
    pair.fetcher.on_response(response, pair.now_ms)
    pair.exchange()
    assert forgotten(fetched(pair)[-1]) == [0]


def test_a_response_for_a_partition_that_was_removed_meanwhile_is_ignored(pair: Pair) -> None:
    pair.append(b"a")
    request = pair.fetcher.next_request(pair.now_ms)
    assert isinstance(request, FetchRequest)
    response = pair.leader.respond(request)
    pair.fetcher.remove((pair.followed.topic_id, 0))
    pair.fetcher.on_response(response, pair.now_ms)
    assert pair.followed.log.log_end_offset == 0


def test_a_response_to_a_fetch_in_an_older_leader_epoch_is_ignored(pair: Pair) -> None:
    pair.append(b"a")
    request = pair.fetcher.next_request(pair.now_ms)
    assert isinstance(request, FetchRequest)
    response = pair.leader.respond(request)
    pair.lead(pair.leader_id)
    pair.fetcher.on_response(response, pair.now_ms)
    assert pair.followed.log.log_end_offset == 0
    pair.settle()
    assert pair.followed.log.log_end_offset == 1


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    ],
)
def test_a_session_that_the_leader_does_not_know_is_restarted(pair: Pair, error: ErrorCode) -> None:
    pair.exchange()
    request = pair.fetcher.next_request(pair.now_ms)
    assert isinstance(request, FetchRequest)
    pair.fetcher.on_response(FetchResponse(error_code=error), pair.now_ms)
    pair.append(b"a")
    pair.exchange()
    again = fetched(pair)[-1]
    assert (again.session_epoch, named(again)) == (0, [0])
    is_known = error != ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert again.session_id == (request.session_id if is_known else 0)
    assert pair.followed.log.log_end_offset == 1


def test_a_leader_without_free_sessions_gets_full_fetches(
    new_pair: Callable[..., Pair],
) -> None:
    pair = new_pair(slots=0)
    pair.create_topic(2)
    pair.append(b"a")
    pair.settle()
    assert pair.followed.log.log_end_offset == 1
    assert {tuple(sorted(named(request))) for request in fetched(pair)} == {(0, 1)}
    assert named(fetched(pair)[-1]) == [1, 0]  # the partition with the latest records comes last


def test_a_lost_connection_is_retried_after_the_backoff_with_a_new_session(
    pair: Pair,
) -> None:
    pair.exchange()
    assert pair.fetcher.next_request(0) is not None
    pair.fetcher.on_connection_lost(0)
    assert pair.fetcher.next_request(999) is None
    assert pair.fetcher.next_due_ms(999) == 1_000
    request = pair.fetcher.next_request(1_000)
    assert isinstance(request, FetchRequest)
    assert (request.session_epoch, named(request)) == (0, [0])


def test_a_metadata_change_of_a_broker_ends_the_backoff_of_its_connection(pair: Pair) -> None:
    pair.fetcher.on_connection_lost(0)
    assert pair.fetcher.next_request(1) is None
    pair.lead(pair.leader_id)
    assert pair.fetcher.next_request(1) is not None


def test_a_leader_without_its_metadata_is_retried_soon_and_then_less_often(
    pair: Pair,
) -> None:
    pair.leader.spoil = fail_with(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    asked_ms = []
    while len(asked_ms) < 10:
        if pair.exchange():
            asked_ms.append(pair.now_ms)
        else:
            due_ms = pair.fetcher.next_due_ms(pair.now_ms)
            assert due_ms is not None
            pair.now_ms = due_ms
    waits_ms = [later - earlier for earlier, later in pairwise(asked_ms)]
    assert waits_ms == [10, 20, 40, 80, 160, 320, 640, 1_000, 1_000]
    pair.leader.spoil = None
    pair.append(b"a")
    pair.settle()
    assert pair.followed.log.log_end_offset == 1


def test_a_delayed_partition_is_left_out_and_does_not_delay_the_others(
    new_pair: Callable[..., Pair],
) -> None:
    pair = new_pair()
    pair.create_topic(2)
    pair.leader.spoil = fail_with(ErrorCode.KAFKA_STORAGE_ERROR)
    pair.append(b"a", index=1)
    pair.exchange()
    pair.leader.spoil = None
    pair.now_ms = 700
    pair.exchange()
    request = fetched(pair)[-1]
    assert (forgotten(request), named(request)) == ([0], [1])
    assert request.max_wait_ms == 300  # until the other's time has come
    pair.now_ms = 1_000
    pair.exchange()
    assert named(fetched(pair)[-1]) == [0]


def test_a_fenced_leader_epoch_waits_for_the_metadata(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    pair.leader.spoil = fail_with(ErrorCode.FENCED_LEADER_EPOCH)
    pair.exchange()
    assert not barnabas_log_records(caplog, logging.WARNING)
    assert [each.fetch_state for each in pair.fetcher] == [PartitionFetchState.FAILED]
    assert pair.fetcher.next_request(10**9) is None
    assert pair.fetcher.next_due_ms(10**9) is None
    pair.leader.spoil = None
    pair.append(b"a")
    pair.lead(pair.leader_id)
    pair.settle()
    assert pair.followed.log.log_end_offset == 1


def test_a_failed_disk_stops_only_its_partitions(
    new_pair: Callable[..., Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = new_pair()
    pair.create_topic(2)
    for index in (0, 1):
        pair.append(b"a", index=index)
    failing = pair.followed.follower

    def fail_to_append(*_: object, **__: object) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(type(failing), "append", _only_for(failing, fail_to_append))
    pair.exchange()
    pair.exchange()
    standings = {each.partition.index: each.fetch_state for each in pair.fetcher}
    assert standings == {0: PartitionFetchState.FAILED, 1: PartitionFetchState.FETCHING}
    assert pair.worlds[pair.follower_id].partition(TOPIC, 1).log.log_end_offset == 1


def _only_for(failing: object, action: Callable[..., None]) -> Callable[..., object]:
    real = type(failing).append  # type: ignore[attr-defined]

    def append(self: object, *args: object, **named: object) -> object:
        return action() if self is failing else real(self, *args, **named)

    return append


def test_the_bounds_of_all_out_of_range_partitions_are_requested_at_once(
    new_pair: Callable[..., Pair],
) -> None:
    pair = new_pair()
    pair.create_topic(2)
    for index in (0, 1):
        pair.append(b"a", index=index)
        pair.append(b"b", index=index)
        led = pair.worlds[pair.leader_id].partition(TOPIC, index)
        led.high_watermark = 2
        led.delete_records(1)
    pair.settle()
    located = [each for each in pair.leader.requests if isinstance(each, ListOffsetsRequest)]
    assert [len(each.topics[0].partitions) for each in located] == [2, 2]
    assert pair.followed.log.log_start_offset == 1


def test_a_failed_request_for_bounds_is_retried_after_the_backoff(pair: Pair) -> None:
    pair.leader.spoil = fail_with(ErrorCode.OFFSET_OUT_OF_RANGE)
    pair.exchange()
    assert isinstance(pair.fetcher.next_request(0), ListOffsetsRequest)
    pair.fetcher.on_connection_lost(0)
    assert isinstance(pair.fetcher.next_request(1_000), ListOffsetsRequest)


def test_idle_partitions_are_not_processed(
    new_pair: Callable[..., Pair], monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = new_pair(limits=replace(LIMITS, response_max_bytes=1 << 20))
    pair.create_topic(50)
    pair.settle()
    read: list[FollowedPartition] = []
    fetch_position = FollowedPartition.fetch_position
    monkeypatch.setattr(
        FollowedPartition,
        "fetch_position",
        lambda partition: read.append(partition) or fetch_position(partition),
    )
    pair.append(b"a", index=7)
    pair.exchange()
    assert {each.partition.index for each in read} == {7}
    pair.settle()
    read.clear()
    pair.exchange()
    assert read == []


def test_the_lag_is_the_distance_to_the_leaders_high_watermark(pair: Pair) -> None:
    pair.append(b"a")
    pair.settle()
    [followed] = pair.fetcher
    assert (followed.lag, followed.is_in_sync) == (0, True)
    followed.leader_high_watermark = 5
    assert (followed.lag, followed.is_in_sync) == (4, False)
    assert pair.fetcher.received_bytes == pair.led.log.size_bytes
