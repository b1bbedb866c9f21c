"""Records: delete those before an offset."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.model import by_topic
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.results import Results
from barnabas.client.admin.validation import UNSET, require_partitions
from barnabas.client.errors import KafkaError, broker_error
from barnabas.client.values import TopicPartition
from barnabas.wire.messages.topics import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)


@dataclass(slots=True, eq=False)
class DeletedRecords:
    """The new log start offset of a partition."""

    low_watermark: int


def delete_records(
    admin: AdminRequests,
    topic_partition_offsets: list[TopicPartition],
    *,
    request_timeout: float = UNSET,
    operation_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[TopicPartition, DeletedRecords]]:
    """Deletes all records before the offset of each partition; results are by partition.

    OFFSET_END deletes every record that the partition has.
    """
    require_partitions("topic_partition_offsets", topic_partition_offsets)
    deadline = admin.deadline(request_timeout)
    wait_ms = admin.operation_timeout_ms(operation_timeout, deadline)

    async def exchange(
        leader: int | None, batch: list[TopicPartition]
    ) -> Mapping[TopicPartition, DeletedRecords | KafkaError]:
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(partition_index=p.partition, offset=p.offset)
                        for p in partitions
                    ],
                )
                for topic, partitions in by_topic(batch).items()
            ],
            timeout_ms=wait_ms,
        )
        response = await admin.send(request, leader, deadline=deadline)
        return {
            TopicPartition(topic.name, partition.partition_index): broker_error(
                partition.error_code
            )
            if partition.error_code
            else DeletedRecords(partition.low_watermark)
            for topic in response.topics
            for partition in topic.partitions
        }

    return admin.route_to_leaders(topic_partition_offsets, exchange, deadline)
