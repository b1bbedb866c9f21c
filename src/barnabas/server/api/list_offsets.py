"""ListOffsets (key 2): find an offset by timestamp, or the ends of a partition.

v1 one offset per partition; v2 isolation level; v4 leader epochs; v5 OFFSET_NOT_AVAILABLE while a
new leader lacks the high watermark; v7 max timestamp (-3); v8 earliest local (-4); v9 latest
tiered (-5); v10 a timeout for remote storage; v11 earliest pending upload (-6).
"""

from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from functools import partial

from barnabas.log import Log, TimestampOffset, TimestampSearch
from barnabas.replication import NO_EPOCH, Partition
from barnabas.server.authorization import is_describable
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
"""The replica id of consumers, who see committed records only; others see the log end."""


class SpecialTimestamp(IntEnum):
    """Timestamps that select an offset by other means than its time."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


FIRST_VERSION_OF: dict[int, int] = {
    SpecialTimestamp.LATEST: 1,
    SpecialTimestamp.EARLIEST: 1,
    SpecialTimestamp.MAX_TIMESTAMP: 7,
    SpecialTimestamp.EARLIEST_LOCAL: 8,
    SpecialTimestamp.LATEST_TIERED: 9,
    SpecialTimestamp.EARLIEST_PENDING_UPLOAD: 11,
}

FIRST_WITH_EPOCHS = 4
FIRST_WITH_NOT_AVAILABLE = 5

_NOT_FOUND = TimestampOffset(-1, -1, NO_EPOCH)


async def handle(request: ListOffsetsRequest, context: RequestContext) -> ListOffsetsResponse:
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name, partitions=await _responses(topic, request, context)
            )
            for topic in request.topics
        ]
    )


async def _responses(
    topic: ListOffsetsTopic, request: ListOffsetsRequest, context: RequestContext
) -> list[ListOffsetsPartitionResponse]:
    """Returns one response per partition; an error if it was requested more than once."""
    if not is_describable(topic.name, context):
        return [
            _error_response(requested, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            for requested in topic.partitions
        ]
    counts = Counter(requested.partition_index for requested in topic.partitions)
    by_index = {requested.partition_index: requested for requested in topic.partitions}
    return [
        await _response(topic.name, requested, request, context)
        if counts[index] == 1
        else _error_response(requested, ErrorCode.INVALID_REQUEST)
        for index, requested in by_index.items()
    ]


async def _response(
    topic: str,
    requested: ListOffsetsPartition,
    request: ListOffsetsRequest,
    context: RequestContext,
) -> ListOffsetsPartitionResponse:
    try:
        partition = context.broker.partitions.get_by_name(topic, requested.partition_index)
        partition.require_leader(requested.current_leader_epoch)
        entry = await _find(partition, requested.timestamp, request, context)
    except Exception as failure:
        return _error_response(requested, error_of(failure, "ListOffsets", context)[0])
    return ListOffsetsPartitionResponse(
        partition_index=requested.partition_index,
        timestamp=entry.timestamp,
        offset=entry.offset,
        leader_epoch=entry.leader_epoch if context.api_version >= FIRST_WITH_EPOCHS else NO_EPOCH,
    )


async def _find(
    partition: Partition, timestamp: int, request: ListOffsetsRequest, context: RequestContext
) -> TimestampOffset:
    log, version = partition.log, context.api_version
    end = log.log_end_offset
    is_uncertain = False
    if request.replica_id == CONSUMER:
        end = partition.last_fetchable_offset(request.isolation_level)
        is_uncertain = partition.has_stale_high_watermark
    if timestamp >= 0:
        entry = await _search(log, lambda log: log.offset_for_timestamp(timestamp), context)
        return _readable(entry, end, is_uncertain, version)
    if version < FIRST_VERSION_OF.get(timestamp, version + 1):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_VERSION, f"ListOffsets v{version} has no timestamp {timestamp}."
        )
    match timestamp:
        case SpecialTimestamp.LATEST if is_uncertain:
            raise _not_available(version)
        case SpecialTimestamp.LATEST:
            return TimestampOffset(-1, end, partition.leader_epoch)
        case SpecialTimestamp.EARLIEST | SpecialTimestamp.EARLIEST_LOCAL:
            return TimestampOffset(
                -1, log.log_start_offset, log.leader_epochs.epoch_for_offset(log.log_start_offset)
            )
        case SpecialTimestamp.MAX_TIMESTAMP:
            entry = await _search(log, lambda log: log.offset_of_max_timestamp(), context)
            return _readable(entry, end, is_uncertain, version)
        case _:
            return _NOT_FOUND  # there is no remote storage


async def _search(
    log: Log,
    find: Callable[[Log | TimestampSearch], TimestampOffset | None],
    context: RequestContext,
) -> TimestampOffset | None:
    """Searches in a thread; here only if an index must be rebuilt or a segment was deleted."""
    search = log.search_timestamps()
    try:
        entry = await context.broker.disk_reads.run(partial(find, search))
    except Exception:
        return find(log)
    search.finish()
    return entry


def _readable(
    entry: TimestampOffset | None, end: int, is_uncertain: bool, version: int
) -> TimestampOffset:
    if entry is not None and entry.offset < end:
        return entry
    if is_uncertain:
        raise _not_available(version)
    return _NOT_FOUND


def _not_available(version: int) -> KafkaError:
    """Returns the error of a new leader whose high watermark may be behind that of the previous."""
    has_code = version >= FIRST_WITH_NOT_AVAILABLE
    return KafkaError(
        ErrorCode.OFFSET_NOT_AVAILABLE if has_code else ErrorCode.LEADER_NOT_AVAILABLE,
        "The new leader does not know the high watermark yet: try again.",
    )


def _error_response(
    requested: ListOffsetsPartition, code: ErrorCode
) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=requested.partition_index, error_code=code)
