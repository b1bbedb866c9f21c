"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords, DescribeProducers respond as Kafka 4.3 does."""

from typing import Any

import pytest
from tests.replication.world import START_MS, World, batch_of

from barnabas.log import TimestampSearch
from barnabas.server.api import (
    delete_records,
    describe_producers,
    list_offsets,
    offset_for_leader_epoch,
)
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.transaction_descriptions import (
    DescribeProducersRequest,
    PartitionResponse,
    TopicRequest,
)

NOWHERE = (-1, -1, -1)


def request_of(
    *requested: tuple[int, int], topic: str = "orders", epoch: int = -1, **fields: Any
) -> ListOffsetsRequest:
    """Requests (partition, timestamp) pairs."""
    return ListOffsetsRequest(
        replica_id=-1,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
                    )
                    for index, timestamp in requested
                ],
            )
        ],
        **fields,
    )


def list_of(
    world: World, *requested: tuple[int, int], version: int = 11, **fields: Any
) -> list[ListOffsetsPartitionResponse]:
    response = world.request(list_offsets.handle, request_of(*requested, **fields), version)
    return results(response)


def results(response: ListOffsetsResponse) -> list[ListOffsetsPartitionResponse]:
    return [result for entry in response.topics for result in entry.partitions]


def ends(answer: ListOffsetsPartitionResponse) -> tuple[int, int, int]:
    assert answer.error_code == ErrorCode.NONE
    return answer.timestamp, answer.offset, answer.leader_epoch


@pytest.fixture
def orders(world: World) -> World:
    """Offsets 0 to 4 of epoch 0, at 0, 1, 2, 2 and 1 seconds after the start; then epoch 1."""
    world.create_topic("orders", 2)
    for seconds in (0, 1, 2, 2, 1):
        world.now_ms = START_MS + seconds * 1000
        world.append("orders", b"a")
    world.lead("orders")
    return world


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (-1, (-1, 5, 1)),
        (-2, (-1, 0, 0)),
        (-3, (START_MS + 2000, 2, 0)),
        (-4, (-1, 0, 0)),
        (-5, NOWHERE),
        (-6, NOWHERE),
        (0, (START_MS, 0, 0)),
        (START_MS + 1, (START_MS + 1000, 1, 0)),
        (START_MS + 5000, NOWHERE),
    ],
)
def test_offsets_are_listed_by_time_and_by_special_timestamp(
    orders: World, timestamp: int, expected: tuple[int, int, int]
) -> None:
    (response,) = list_of(orders, (0, timestamp))
    assert ends(response) == expected


@pytest.mark.parametrize(
    ("timestamp", "first_version"), [(-3, 7), (-4, 8), (-5, 9), (-6, 11), (-7, 99)]
)
def test_special_timestamps_of_later_versions_are_errors_in_earlier_ones(
    orders: World, timestamp: int, first_version: int
) -> None:
    for version in range(1, 12):
        (response,) = list_of(orders, (0, timestamp), version=version)
        error = response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert error == (version < first_version)


@pytest.mark.parametrize("timestamp", [START_MS + 1000, -3])
def test_a_thread_searches_for_timestamps(orders: World, timestamp: int) -> None:
    orders.background.hold()
    pending = orders.begin_request(list_offsets.handle, request_of((0, timestamp)), 11)
    assert not pending.is_complete
    orders.background.release()
    pending.resume()
    (response,) = results(pending.response)
    assert response.offset in (1, 2)


def test_the_ends_of_a_log_need_no_thread(orders: World) -> None:
    orders.background.hold()
    assert [ends(found)[1] for found in list_of(orders, (0, -1), (1, -2))] == [5, 0]


