"""OffsetForLeaderEpoch (key 23): where an epoch ended, so that a reader can tell if it diverged.

v2 the leader epoch the asker believes in; v3 its replica id; v4 flexible.
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
                partitions=[_answer(topic.topic, wanted, context) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _answer(
    topic: str, wanted: OffsetForLeaderPartition, context: RequestContext
) -> EpochEndOffset:
    try:
        partition = context.broker.partitions.get_by_name(topic, wanted.partition)
        epoch, end_offset = partition.epoch_end_offset(
            wanted.leader_epoch, wanted.current_leader_epoch
        )
    except Exception as failure:
        code, _ = error_of(failure, "OffsetForLeaderEpoch", context)
        return EpochEndOffset(partition=wanted.partition, error_code=code)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)
