"""OffsetForLeaderEpoch (key 23): the end offset of an epoch, by which a reader detects divergence.

v2 the current leader epoch of the reader; v3 its replica id; v4 flexible.
"""

from barnabas.security.authorizer.model import CLUSTER, AclOperation
from barnabas.server.authorization import is_describable
from barnabas.server.errors import error_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)


async def handle(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    is_broker = context.is_allowed(AclOperation.CLUSTER_ACTION, CLUSTER, is_audited=False)
    return OffsetForLeaderEpochResponse(
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic,
                partitions=_responses(topic, context)
                if is_broker or is_describable(topic.topic, context)
                else _denied(topic),
            )
            for topic in request.topics
        ]
    )


def _responses(topic: OffsetForLeaderTopic, context: RequestContext) -> list[EpochEndOffset]:
    return [_response(topic.topic, requested, context) for requested in topic.partitions]


def _denied(topic: OffsetForLeaderTopic) -> list[EpochEndOffset]:
    return [
        EpochEndOffset(
            partition=requested.partition, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
        )
        for requested in topic.partitions
    ]


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