def test_a_search_that_finds_no_file_is_repeated_on_the_log(
    orders: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(TimestampSearch, "offset_for_timestamp", fail)
    (response,) = list_of(orders, (0, START_MS + 1000))
    assert ends(response) == (START_MS + 1000, 1, 0)


def test_an_empty_partition_has_offsets_and_no_timestamps(orders: World) -> None:
    assert ends(list_of(orders, (1, -1))[0]) == (-1, 0, 0)
    assert ends(list_of(orders, (1, -2))[0]) == (-1, 0, 0)
    assert ends(list_of(orders, (1, -3))[0]) == NOWHERE
    assert ends(list_of(orders, (1, 0))[0]) == NOWHERE


def test_a_partition_requested_twice_is_an_invalid_request(orders: World) -> None:
    twice, once = list_of(orders, (0, -1), (0, -2), (1, -1))
    assert twice.error_code == ErrorCode.INVALID_REQUEST
    assert once.error_code == ErrorCode.NONE


def test_offsets_of_unknown_partitions_are_errors(orders: World) -> None:
    assert list_of(orders, (7, -1))[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    unknown = list_of(orders, (0, -1), topic="nowhere")[0]
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert list_of(orders, (0, -1), epoch=0)[0].error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert list_of(orders, (0, -1), epoch=5)[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_the_latest_offset_depends_on_the_isolation(orders: World) -> None:
    orders.write_in_transaction("orders", b"t")
    assert list_of(orders, (0, -1), isolation_level=0)[0].offset == 6
    assert list_of(orders, (0, -1), isolation_level=1)[0].offset == 5


def epoch_end(world: World, epoch: int, *, current: int = -1, index: int = 0) -> EpochEndOffset:
    request = OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            OffsetForLeaderTopic(
                topic="orders",
                partitions=[
                    OffsetForLeaderPartition(
                        partition=index, current_leader_epoch=current, leader_epoch=epoch
                    )
                ],
            )
        ],
    )
    response = world.request(offset_for_leader_epoch.handle, request, 4)
    result: EpochEndOffset = response.topics[0].partitions[0]
    return result


def test_the_end_offsets_of_epochs_are_returned(orders: World) -> None:
    orders.append("orders", b"b")
    for epoch, expected in ((0, (0, 5)), (1, (1, 6)), (2, (-1, -1)), (-1, (-1, -1))):
        response = epoch_end(orders, epoch)
        assert (response.error_code, (response.leader_epoch, response.end_offset)) == (0, expected)


def test_end_offsets_are_returned_to_readers_of_the_current_epoch(orders: World) -> None:
    assert epoch_end(orders, 0, current=1).error_code == ErrorCode.NONE
    assert epoch_end(orders, 0, current=0).error_code == ErrorCode.FENCED_LEADER_EPOCH
    assert epoch_end(orders, 0, current=3).error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert epoch_end(orders, 0, index=9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def delete(
    world: World, offset: int, *, topic: str = "orders", index: int = 0, version: int = 2
) -> DeleteRecordsPartitionResult:
    request = DeleteRecordsRequest(
        timeout_ms=1000,
        topics=[
            DeleteRecordsTopic(
                name=topic,
                partitions=[DeleteRecordsPartition(partition_index=index, offset=offset)],
            )
        ],
    )
    response = world.request(delete_records.handle, request, version)
    result: DeleteRecordsPartitionResult = response.topics[0].partitions[0]
    return result


@pytest.mark.parametrize("version", [0, 1, 2])
def test_records_are_deleted_by_offset(orders: World, version: int) -> None:
    assert delete(orders, 2, version=version).low_watermark == 2
    assert delete(orders, 0, version=version).low_watermark == 2
    assert delete(orders, -1, version=version).low_watermark == 5
    assert ends(list_of(orders, (0, -2))[0]) == (-1, 5, 1)


@pytest.mark.parametrize("offset", [6, -2])
def test_records_at_invalid_offsets_cannot_be_deleted(orders: World, offset: int) -> None:
    result = delete(orders, offset)
    assert (result.error_code, result.low_watermark) == (ErrorCode.OFFSET_OUT_OF_RANGE, -1)


def test_records_of_compacted_internal_and_unknown_topics_cannot_be_deleted(orders: World) -> None:
    orders.create_topic("table", cleanup_policy="compact")
    orders.create_topic("__consumer_offsets")
    assert delete(orders, 0, topic="table").error_code == ErrorCode.POLICY_VIOLATION
    internal = delete(orders, 0, topic="__consumer_offsets")
    assert internal.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    unknown = delete(orders, 0, topic="nowhere")
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_producers_are_described(orders: World) -> None:
    batch = batch_of(b"a", b"b", producer_id=5000, producer_epoch=2, base_sequence=0)
    orders.partition("orders").append(batch, acks=-1, now_ms=orders.now_ms)
    request = DescribeProducersRequest(
        topics=[
            TopicRequest(name="orders", partition_indexes=[0, 1, 9]),
            TopicRequest(name="nowhere", partition_indexes=[0]),
        ]
    )
    response = orders.request(describe_producers.handle, request, 0)
    entry: list[PartitionResponse] = [
        partition for topic in response.topics for partition in topic.partitions
    ]
    assert [partition.error_code for partition in entry] == [0, 0, 3, 3]
    (producer,) = entry[0].active_producers
    assert (producer.producer_id, producer.producer_epoch, producer.last_sequence) == (5000, 2, 1)
    assert (producer.last_timestamp, producer.coordinator_epoch) == (START_MS, -1)
    assert producer.current_txn_start_offset == -1
    assert entry[1].active_producers == []


def test_producers_are_described_by_a_follower_too(world: World) -> None:
    world.create_topic("orders", replicas=(1, 2))
    batch = batch_of(b"a", producer_id=5000, producer_epoch=2, base_sequence=0)
    world.partition("orders").append(batch, acks=1, now_ms=world.now_ms)
    world.lead("orders", leader=2)
    assert not world.partition("orders").is_leader
    request = DescribeProducersRequest(topics=[TopicRequest(name="orders", partition_indexes=[0])])
    (topic,) = world.request(describe_producers.handle, request, 0).topics
    assert [item.producer_id for item in topic.partitions[0].active_producers] == [5000]
