"""Records: delete those before an offset."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.results import Results
from barnabas.client.admin.validation import UNSET, require_partitions
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, broker_error
from barnabas.client.values import TopicPartition, TopicPartitionTuple, group_by_topic
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
    return _delete_records(admin, topic_partition_offsets, wait_ms, deadline)


async def _delete_records(
    admin: AdminRequests, topic_partitions: list[TopicPartition], wait_ms: int, deadline: Deadline
) -> Results[TopicPartition, DeletedRecords]:
    offsets: dict[TopicPartitionTuple, int] = {
        (partition.topic, partition.partition): partition.offset for partition in topic_partitions
    }

    async def exchange(
        leader: int | None, partitions: list[TopicPartitionTuple]
    ) -> Mapping[TopicPartitionTuple, DeletedRecords | KafkaError]:
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(partition_index=index, offset=offsets[topic, index])
                        for index in indexes
                    ],
                )
                for topic, indexes in group_by_topic(partitions).items()
            ],
            timeout_ms=wait_ms,
        )
        response = await admin.send(request, leader, deadline=deadline)
        return {
            (topic.name, partition.partition_index): broker_error(partition.error_code)
            if partition.error_code
            else DeletedRecords(partition.low_watermark)
            for topic in response.topics
            for partition in topic.partitions
        }

    outcomes = await admin.route_to_leaders(offsets, exchange, deadline)
    return Results(
        {
            partition: outcomes[partition.topic, partition.partition]
            for partition in topic_partitions
        }
    )
