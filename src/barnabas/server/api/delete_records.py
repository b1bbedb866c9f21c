"""DeleteRecords (key 21): move the start of partitions up to an offset, or to all there is (-1).

It is answered when all replicas whose brokers live have followed. v2 flexible.
"""

from collections.abc import Hashable

from barnabas.coordinator.topics import INTERNAL_TOPICS
from barnabas.replication import Partition
from barnabas.server.errors import error_of
from barnabas.server.request_context import RequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

UNKNOWN_LOW_WATERMARK = -1


async def handle(request: DeleteRecordsRequest, context: RequestContext) -> DeleteRecordsResponse:
    deletions = _Deletions(context)
    response = DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[deletions.delete(topic.name, wanted) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )
    if deletions.owed:
        await context.broker.purgatory.delay(
            deletions.owed, request.timeout_ms, deletions.take_note, "DeleteRecords"
        )
    return response


class _Deletions:
    """The deletions of one request, and which of them have not come to all replicas yet."""

    __slots__ = ("_context", "owed")

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self.owed: dict[Hashable, tuple[int, DeleteRecordsPartitionResult]] = {}
        """By partition the low watermark to wait for, and the answer that waits for it."""

    def delete(self, topic: str, wanted: DeleteRecordsPartition) -> DeleteRecordsPartitionResult:
        answer = DeleteRecordsPartitionResult(
            partition_index=wanted.partition_index, low_watermark=UNKNOWN_LOW_WATERMARK
        )
        try:
            partition = self._context.broker.partitions.get_by_name(topic, wanted.partition_index)
            if topic in INTERNAL_TOPICS:
                raise KafkaError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION,
                    f"The records of {topic} are the broker's own.",
                )
            start_offset = partition.delete_records(wanted.offset)
        except Exception as failure:
            answer.error_code, _ = error_of(failure, "DeleteRecords", self._context)
            return answer
        answer.low_watermark = partition.low_watermark
        if answer.low_watermark < start_offset:
            answer.error_code = ErrorCode.REQUEST_TIMED_OUT  # unless the followers come in time
            self.owed[partition] = start_offset, answer
        return answer

    def take_note(self, partition: Hashable, _: int) -> bool:
        """Whether, now that this partition moved on, everything can be answered."""
        assert isinstance(partition, Partition)
        if partition in self.owed:
            start_offset, answer = self.owed[partition]
            if not partition.is_leader:
                answer.error_code = partition.error_code or ErrorCode.NOT_LEADER_OR_FOLLOWER
                answer.low_watermark = UNKNOWN_LOW_WATERMARK
                del self.owed[partition]
            elif partition.low_watermark >= start_offset:
                answer.error_code = ErrorCode.NONE
                answer.low_watermark = partition.low_watermark
                del self.owed[partition]
        return not self.owed
