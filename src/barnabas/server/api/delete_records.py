"""DeleteRecords (key 21): advance the log start offset, to an offset or to the end (-1).

The response waits for all replicas on unfenced brokers. v2 flexible.
"""

from collections.abc import Hashable

from barnabas.coordinator.records import INTERNAL_TOPICS
from barnabas.replication import Partition
from barnabas.security.authorizer.model import AclOperation, topic_resource
from barnabas.server.errors import error_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)

UNKNOWN_LOW_WATERMARK = -1


async def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    deletions = _Deletions(context)
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=deletions.delete_all(topic),
            )
            for topic in request.topics
        ]
    )
    if deletions.pending:
        await context.broker.purgatory.delay(
            deletions.pending, request.timeout_ms, deletions.on_change, "DeleteRecords"
        )
    return response


class _Deletions:
    """The deletions of one request, and those that not all replicas have followed yet."""

    __slots__ = ("_context", "pending")

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self.pending: dict[Hashable, tuple[int, DeleteRecordsPartitionResult]] = {}
        """By partition, the low watermark to wait for, and the result that waits for it."""

    def delete_all(self, topic: DeleteRecordsTopic) -> list[DeleteRecordsPartitionResult]:
        if self._context.is_allowed(AclOperation.DELETE, topic_resource(topic.name)):
            return [self._delete(topic.name, requested) for requested in topic.partitions]
        return [
            DeleteRecordsPartitionResult(
                partition_index=requested.partition_index,
                low_watermark=UNKNOWN_LOW_WATERMARK,
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            )
            for requested in topic.partitions
        ]

    def _delete(
        self, topic: str, requested: DeleteRecordsPartition
    ) -> DeleteRecordsPartitionResult:
        result = DeleteRecordsPartitionResult(
            partition_index=requested.partition_index, low_watermark=UNKNOWN_LOW_WATERMARK
        )
        try:
            partition = self._context.broker.partitions.get_by_name(
                topic, requested.partition_index
            )
            if topic in INTERNAL_TOPICS:
                raise KafkaError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"Records of the internal topic {topic} cannot be deleted.",
                )
            start_offset = partition.delete_records(requested.offset)
        except Exception as failure:
            result.error_code, _ = error_of(failure, "DeleteRecords", self._context)
            return result
        result.low_watermark = partition.low_watermark
        if result.low_watermark < start_offset:
            result.error_code = ErrorCode.REQUEST_TIMED_OUT  # unless the followers follow in time
            self.pending[partition] = start_offset, result
        return result

    def on_change(self, partition: Hashable, _: int) -> bool:
        """Returns whether all partitions have an outcome, after a change of this one."""
        assert isinstance(partition, Partition)
        if partition in self.pending:
            start_offset, result = self.pending[partition]
            if not partition.is_leader:
                result.error_code = partition.error_code or ErrorCode.NOT_LEADER_OR_FOLLOWER
                result.low_watermark = UNKNOWN_LOW_WATERMARK
                del self.pending[partition]
            elif partition.low_watermark >= start_offset:
                result.error_code = ErrorCode.NONE
                result.low_watermark = partition.low_watermark
                del self.pending[partition]
        return not self.pending
