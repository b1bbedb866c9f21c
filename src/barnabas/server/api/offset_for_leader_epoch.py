"""OffsetForLeaderEpoch (key 23): the end offset of an epoch, by which a reader detects divergence.

v2 the current leader epoch of the reader; v3 its replica id; v4 flexible.
"""

from barnabas.server.errors import error_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


async def handle(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[
                    _response(topic.topic, requested, context) for requested in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _response(
    topic: str, requested: OffsetForLeaderPartition, context: RequestContext
) -> EpochEndOffset:
    try:
        partition = context.broker.partitions.get_by_name(topic, requested.partition)
        epoch, end_offset = partition.epoch_end_offset(
            requested.leader_epoch, requested.current_leader_epoch
        )
    except Exception as failure:
        code, _ = error_of(failure, "OffsetForLeaderEpoch", context)
        return EpochEndOffset(partition=requested.partition, error_code=code)
    return EpochEndOffset(partition=requested.partition, leader_epoch=epoch, end_offset=end_offset)
