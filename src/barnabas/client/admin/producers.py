"""Producers: the idempotent and transactional producers with state in a partition."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.results import Results
from barnabas.client.admin.validation import UNSET, require_partitions
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, broker_error
from barnabas.client.values import TopicPartition, TopicPartitionTuple, group_by_topic
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
    return _describe_producers(admin, partitions, broker_id, admin.deadline(request_timeout))


async def _describe_producers(
    admin: AdminRequests,
    topic_partitions: list[TopicPartition],
    broker_id: int | None,
    deadline: Deadline,
) -> Results[TopicPartition, list[ProducerState]]:
    async def exchange(
        node: int | None, partitions: list[TopicPartitionTuple]
    ) -> Mapping[TopicPartitionTuple, list[ProducerState] | KafkaError]:
        request = DescribeProducersRequest(
            topics=[
                TopicRequest(name=topic, partition_indexes=indexes)
                for topic, indexes in group_by_topic(partitions).items()
            ]
        )
        response = await admin.send(request, node, deadline=deadline)
        return {
            (topic.name, partition.partition_index): _described(partition)
            for topic in response.topics
            for partition in topic.partitions
        }

    partitions = [(partition.topic, partition.partition) for partition in topic_partitions]
    if broker_id is None:
        outcomes = await admin.route_to_leaders(partitions, exchange, deadline)
    else:
        brokers = dict.fromkeys(partitions, broker_id)
        outcomes = await admin.route_to_brokers(brokers, exchange, deadline)
    return Results(
        {
            partition: outcomes[partition.topic, partition.partition]
            for partition in topic_partitions
        }
    )


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
