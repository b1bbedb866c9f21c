"""Records: delete those before an offset."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.calls import UNSET, Calls, Results, require_partitions
from barnabas.client.admin.routes import topics_of
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, told_by_broker
from barnabas.client.values import Partition, TopicPartition
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)


@dataclass(slots=True, eq=False)
class DeletedRecords:
    """Where a partition begins now."""

    low_watermark: int


class RecordCalls(Calls):
    def delete_records(
        self,
        topic_partition_offsets: list[TopicPartition],
        *,
        request_timeout: float = UNSET,
        operation_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, Results[TopicPartition, DeletedRecords]]:
        """Delete all records before the offset of each partition; OFFSET_END deletes all."""
        require_partitions("topic_partition_offsets", topic_partition_offsets)
        deadline = self._deadline(request_timeout)
        wait_ms = self._wait_ms(operation_timeout, deadline)
        return self._delete_records(topic_partition_offsets, wait_ms, deadline)

    async def _delete_records(
        self, given: list[TopicPartition], wait_ms: int, deadline: Deadline
    ) -> Results[TopicPartition, DeletedRecords]:
        offsets: dict[Partition, int] = {
            (each.topic, each.partition): each.offset for each in given
        }

        async def exchange(
            leader: int | None, partitions: list[Partition]
        ) -> Mapping[Partition, DeletedRecords | KafkaError]:
            request = DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(
                        name=topic,
                        partitions=[
                            DeleteRecordsPartition(
                                partition_index=index, offset=offsets[topic, index]
                            )
                            for index in indexes
                        ],
                    )
                    for topic, indexes in topics_of(partitions).items()
                ],
                timeout_ms=wait_ms,
            )
            response = await self._routes.ask(request, leader, deadline=deadline)
            return {
                (topic.name, each.partition_index): told_by_broker(each.error_code)
                if each.error_code
                else DeletedRecords(each.low_watermark)
                for topic in response.topics
                for each in topic.partitions
            }

        outcomes = await self._routes.by_leader(offsets, exchange, deadline)
        return Results({each: outcomes[each.topic, each.partition] for each in given})
