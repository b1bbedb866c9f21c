"""After any response of a leader, a follower's log is valid and its other partitions continue."""

import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.replication.replica_fetcher.pair import TOPIC, Leader, Pair, content

from barnabas.wire.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
)
from barnabas.wire.records.batch import assign_offset, check_crcs, iterate_batches

GOOD, BAD = 0, 1

Spoil = Callable[[PartitionData], None]


def only(spoil: Spoil, index: int = BAD) -> Callable[[FetchResponse], None]:
    def spoil_all(response: FetchResponse) -> None:
        for topic in response.responses:
            for partition in topic.partitions:
                if partition.partition_index == index:
                    spoil(partition)

    return spoil_all


def damaged(partition: PartitionData) -> None:
    partition.records = bytes(partition.records[:-1]) + b"\xff"  # type: ignore[index]


def cut_short(partition: PartitionData) -> None:
    partition.records = bytes(partition.records[:70])  # type: ignore[index]


def garbage(partition: PartitionData) -> None:
    partition.records = b"\x07" * 300


def of_huge_length(partition: PartitionData) -> None:
    records = bytearray(partition.records)  # type: ignore[arg-type]
    struct.pack_into(">i", records, 8, 2**31 - 1)
    partition.records = records


def of_negative_length(partition: PartitionData) -> None:
    records = bytearray(partition.records)  # type: ignore[arg-type]
    struct.pack_into(">i", records, 8, -5)
    partition.records = records


def from_the_past(partition: PartitionData) -> None:
    records = bytearray(partition.records)  # type: ignore[arg-type]
    assign_offset(records, 0, -3, 0)
    partition.records = records


def twice_the_same(partition: PartitionData) -> None:
    partition.records = bytes(partition.records) * 2  # type: ignore[arg-type]


def starting_after_what_counts(partition: PartitionData) -> None:
    partition.log_start_offset = partition.high_watermark + 10


def starting_before_zero(partition: PartitionData) -> None:
    partition.log_start_offset = -7


def parting_from_nothing(partition: PartitionData) -> None:
    partition.diverging_epoch = EpochEndOffset(epoch=0, end_offset=10**12)


def parting_before_zero(partition: PartitionData) -> None:
    partition.diverging_epoch = EpochEndOffset(epoch=0, end_offset=-4)


def rejected_with_an_unknown_code(partition: PartitionData) -> None:
    partition.error_code = 29_999


@pytest.mark.parametrize(
    "spoil",
    [
        damaged,
        cut_short,
        garbage,
        of_huge_length,
        of_negative_length,
        from_the_past,
        twice_the_same,
        starting_after_what_counts,
        starting_before_zero,
        parting_from_nothing,
        parting_before_zero,
        rejected_with_an_unknown_code,
    ],
)
def test_an_invalid_response_appends_nothing_and_is_retried_after_the_backoff(
    new_pair: Callable[..., Pair], spoil: Spoil
) -> None:
    pair = new_pair()
    pair.create_topic(2)
    for index in (GOOD, BAD):
        pair.append(b"a" * 100, index=index)
    pair.leader.spoil = only(spoil)
    pair.exchange()
    world = pair.worlds[pair.follower_id]
    good, bad = world.partition(TOPIC, GOOD), world.partition(TOPIC, BAD)
    assert (good.log.log_end_offset, bad.log.log_end_offset) == (1, 0)
    assert bad.log.size_bytes == 0
    pair.leader.spoil = None
    pair.exchange()
    assert bad.log.log_end_offset == 0
    pair.settle()
    assert content(bad.log) == content(pair.worlds[pair.leader_id].partition(TOPIC, BAD).log)


def test_a_partition_twice_in_a_response_is_appended_once(pair: Pair) -> None:
    def say_twice(response: FetchResponse) -> None:
        response.responses = response.responses * 2

    pair.append(b"a")
    pair.leader.spoil = say_twice
    pair.exchange()
    assert pair.followed.log.log_end_offset == 1
    assert content(pair.followed.log) == content(pair.led.log)


def test_partitions_that_were_not_requested_change_nothing(pair: Pair) -> None:
    def add_others(response: FetchResponse) -> None:
        stranger = PartitionData(partition_index=7, high_watermark=3, records=b"x")
        known = response.responses[0]
        response.responses = [
            FetchableTopicResponse(topic_id=b"?" * 16, partitions=[stranger]),
            FetchableTopicResponse(
                topic_id=known.topic_id, partitions=[stranger, *known.partitions]
            ),
        ]

    pair.append(b"a")
    pair.leader.spoil = add_others
    pair.exchange()
    assert pair.followed.log.log_end_offset == 1


def test_impossible_bounds_change_nothing(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.append(b"a")
    pair.settle()

    def out_of_range(partition: PartitionData) -> None:
        partition.error_code = 1

    pair.append(b"b")
    pair.leader.spoil = only(out_of_range, 0)
    pair.exchange()
    real = Leader.respond

    def lie(self: Leader, request: object) -> object:
        partition = real(self, request)  # type: ignore[arg-type]
        for topic in getattr(partition, "topics", []):
            topic.partitions[0].offset = -99
        return partition

    monkeypatch.setattr(Leader, "respond", lie)
    pair.exchange()
    pair.exchange()
    assert pair.followed.log.log_end_offset == 1
    assert pair.fetcher.next_due_ms(pair.now_ms) == 1_000


@settings(max_examples=80)
@given(noise=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), max_size=4))
def test_corrupted_responses_are_detected_or_harmless(
    new_pair: Callable[..., Pair], noise: list[tuple[int, int]]
) -> None:
    """Offset and epoch stand outside the checksum; all else that is changed is found."""
    pair = new_pair()
    pair.create_topic()
    for number in range(3):
        pair.append(b"%d" % number * 30)

    def change(partition: PartitionData) -> None:
        records = bytearray(partition.records)  # type: ignore[arg-type]
        for position, value in noise:
            if records:
                records[position % len(records)] = value
        partition.records = records

    pair.leader.spoil = only(change, 0)
    for _ in range(3):
        pair.exchange()
    log = pair.followed.log
    stored = content(log, log.log_start_offset)
    check_crcs(stored)
    headers = [header for _, header in iterate_batches(stored)]
    offsets = [header.base_offset for header in headers]
    assert offsets == sorted(set(offsets))
    assert sum(header.size_bytes for header in headers) == len(stored) == log.size_bytes
