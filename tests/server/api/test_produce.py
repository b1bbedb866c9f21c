"""Produce, answered as Kafka 4.3 was seen to answer the same requests."""

import errno
import os
from typing import Any

import pytest
from tests.here import here
from tests.replication.world import NODE_ID, World, batch_of

from barnabas.server.api.produce import handle
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.wire.records.batch import MAGIC_AT, TRANSACTIONAL_BIT
from barnabas.wire.records.build import Record, build_batch
from barnabas.wire.records.compression import Codec

Batches = dict[tuple[str, int], Any]


def request(batches: Batches, *, acks: int = -1, **fields: Any) -> ProduceRequest:
    return ProduceRequest(
        acks=acks,
        timeout_ms=1_000,
        topic_data=[
            TopicProduceData(
                name=topic,
                topic_id=topic.encode().ljust(16, b"\0")[:16],
                partition_data=[PartitionProduceData(index=index, records=records)],
            )
            for (topic, index), records in batches.items()
        ],
        **fields,
    )


def answers(response: ProduceResponse) -> list[PartitionProduceResponse]:
    return [answer for topic in response.responses for answer in topic.partition_responses]


def produce(
    world: World, batches: Batches, version: int = 12, client_id: str = "test", **fields: Any
) -> list[PartitionProduceResponse]:
    asked = request(batches, **fields)
    return answers(world.ask(handle, asked, version, client_id=client_id))


def produce_one(
    world: World, records: Any, topic: str = "orders", **fields: Any
) -> PartitionProduceResponse:
    (answer,) = produce(world, {(topic, 0): records}, **fields)
    return answer


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_appends_and_tells_the_offset(world: World, version: int) -> None:
    world.create_topic("orders")
    produce_one(world, batch_of(b"a", b"b"), version=version)
    answer = produce_one(world, batch_of(b"c"), version=version)
    assert answer.error_code == ErrorCode.NONE
    assert (answer.base_offset, answer.log_append_time_ms, answer.log_start_offset) == (2, -1, 0)


def test_each_partition_is_answered_for_itself(world: World) -> None:
    world.create_topic("orders", 2)
    found = produce(
        world,
        {
            ("orders", 0): batch_of(b"a"),
            ("orders", 1): batch_of(b"a"),
            ("orders", 9): batch_of(b"a"),
            ("nowhere", 0): batch_of(b"a"),
        },
    )
    assert [answer.error_code for answer in found] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert [answer.base_offset for answer in found] == [0, 0, -1, -1]


def test_an_unknown_topic_id_and_a_known_one_without_the_partition(world: World) -> None:
    world.create_topic("orders")
    found = produce(
        world, {("orders", 9): batch_of(b"a"), ("nowhere", 0): batch_of(b"a")}, version=13
    )
    assert [answer.error_code for answer in found] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]


def test_acks_that_do_not_exist_are_refused_for_every_partition_there_is(world: World) -> None:
    world.create_topic("orders")
    found = produce(world, {("orders", 0): batch_of(b"a"), ("nowhere", 0): batch_of(b"a")}, acks=2)
    assert [answer.error_code for answer in found] == [
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert world.partition("orders").high_watermark == 0


def test_without_acks_there_is_no_answer(world: World) -> None:
    world.create_topic("orders")
    asked = request({("orders", 0): batch_of(b"a")}, acks=0)
    assert world.ask(handle, asked, 12) is None
    assert world.partition("orders").high_watermark == 1


def test_without_acks_an_error_is_raised_so_that_the_connection_is_closed(world: World) -> None:
    world.create_topic("orders")
    asked = request({("nowhere", 0): batch_of(b"a"), ("orders", 0): batch_of(b"a")}, acks=0)
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        world.ask(handle, asked, 12)
    assert world.partition("orders").high_watermark == 1  # the others are appended all the same


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (None, ErrorCode.INVALID_RECORD),
        (b"", ErrorCode.INVALID_RECORD),
        (b"abc", ErrorCode.INVALID_RECORD),
        (bytes(batch_of(b"a")) * 2, ErrorCode.INVALID_RECORD),
        (bytes(batch_of(b"a"))[:-1] + b"?", ErrorCode.CORRUPT_MESSAGE),
        (batch_of(b"a", control=True), ErrorCode.INVALID_RECORD),
        (batch_of(b"x" * 2_000_000), ErrorCode.MESSAGE_TOO_LARGE),
    ],
    ids=["null", "empty", "garbage", "two batches", "bad checksum", "control", "too large"],
)
def test_records_that_are_not_one_good_batch(world: World, records: Any, code: ErrorCode) -> None:
    world.create_topic("orders")
    answer = produce_one(world, records)
    assert (answer.error_code, answer.base_offset) == (code, -1)
    assert world.partition("orders").high_watermark == 0


