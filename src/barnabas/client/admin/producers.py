"""Producers: the idempotent and transactional producers with state in a partition."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.model import by_topic
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.results import Results
from barnabas.client.admin.validation import UNSET, require_partitions
from barnabas.client.errors import KafkaError, broker_error
from barnabas.client.values import TopicPartition
from barnabas.wire.messages.transaction_descriptions import (
    DescribeProducersRequest,
    PartitionResponse,
    TopicRequest,
)


@dataclass(slots=True, frozen=True)
class ProducerState:
    """The state of a producer in a partition; transaction fields are None if none is open."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    current_transaction_start_offset: int | None


def describe_producers(
    admin: AdminRequests,
    partitions: list[TopicPartition],
    *,
    broker_id: int | None = None,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[TopicPartition, list[ProducerState]]]:
    """Returns the active producers of partitions, by partition.

    Leaders report them, unless `broker_id` names another replica.
    """
    require_partitions("partitions", partitions)
    deadline = admin.deadline(request_timeout)

    async def exchange(
        node: int | None, batch: list[TopicPartition]
    ) -> Mapping[TopicPartition, list[ProducerState] | KafkaError]:
        request = DescribeProducersRequest(
            topics=[
                TopicRequest(name=topic, partition_indexes=[p.partition for p in of_topic])
                for topic, of_topic in by_topic(batch).items()
            ]
        )
        response = await admin.send(request, node, deadline=deadline)
        return {
            TopicPartition(topic.name, partition.partition_index): _described(partition)
            for topic in response.topics
            for partition in topic.partitions
        }

    if broker_id is None:
        return admin.route_to_leaders(partitions, exchange, deadline)
    return admin.route_to_brokers(dict.fromkeys(partitions, broker_id), exchange, deadline)


def _described(partition: PartitionResponse) -> list[ProducerState] | KafkaError:
    if partition.error_code:
        return broker_error(partition.error_code, partition.error_message)
    return [
        ProducerState(
            producer.producer_id,
            producer.producer_epoch,
            producer.last_sequence,
            producer.last_timestamp,
            producer.coordinator_epoch if producer.coordinator_epoch >= 0 else None,
            producer.current_txn_start_offset if producer.current_txn_start_offset >= 0 else None,
        )
        for producer in partition.active_producers
    ]
