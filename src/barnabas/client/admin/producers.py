"""Producers that have written to partitions not long ago, idempotent or in transactions."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.calls import UNSET, Calls, Results, require_partitions
from barnabas.client.admin.routes import topics_of
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, told_by_broker
from barnabas.client.values import Partition, TopicPartition
from barnabas.wire.messages.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    TopicRequest,
)


@dataclass(slots=True, frozen=True)
class ProducerState:
    """A producer as a partition remembers it; None where no transaction is open."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    current_transaction_start_offset: int | None


class ProducerCalls(Calls):
    def describe_producers(
        self,
        partitions: list[TopicPartition],
        *,
        broker_id: int | None = None,
        request_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, Results[TopicPartition, list[ProducerState]]]:
        """The active producers of partitions, as leaders know them, or another broker."""
        require_partitions("partitions", partitions)
        return self._describe_producers(partitions, broker_id, self._deadline(request_timeout))

    async def _describe_producers(
        self, given: list[TopicPartition], broker_id: int | None, deadline: Deadline
    ) -> Results[TopicPartition, list[ProducerState]]:
        async def exchange(
            node: int | None, partitions: list[Partition]
        ) -> Mapping[Partition, list[ProducerState] | KafkaError]:
            request = DescribeProducersRequest(
                topics=[
                    TopicRequest(name=topic, partition_indexes=indexes)
                    for topic, indexes in topics_of(partitions).items()
                ]
            )
            response = await self._routes.ask(request, node, deadline=deadline)
            return {
                (topic.name, each.partition_index): _described(each)
                for topic in response.topics
                for each in topic.partitions
            }

        partitions = [(each.topic, each.partition) for each in given]
        if broker_id is None:
            outcomes = await self._routes.by_leader(partitions, exchange, deadline)
        else:
            asked = dict.fromkeys(partitions, broker_id)
            outcomes = await self._routes.by_broker(asked, exchange, deadline)
        return Results({each: outcomes[each.topic, each.partition] for each in given})


def _described(partition: PartitionResponse) -> list[ProducerState] | KafkaError:
    if partition.error_code:
        return told_by_broker(partition.error_code, partition.error_message)
    return [
        ProducerState(
            each.producer_id,
            each.producer_epoch,
            each.last_sequence,
            each.last_timestamp,
            each.coordinator_epoch if each.coordinator_epoch >= 0 else None,
            each.current_txn_start_offset if each.current_txn_start_offset >= 0 else None,
        )
        for each in partition.active_producers
    ]
