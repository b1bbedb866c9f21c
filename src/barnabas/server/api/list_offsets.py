"""ListOffsets (key 2): find an offset by timestamp, or the ends of a partition.

v1 one offset per partition; v2 isolation level; v4 leader epochs; v5 says when a new leader does
not know how much counts; v7 max timestamp (-3);
v8 earliest local (-4); v9 latest tiered (-5); v10 a timeout for remote storage;
v11 earliest pending upload (-6).
"""

from collections import Counter
from enum import IntEnum

from barnabas.log import TimestampOffset
from barnabas.replication import NO_EPOCH, Partition
from barnabas.server.errors import error_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

CONSUMER = -1
"""The replica id of who may see only what consumers see; anyone else sees the log's end."""


class Special(IntEnum):
    """Timestamps that stand for something other than a time."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


FIRST_VERSION_OF = {
    Special.LATEST: 1,
    Special.EARLIEST: 1,
    Special.MAX_TIMESTAMP: 7,
    Special.EARLIEST_LOCAL: 8,
    Special.LATEST_TIERED: 9,
    Special.EARLIEST_PENDING_UPLOAD: 11,
}

FIRST_WITH_EPOCHS = 4
FIRST_WITH_NOT_AVAILABLE = 5

_NOWHERE = TimestampOffset(-1, -1, NO_EPOCH)


async def handle(request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(name=topic.name, partitions=_answers(topic, request, context))
            for topic in request.topics
        ]
    )


def _answers(
    topic: ListOffsetsTopic, request: ListOffsetsRequest, context: RequestContext
) -> list[ListOffsetsPartitionResponse]:
    """One for each partition; for one that is asked for more than once, that it must not be."""
    times = Counter(wanted.partition_index for wanted in topic.partitions)
    by_index = {wanted.partition_index: wanted for wanted in topic.partitions}
    return [
        _answer(topic.name, wanted, request, context)
        if times[index] == 1
        else _refused(wanted, ErrorCode.INVALID_REQUEST)
        for index, wanted in by_index.items()
    ]


def _answer(
    topic: str, wanted: ListOffsetsPartition, request: ListOffsetsRequest, context: RequestContext
) -> ListOffsetsPartitionResponse:
    try:
        partition = context.broker.partitions.get_by_name(topic, wanted.partition_index)
        partition.require_leader(wanted.current_leader_epoch)
        found = _find(partition, wanted.timestamp, request, context.api_version)
    except Exception as failure:
        return _refused(wanted, error_of(failure, "ListOffsets", context)[0])
    return ListOffsetsPartitionResponse(
        partition_index=wanted.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch if context.api_version >= FIRST_WITH_EPOCHS else NO_EPOCH,
    )


def _find(
    partition: Partition, timestamp: int, request: ListOffsetsRequest, version: int
) -> TimestampOffset:
    log = partition.log
    end = log.log_end_offset
    is_unsure = False
    if request.replica_id == CONSUMER:
        end = partition.last_fetchable_offset(request.isolation_level)
        is_unsure = partition.has_stale_high_watermark
    if timestamp >= 0:
        found = log.offset_for_timestamp(timestamp)
        return _readable(found, end, is_unsure, version)
    if version < FIRST_VERSION_OF.get(timestamp, version + 1):  # type: ignore[call-overload]
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION,
            f"ListOffsets v{version} has no timestamp {timestamp}.",
        )
    match timestamp:
        case Special.LATEST if is_unsure:
            raise _not_available(version)
        case Special.LATEST:
            return TimestampOffset(-1, end, partition.leader_epoch)
        case Special.EARLIEST | Special.EARLIEST_LOCAL:
            return TimestampOffset(
                -1, log.log_start_offset, log.leader_epochs.epoch_for_offset(log.log_start_offset)
            )
        case Special.MAX_TIMESTAMP:
            return _readable(log.offset_of_max_timestamp(), end, is_unsure, version)
        case _:
            return _NOWHERE  # nothing is kept in remote storage


def _readable(
    found: TimestampOffset | None, end: int, is_unsure: bool, version: int
) -> TimestampOffset:
    if found is not None and found.offset < end:
        return found
    if is_unsure:
        raise _not_available(version)
    return _NOWHERE


def _not_available(version: int) -> KafkaError:
    """A new leader may not know yet of what counted under the one before."""
    knows = version >= FIRST_WITH_NOT_AVAILABLE
    return KafkaError(
        ErrorCode.OFFSET_NOT_AVAILABLE if knows else ErrorCode.LEADER_NOT_AVAILABLE,
        "The new leader does not know yet how much counts: try again.",
    )


def _refused(wanted: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=wanted.partition_index, error_code=code)
