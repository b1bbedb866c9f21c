"""OffsetForLeaderEpoch (key 23): where an epoch ended, so that a reader can tell if it diverged.

v2 the leader epoch the asker believes in; v3 its replica id; v4 flexible.
"""

from barnabas.server.errors import failure_of
from barnabas.server.request_context import Call
from barnabas.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)


async def handle(request: OffsetForLeaderEpochRequest, call: Call) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=[_answer(topic.topic, wanted, call) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _answer(topic: str, wanted: OffsetForLeaderPartition, call: Call) -> EpochEndOffset:
    try:
        partition = call.broker.partitions.by_name(topic, wanted.partition)
        epoch, end_offset = partition.epoch_end(wanted.leader_epoch, wanted.current_leader_epoch)
    except Exception as failure:
        code, _ = failure_of(failure, "OffsetForLeaderEpoch", call)
        return EpochEndOffset(partition=wanted.partition, error_code=code)
    return EpochEndOffset(partition=wanted.partition, leader_epoch=epoch, end_offset=end_offset)