def test_a_batch_refused_as_a_whole_says_nothing_of_the_log(world: World) -> None:
    world.create_topic("orders")
    two = bytes(batch_of(b"a")) + bytes(batch_of(b"b"))
    assert produce_one(world, memoryview(bytearray(two))).log_start_offset == -1


def test_a_compacted_topic_names_the_records_without_a_key(world: World) -> None:
    world.create_topic("table", cleanup_policy="compact")
    batch = batch_of(b"a", b"b", b"c", keys=(b"k", None, None))
    answer = produce_one(world, batch, "table")
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [1, 2]
    assert answer.log_start_offset == 0
    assert answer.error_message


def test_records_from_the_future_are_named(world: World) -> None:
    world.create_topic("orders")
    answer = produce_one(world, batch_of(b"a", b"b", now_ms=world.now_ms + 10_000_000))
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in answer.record_errors] == [0, 1]


def test_a_batch_larger_than_a_segment_says_nothing_of_the_log(world: World) -> None:
    world.create_topic("orders", segment_bytes="1048576", max_message_bytes="3000000")
    answer = produce_one(world, batch_of(b"a" * 1_100_000))
    assert answer.error_code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert answer.log_start_offset == -1


def test_zstd_is_refused_in_versions_that_had_it_not(world: World) -> None:
    world.create_topic("orders")
    record = Record(0, 0, None, b"value", [])
    records = memoryview(build_batch([record], codec=Codec.ZSTD))
    refused = produce_one(world, records, version=6)
    assert refused.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert produce_one(world, records, version=7).error_code == ErrorCode.NONE


@pytest.mark.parametrize("byte", [Codec.ZSTD, TRANSACTIONAL_BIT], ids=["zstd", "transactional"])
def test_what_looks_like_an_attribute_in_an_old_format_is_none(world: World, byte: int) -> None:
    world.create_topic("orders")
    old = bytearray(batch_of(b"a"))
    old[MAGIC_AT] = 1
    old[22] = byte  # there messages of format 1 have a byte of their timestamp
    answer = produce_one(world, memoryview(old), version=6)
    assert answer.error_code == ErrorCode.INVALID_RECORD


def test_a_topic_with_append_time_tells_it(world: World) -> None:
    world.create_topic("orders", message_timestamp_type="LogAppendTime")
    assert produce_one(world, batch_of(b"a")).log_append_time_ms == world.now_ms


def test_a_retry_is_answered_with_the_offset_it_had(world: World) -> None:
    world.create_topic("orders")
    producer = {"producer_id": 5, "producer_epoch": 0}
    first = produce_one(world, batch_of(b"a", base_sequence=0, **producer))
    produce_one(world, batch_of(b"b", base_sequence=1, **producer))
    again = produce_one(world, batch_of(b"a", base_sequence=0, **producer))
    assert (again.error_code, again.base_offset) == (ErrorCode.NONE, first.base_offset)
    gap = produce_one(world, batch_of(b"c", base_sequence=7, **producer))
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert gap.log_start_offset == 0
    newer = {"producer_id": 5, "producer_epoch": 2}
    assert produce_one(world, batch_of(b"d", base_sequence=0, **newer)).error_code == 0
    fenced = produce_one(world, batch_of(b"e", base_sequence=2, **producer))
    assert fenced.error_code == ErrorCode.INVALID_PRODUCER_EPOCH


TRANSACTIONAL = {
    "transactional": True,
    "producer_id": 5,
    "producer_epoch": 0,
    "base_sequence": 0,
}


def test_transactional_records_need_a_transactional_id(world: World) -> None:
    world.create_topic("orders")
    answer = produce_one(world, batch_of(b"a", **TRANSACTIONAL))
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_transactional_id_beside_plain_records_does_no_harm(world: World) -> None:
    world.create_topic("orders")
    assert produce_one(world, batch_of(b"a"), transactional_id="t").error_code == ErrorCode.NONE


def test_internal_topics_are_for_the_admin_client_alone(world: World) -> None:
    world.create_topic("__consumer_offsets")
    refused = produce_one(world, batch_of(b"a"), "__consumer_offsets")
    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    mended = produce_one(world, batch_of(b"a"), "__consumer_offsets", client_id="__admin_client")
    assert mended.error_code == ErrorCode.NONE


