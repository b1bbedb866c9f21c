"""Produce responds as Kafka 4.3 does to the same requests."""

import errno
import os
from typing import Any

import pytest
from tests.os_faults import fault_in_this_thread
from tests.replication.world import NODE_ID, PendingHandler, World, batch_of

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


def partition_responses(response: ProduceResponse) -> list[PartitionProduceResponse]:
    return [result for topic in response.responses for result in topic.partition_responses]


def produce(
    world: World, batches: Batches, version: int = 12, client_id: str = "test", **fields: Any
) -> list[PartitionProduceResponse]:
    sent_request = request(batches, **fields)
    return partition_responses(world.request(handle, sent_request, version, client_id=client_id))


def produce_one(
    world: World, records: Any, topic: str = "orders", **fields: Any
) -> PartitionProduceResponse:
    (response,) = produce(world, {(topic, 0): records}, **fields)
    return response


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_appends_and_returns_the_offset(world: World, version: int) -> None:
    world.create_topic("orders")
    produce_one(world, batch_of(b"a", b"b"), version=version)
    response = produce_one(world, batch_of(b"c"), version=version)
    assert response.error_code == ErrorCode.NONE
    assert (response.base_offset, response.log_append_time_ms, response.log_start_offset) == (
        2,
        -1,
        0,
    )


def test_every_partition_has_its_own_result(world: World) -> None:
    world.create_topic("orders", 2)
    entry = produce(
        world,
        {
            ("orders", 0): batch_of(b"a"),
            ("orders", 1): batch_of(b"a"),
            ("orders", 9): batch_of(b"a"),
            ("nowhere", 0): batch_of(b"a"),
        },
    )
    assert [response.error_code for response in entry] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert [response.base_offset for response in entry] == [0, 0, -1, -1]


def test_an_unknown_topic_id_and_an_unknown_partition_have_different_errors(world: World) -> None:
    world.create_topic("orders")
    entry = produce(
        world, {("orders", 9): batch_of(b"a"), ("nowhere", 0): batch_of(b"a")}, version=13
    )
    assert [response.error_code for response in entry] == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]


def test_invalid_acks_are_an_error_of_every_existing_partition(world: World) -> None:
    world.create_topic("orders")
    entry = produce(world, {("orders", 0): batch_of(b"a"), ("nowhere", 0): batch_of(b"a")}, acks=2)
    assert [response.error_code for response in entry] == [
        ErrorCode.INVALID_REQUIRED_ACKS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert world.partition("orders").high_watermark == 0


def test_without_acks_there_is_no_response(world: World) -> None:
    world.create_topic("orders")
    sent_request = request({("orders", 0): batch_of(b"a")}, acks=0)
    assert world.request(handle, sent_request, 12) is None
    assert world.partition("orders").high_watermark == 1


def test_without_acks_an_error_is_raised_so_that_the_connection_is_closed(world: World) -> None:
    world.create_topic("orders")
    sent_request = request({("nowhere", 0): batch_of(b"a"), ("orders", 0): batch_of(b"a")}, acks=0)
    with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        world.request(handle, sent_request, 12)
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
def test_records_that_are_not_one_valid_batch_are_rejected(
    world: World, records: Any, code: ErrorCode
) -> None:
    world.create_topic("orders")
    response = produce_one(world, records)
    assert (response.error_code, response.base_offset) == (code, -1)
    assert world.partition("orders").high_watermark == 0


def test_the_error_of_an_invalid_batch_has_no_log_start_offset(world: World) -> None:
    world.create_topic("orders")
    two = bytes(batch_of(b"a")) + bytes(batch_of(b"b"))
    assert produce_one(world, memoryview(bytearray(two))).log_start_offset == -1


def test_a_compacted_topic_reports_the_records_without_a_key(world: World) -> None:
    world.create_topic("table", cleanup_policy="compact")
    batch = batch_of(b"a", b"b", b"c", keys=(b"k", None, None))
    response = produce_one(world, batch, "table")
    assert response.error_code == ErrorCode.INVALID_RECORD
    reason = "Compacted topic cannot accept message without key in topic partition table-0"
    assert [
        (error.batch_index, error.batch_index_error_message) for error in response.record_errors
    ] == [(1, reason), (2, reason)]
    assert response.log_start_offset == 0
    assert response.error_message == f"One or more records have been rejected: {reason}"


def test_records_with_a_future_timestamp_are_reported(world: World) -> None:
    world.create_topic("orders")
    response = produce_one(world, batch_of(b"a", b"b", now_ms=world.now_ms + 10_000_000))
    assert response.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [error.batch_index for error in response.record_errors] == [0, 1]
    reason = response.record_errors[0].batch_index_error_message
    assert "The timestamp should be within [" in reason
    assert response.error_message == (
        f"One or more records have been rejected due to invalid timestamp: {reason}"
    )


def test_the_error_of_a_batch_larger_than_a_segment_has_no_log_start_offset(world: World) -> None:
    world.create_topic("orders", segment_bytes="1048576", max_message_bytes="3000000")
    response = produce_one(world, batch_of(b"a" * 1_100_000))
    assert response.error_code == ErrorCode.RECORD_LIST_TOO_LARGE
    assert response.log_start_offset == -1


def test_zstd_is_rejected_in_versions_without_it(world: World) -> None:
    world.create_topic("orders")
    record = Record(0, 0, None, b"value", [])
    records = memoryview(build_batch([record], codec=Codec.ZSTD))
    error = produce_one(world, records, version=6)
    assert error.error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert produce_one(world, records, version=7).error_code == ErrorCode.NONE


@pytest.mark.parametrize("byte", [Codec.ZSTD, TRANSACTIONAL_BIT], ids=["zstd", "transactional"])
def test_attributes_of_old_formats_are_not_read(world: World, byte: int) -> None:
    world.create_topic("orders")
    old = bytearray(batch_of(b"a"))
    old[MAGIC_AT] = 1
    old[22] = byte  # there messages of format 1 have a byte of their timestamp
    response = produce_one(world, memoryview(old), version=6)
    assert response.error_code == ErrorCode.INVALID_RECORD


def test_a_topic_with_log_append_time_returns_it(world: World) -> None:
    world.create_topic("orders", message_timestamp_type="LogAppendTime")
    assert produce_one(world, batch_of(b"a")).log_append_time_ms == world.now_ms


def test_a_retry_returns_the_original_offset(world: World) -> None:
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
    response = produce_one(world, batch_of(b"a", **TRANSACTIONAL))
    assert response.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_a_transactional_id_with_plain_records_is_accepted(world: World) -> None:
    world.create_topic("orders")
    assert produce_one(world, batch_of(b"a"), transactional_id="t").error_code == ErrorCode.NONE


def test_only_the_admin_client_may_write_to_internal_topics(world: World) -> None:
    world.create_topic("__consumer_offsets")
    error = produce_one(world, batch_of(b"a"), "__consumer_offsets")
    assert error.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    mended = produce_one(world, batch_of(b"a"), "__consumer_offsets", client_id="__admin_client")
    assert mended.error_code == ErrorCode.NONE


def test_the_error_of_a_partition_led_elsewhere_has_the_leader_and_its_endpoint(
    world: World,
) -> None:
    world.create_topic("orders", replicas=(1, 2), leader=2)
    response = produce_one(world, batch_of(b"a"), version=9)
    assert response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert response.current_leader.leader_id == -1
    response = produce_one(world, batch_of(b"a"), version=10)
    assert (response.current_leader.leader_id, response.current_leader.leader_epoch) == (2, 0)


def test_a_reachable_leader_is_returned_with_its_endpoint(world: World) -> None:
    world.create_topic("orders", replicas=(1,))
    world.partition("orders").is_leader = False  # it has not heard of the new epoch yet
    sent_request = request({("orders", 0): batch_of(b"a")})
    response = world.request(handle, sent_request, 13)
    (endpoint,) = response.node_endpoints
    assert (endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack) == (
        NODE_ID,
        "here",
        9092,
        "r1",
    )


def test_acks_all_responds_when_the_replicas_have_the_records(world: World) -> None:
    world.create_topic("orders", 2, replicas=(1, 2))
    pending = world.begin_request(
        handle, request({("orders", 0): batch_of(b"a"), ("orders", 1): batch_of(b"a")}), 12
    )
    assert not pending.is_complete
    world.lead("orders", 0, isr=(1,))
    world.lead("orders", 1, isr=(1,))
    pending.resume()
    assert [response.error_code for response in partition_responses(pending.response)] == [0, 0]


def test_a_produce_request_that_waits_for_replicas_lets_the_next_one_start(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2))
    context = world.call(12)
    records = memoryview(bytearray(batch_of(b"a")))
    pending = PendingHandler(handle(request({("orders", 0): records}), context))
    assert not pending.is_complete
    assert context.allows_next_produce


