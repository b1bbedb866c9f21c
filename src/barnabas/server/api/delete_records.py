"""DeleteRecords (key 21): move the start of partitions up to an offset, or to all there is (-1).

v2 flexible.
"""

from barnabas.coordinator.topics import INTERNAL_TOPICS
from barnabas.server.call import Call
from barnabas.server.errors import failure_of
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)

UNKNOWN_LOW_WATERMARK = -1


async def handle(request: DeleteRecordsRequest, call: Call) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[_delete(topic.name, wanted, call) for wanted in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _delete(topic: str, wanted: DeleteRecordsPartition, call: Call) -> DeleteRecordsPartitionResult:
    try:
        partition = call.broker.partitions.by_name(topic, wanted.partition_index)
        if topic in INTERNAL_TOPICS:
            raise KafkaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"The records of {topic} are the broker's own."
            )
        low_watermark = partition.delete_records(wanted.offset)
    except Exception as failure:
        code, _ = failure_of(failure, "DeleteRecords", call)
        return DeleteRecordsPartitionResult(
            partition_index=wanted.partition_index,
            low_watermark=UNKNOWN_LOW_WATERMARK,
            error_code=code,
        )
    return DeleteRecordsPartitionResult(
        partition_index=wanted.partition_index, low_watermark=low_watermark
    )