def test_a_partition_led_elsewhere_names_its_leader_and_the_address(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2), leader=2)
    answer = produce_one(world, batch_of(b"a"), version=9)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answer.current_leader.leader_id == -1
    answer = produce_one(world, batch_of(b"a"), version=10)
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 0)


def test_a_leader_that_can_be_reached_comes_with_its_address(world: World) -> None:
    world.create_topic("orders", replicas=(1,))
    world.partition("orders").is_leader = False  # it has not heard of the new epoch yet
    asked = request({("orders", 0): batch_of(b"a")})
    response = world.ask(handle, asked, 13)
    (endpoint,) = response.node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack) == (
        NODE_ID,
        "here",
        9092,
        "r1",
    )


def test_acks_all_waits_for_the_replicas_and_answers_when_they_have_it(world: World) -> None:
    world.create_topic("orders", 2, replicas=(1, 2))
    pending = world.begin(
        handle, request({("orders", 0): batch_of(b"a"), ("orders", 1): batch_of(b"a")}), 12
    )
    assert not pending.is_answered
    world.lead("orders", 0, isr=(1,))
    world.lead("orders", 1, isr=(1,))
    pending.resume()
    assert [answer.error_code for answer in answers(pending.answer)] == [0, 0]


def test_replicas_that_do_not_come_in_time_are_a_timeout(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2))
    pending = world.begin(handle, request({("orders", 0): batch_of(b"a")}), 12)
    world.timer.ring()
    pending.resume()
    (answer,) = answers(pending.answer)
    assert (answer.error_code, answer.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)


def test_a_partition_named_twice_is_not_acknowledged_by_half(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2))
    asked = request({("orders", 0): batch_of(b"a")})
    asked.topic_data *= 2
    pending = world.begin(handle, asked, 12)
    world.timer.ring()
    pending.resume()
    assert {answer.error_code for answer in answers(pending.answer)} == {
        ErrorCode.REQUEST_TIMED_OUT
    }


def test_a_leader_that_loses_its_partition_says_so_to_who_waits(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2))
    pending = world.begin(handle, request({("orders", 0): batch_of(b"a")}), 12)
    world.lead("orders", leader=2)
    pending.resume()
    (answer,) = answers(pending.answer)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_acks_one_waits_for_no_replica(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2))
    assert produce_one(world, batch_of(b"a"), acks=1).error_code == ErrorCode.NONE


def test_with_flush_messages_the_answer_waits_for_the_disk(world: World) -> None:
    world.create_topic("orders", flush_messages="1")
    world.background.hold()
    first = world.begin(handle, request({("orders", 0): batch_of(b"a")}, acks=1), 12)
    second = world.begin(handle, request({("orders", 0): batch_of(b"b")}, acks=1), 12)
    assert not first.is_answered
    assert not second.is_answered
    world.background.release()
    for pending in (first, second):
        pending.resume()
        (answer,) = answers(pending.answer)
        assert answer.error_code == ErrorCode.NONE


def test_bytes_and_messages_are_counted_for_their_topic(world: World) -> None:
    world.create_topic("orders")
    batch = batch_of(b"a", b"b", b"c")
    produce_one(world, batch)
    produce_one(world, b"garbage")
    metrics = world.broker.metrics.topic("orders")
    assert (metrics.bytes_in, metrics.messages_in) == (len(batch), 3)
    assert metrics.failed_produce_requests == 1


def test_a_failed_disk_is_a_storage_error(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create_topic("orders")

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as broken:
        broken.setattr(os, "pwrite", here("pwrite", fail))
        assert produce_one(world, batch_of(b"a")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert produce_one(world, batch_of(b"a")).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_an_append_that_ends_the_disk_ends_the_wait_for_those_before_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One request, two partitions: the first waits for its followers when the disk fails."""
    world.create_topic("orders", 2, replicas=(NODE_ID, 2))
    write, written = os.pwrite, []

    def write_once(*what: Any) -> int:
        written.append(what)
        if len(written) > 1:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return write(*what)

    monkeypatch.setattr(os, "pwrite", here("pwrite", write_once))
    batches = {("orders", 0): batch_of(b"a"), ("orders", 1): batch_of(b"a")}
    pending = world.begin(handle, request(batches), 12)
    assert pending.is_answered
    assert [answer.error_code for answer in answers(pending.answer)] == [
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ]