def test_replicas_that_are_too_slow_are_a_timeout(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2))
    pending = world.begin_request(handle, request({("orders", 0): batch_of(b"a")}), 12)
    world.timer.ring()
    pending.resume()
    (response,) = partition_responses(pending.response)
    assert (response.error_code, response.base_offset) == (ErrorCode.REQUEST_TIMED_OUT, 0)


def test_a_partition_named_twice_is_acknowledged_when_both_appends_are_committed(
    world: World,
) -> None:
    world.create_topic("orders", replicas=(1, 2))
    sent_request = request({("orders", 0): batch_of(b"a")})
    sent_request.topic_data *= 2
    pending = world.begin_request(handle, sent_request, 12)
    world.timer.ring()
    pending.resume()
    assert {response.error_code for response in partition_responses(pending.response)} == {
        ErrorCode.REQUEST_TIMED_OUT
    }


def test_a_leader_that_loses_its_partition_fails_the_delayed_requests(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2))
    pending = world.begin_request(handle, request({("orders", 0): batch_of(b"a")}), 12)
    world.lead("orders", leader=2)
    pending.resume()
    (response,) = partition_responses(pending.response)
    assert response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_acks_one_waits_for_no_replica(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2))
    assert produce_one(world, batch_of(b"a"), acks=1).error_code == ErrorCode.NONE


def test_with_flush_messages_the_response_waits_for_the_disk(world: World) -> None:
    world.create_topic("orders", flush_messages="1")
    world.background.hold()
    first = world.begin_request(handle, request({("orders", 0): batch_of(b"a")}, acks=1), 12)
    second = world.begin_request(handle, request({("orders", 0): batch_of(b"b")}, acks=1), 12)
    assert not first.is_complete
    assert not second.is_complete
    world.background.release()
    for pending in (first, second):
        pending.resume()
        (response,) = partition_responses(pending.response)
        assert response.error_code == ErrorCode.NONE


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
        broken.setattr(os, "pwrite", fault_in_this_thread("pwrite", fail))
        assert produce_one(world, batch_of(b"a")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert produce_one(world, batch_of(b"a")).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_an_append_that_fails_the_log_directory_fails_the_earlier_ones_that_wait(
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

    monkeypatch.setattr(os, "pwrite", fault_in_this_thread("pwrite", write_once))
    batches = {("orders", 0): batch_of(b"a"), ("orders", 1): batch_of(b"a")}
    pending = world.begin_request(handle, request(batches), 12)
    assert pending.is_complete
    assert [response.error_code for response in partition_responses(pending.response)] == [
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ]
