"""Produce, Fetch, ListOffsets and other requests for records, in every version."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from tests.conformance.side_by_side.batches import (
    ATTRIBUTES_AT,
    COUNT_AT,
    LAST_OFFSET_DELTA_AT,
    MAGIC_AT,
    MINUTE_MS,
    START_MS,
    alter_field,
    batch,
    message_set_v1,
)
from tests.conformance.side_by_side.conftest import PLAIN, create_topic
from tests.conformance.side_by_side.requests import fetch, list_offsets, produce
from tests.conformance.side_by_side.sides import Side, Sides, assert_same_responses
from tests.wait import wait_until

from barnabas.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.wire.messages.producer_ids import InitProducerIdRequest
from barnabas.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.transaction_descriptions import DescribeProducersRequest, TopicRequest
from barnabas.wire.records.batch import TRANSACTIONAL_BIT
from barnabas.wire.records.compression import Codec

pytestmark = pytest.mark.peer

LOADING = 14
UNKNOWN_ID = b"\x01" * 16
BY_ID_IN_FETCH = 13
BY_ID_IN_PRODUCE = 13


def truncated_batch(records: int = 1) -> bytes:
    whole = batch(records)
    return whole[: len(whole) - 3]


PRODUCED: dict[str, Sequence[bytes | None]] = {
    "one_record": [batch()],
    "ten_records": [batch(10)],
    **{f"compressed_{codec.name}": [batch(20, codec=codec)] for codec in Codec},
    "tombstone": [batch(value=None)],
    "no_key": [batch(key=None)],
    "empty": [b""],
    "two_batches_at_once": [batch() + batch()],
    "cut_short": [truncated_batch()],
    "bad_checksum": [alter_field(batch(), COUNT_AT, ">i", 1, fix_crc=False)[:-1] + b"!"],
    "magic_1": [message_set_v1()],
    "magic_1_like_zstd": [message_set_v1(Codec.ZSTD)],
    "magic_1_like_transactional": [message_set_v1(TRANSACTIONAL_BIT)],
    "magic_3": [alter_field(batch(), MAGIC_AT, ">b", 3)],
    "magic_0": [alter_field(batch(), MAGIC_AT, ">b", 0)],
    "count_too_high": [alter_field(batch(2), COUNT_AT, ">i", 3)],
    "count_too_low": [alter_field(batch(2), COUNT_AT, ">i", 1)],
    "count_negative": [alter_field(batch(2), COUNT_AT, ">i", -1)],
    "last_offset_too_high": [alter_field(batch(2), LAST_OFFSET_DELTA_AT, ">i", 5)],
    "codec_unknown": [alter_field(batch(2), ATTRIBUTES_AT, ">h", 5)],
    "codec_does_not_match": [alter_field(batch(2), ATTRIBUTES_AT, ">h", 1)],
    "control_batch": [batch(control=True, producer_id=1, producer_epoch=0)],
    "transactional_without_id": [
        batch(transactional=True, producer_id=1, producer_epoch=0, base_sequence=0)
    ],
    "too_large": [batch(value=bytes(1_100_000))],
    "far_ahead": [batch(timestamp_ms=START_MS + 10_000 * MINUTE_MS)],
    "no_timestamp": [batch(timestamp_ms=-1)],
}


@pytest.mark.parametrize("case", PRODUCED)
def test_produce(sides: Sides, case: str) -> None:
    topic = f"produce-{case}"
    for side in sides:
        create_topic(side, topic)

    def build(side: Side, version: int) -> Any:
        by_id = version >= BY_ID_IN_PRODUCE
        topic_id = side.topic_id(topic) if by_id else bytes(16)
        return produce(topic, *PRODUCED[case], topic_id=topic_id)

    assert_same_responses(sides, build)
    assert_same_responses(sides, by_name_or_id(topic, lambda **target: fetch(**target)))


INVALID_TARGETS: dict[str, dict[str, Any]] = {
    "unknown_partition": {"partition": 99},
    "negative_partition": {"partition": -1},
    "unknown_topic": {"topic": "unknown-to-both", "topic_id": UNKNOWN_ID},
    "bad_name": {"topic": "no/name"},
    "acks_2": {"acks": 2},
    "acks_minus_2": {"acks": -2},
    "transactional": {"transactional_id": "t"},
}


@pytest.mark.parametrize("case", INVALID_TARGETS)
def test_produce_to_an_invalid_target(sides: Sides, case: str) -> None:
    def build(side: Side, version: int) -> Any:
        target = {"topic": PLAIN, "topic_id": side.topic_id(PLAIN)} | INVALID_TARGETS[case]
        return produce(target.pop("topic"), batch(), **target)

    assert_same_responses(sides, build)


def test_an_idempotent_producers_sequences(sides: Sides) -> None:
    """First, next, a duplicate, a gap, an old one, a new epoch, the old epoch."""
    topic = "sequences"
    steps = [(0, 0), (0, 2), (0, 0), (0, 2), (0, 9), (0, 4), (1, 0), (0, 6), (1, 5), (1, 2)]
    for side in sides:
        create_topic(side, topic)
    for epoch, sequence in steps:
        sent = batch(2, producer_id=4711, producer_epoch=epoch, base_sequence=sequence)

        def build(_: Side, version: int, sent: bytes = sent) -> Any:
            return produce(topic, sent) if version in (-1, 9) else None

        assert_same_responses(sides, build)
    described = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    assert_same_responses(sides, lambda *_: described, ignoring={"last_timestamp": "when"})


def by_name_or_id(topic: str, make: Callable[..., Any]) -> Callable[[Side, int], Any]:
    def build(side: Side, version: int) -> Any:
        by_id = version >= BY_ID_IN_FETCH
        return make(topic=topic, topic_id=side.topic_id(topic) if by_id else bytes(16))

    return build


FETCHED: dict[str, dict[str, Any]] = {
    "everything": {},
    "both_partitions": {"partitions": [0, 1]},
    "from_the_middle_of_a_batch": {"offset": 3},
    "at_the_end": {"offset": 6},
    "past_the_end": {"offset": 7},
    "negative_offset": {"offset": -1},
    "committed_only": {"isolation_level": 1},
    "few_bytes": {"partition_max_bytes": 10, "max_bytes": 10, "partitions": [0, 1]},
    "one_batch_and_a_bit": {"partition_max_bytes": 100},
    "unknown_partition": {"partitions": [0, 99]},
    "current_epoch": {"leader_epoch": 0},
    "later_epoch": {"leader_epoch": 5},
    "last_epoch_agrees": {"leader_epoch": 0, "last_fetched_epoch": 0, "offset": 2},
    "last_epoch_diverges": {"leader_epoch": 0, "last_fetched_epoch": 3, "offset": 2},
    "session_unknown": {"session_id": 12345, "session_epoch": 1},
    "session_new": {"session_epoch": 0},
    "session_odd": {"session_id": 0, "session_epoch": 5},
}


@pytest.mark.parametrize("case", FETCHED)
def test_fetch(sides: Sides, case: str) -> None:
    assert_same_responses(
        sides, by_name_or_id(PLAIN, lambda **target: fetch(**target, **FETCHED[case]))
    )


def test_fetch_of_unknown_topics(sides: Sides) -> None:
    assert_same_responses(
        sides, lambda side, version: fetch("unknown-to-both", topic_id=UNKNOWN_ID)
    )


def test_a_fetch_session(sides: Sides) -> None:
    """It is opened with all partitions, returns new records only, and is closed."""
    topic = "session"
    for side in sides:
        create_topic(side, topic, 3)
    opened: dict[str, int] = {}
    for epoch in 0, 1, 2, 2, -1, 3:

        def build(side: Side, version: int, epoch: int = epoch) -> Any:
            if version not in (-1, 12):
                return None
            request = fetch(topic, partitions=range(3), session_epoch=epoch)
            request.session_id = opened.get(side.name, 0)
            if epoch:
                request.topics = []
            return request

        for side in sides:
            if epoch == 0:
                response: Any = side.send(build(side, 12), 12)
                opened[side.name] = response.session_id
                assert response.session_id
            elif epoch == 1:
                side.send(produce(topic, batch(), partition=1), 9)
        if epoch:
            assert_same_responses(sides, build)


LISTED: dict[str, dict[str, Any]] = {
    "latest": {"timestamp": -1},
    "earliest": {"timestamp": -2},
    "max_timestamp": {"timestamp": -3},
    "earliest_local": {"timestamp": -4},
    "latest_tiered": {"timestamp": -5},
    "earliest_pending_upload": {"timestamp": -6},
    "unknown_timestamp": {"timestamp": -7},
    "first_record": {"timestamp": START_MS},
    "between": {"timestamp": START_MS + 2},
    "second_record_of_a_batch": {"timestamp": START_MS + MINUTE_MS + 1},
    "the_future": {"timestamp": START_MS + 100 * MINUTE_MS},
    "zero": {"timestamp": 0},
    "committed": {"timestamp": -1, "isolation_level": 1},
    "later_epoch": {"timestamp": -1, "leader_epoch": 5},
    "current_epoch": {"timestamp": -1, "leader_epoch": 0},
    "empty_partition_latest": {"timestamp": -1, "partition": 1},
    "empty_partition_max": {"timestamp": -3, "partition": 1},
    "empty_partition_time": {"timestamp": START_MS, "partition": 1},
    "unknown_partition": {"timestamp": -1, "partition": 99},
    "unknown_topic": {"timestamp": -1, "topic": "unknown-to-both"},
}


@pytest.mark.parametrize("case", LISTED)
def test_list_offsets(sides: Sides, case: str) -> None:
    arguments = {"topic": PLAIN} | LISTED[case]
    assert_same_responses(sides, lambda *_: list_offsets(**arguments))


def test_list_offsets_with_a_partition_twice(sides: Sides) -> None:
    def build(*_: Any) -> Any:
        request = list_offsets(PLAIN, -1)
        request.topics[0].partitions *= 2
        return request

    assert_same_responses(sides, build)


@pytest.mark.parametrize("offset", [0, 2, 3, 1, -1, 100, -2])
def test_delete_records(sides: Sides, offset: int) -> None:
    topic = f"delete-{offset}"
    for side in sides:
        create_topic(side, topic)
        side.send(produce(topic, batch(2)), 9)
        side.send(produce(topic, batch(3)), 9)
    assert_same_responses(sides, lambda *_: delete_records(topic, offset))
    assert_same_responses(sides, by_name_or_id(topic, lambda **target: fetch(**target)))
    assert_same_responses(sides, by_name_or_id(topic, lambda **target: fetch(offset=3, **target)))


@pytest.mark.parametrize(("topic", "partition"), [(PLAIN, 99), ("unknown-to-both", 0)])
def test_delete_records_of_an_unknown_partition(sides: Sides, topic: str, partition: int) -> None:
    assert_same_responses(sides, lambda *_: delete_records(topic, 0, partition))


def delete_records(topic: str, offset: int, partition: int = 0) -> DeleteRecordsRequest:
    requested = DeleteRecordsPartition(partition_index=partition, offset=offset)
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[requested])], timeout_ms=5000
    )


@pytest.mark.parametrize(
    ("topic", "partition", "current", "epoch"),
    [
        (PLAIN, 0, -1, 0),
        (PLAIN, 0, 0, 0),
        (PLAIN, 0, -1, 1),
        (PLAIN, 0, 5, 0),
        (PLAIN, 0, -1, -1),
        (PLAIN, 1, -1, 0),
        (PLAIN, 99, -1, 0),
        ("unknown-to-both", 0, -1, 0),
    ],
)
def test_offset_for_leader_epoch(
    sides: Sides, topic: str, partition: int, current: int, epoch: int
) -> None:
    requested = OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=current, leader_epoch=epoch
    )
    topics = [OffsetForLeaderTopic(topic=topic, partitions=[requested])]
    assert_same_responses(
        sides, lambda *_: OffsetForLeaderEpochRequest(replica_id=-1, topics=topics)
    )


@pytest.mark.parametrize(("producer_id", "epoch"), [(-1, -1), (5, 3), (5, -1), (-1, 3)])
def test_init_producer_id_without_transactions(sides: Sides, producer_id: int, epoch: int) -> None:
    requested = InitProducerIdRequest(
        transactional_id=None,
        transaction_timeout_ms=60_000,
        producer_id=producer_id,
        producer_epoch=epoch,
    )
    for side in sides:  # Kafka allocates its first block of ids on the first request
        wait_until(lambda side=side: side.send(requested, 4).error_code != LOADING, "there are ids")
    assert_same_responses(sides, lambda *_: requested)


@pytest.mark.parametrize(("topic", "partition"), [(PLAIN, 0), (PLAIN, 99), ("unknown-to-both", 0)])
def test_describe_producers(sides: Sides, topic: str, partition: int) -> None:
    requested = TopicRequest(name=topic, partition_indexes=[partition])
    assert_same_responses(sides, lambda *_: DescribeProducersRequest(topics=[requested]))
