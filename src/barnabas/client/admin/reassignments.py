"""Reassignments: move partitions to other brokers, cancel moves, list those in progress."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.model import by_topic
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.results import Results, error_or_none, raise_on_error
from barnabas.client.admin.validation import UNSET, require_partitions
from barnabas.client.errors import KafkaError
from barnabas.client.values import TopicPartition
from barnabas.wire.messages.partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)


@dataclass(slots=True, frozen=True)
class PartitionReassignment:
    """A reassignment in progress: all current replicas, those added and those removed."""

    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]


def alter_partition_reassignments(
    admin: AdminRequests,
    reassignments: dict[TopicPartition, list[int] | None],
    *,
    allow_replication_factor_change: bool = True,
    request_timeout: float = UNSET,
    operation_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[TopicPartition, None]]:
    """Moves partitions to other brokers; results are by partition.

    The value is the list of replicas, the preferred leader first; None cancels a reassignment
    that is in progress.
    """
    require_partitions("reassignments", list(reassignments))
    deadline = admin.deadline(request_timeout)
    wait_ms = admin.operation_timeout_ms(operation_timeout, deadline)

    async def exchange(
        node: int | None, batch: list[TopicPartition]
    ) -> Mapping[TopicPartition, KafkaError | None]:
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=wait_ms,
            allow_replication_factor_change=allow_replication_factor_change,
            topics=[
                ReassignableTopic(
                    name=topic,
                    partitions=[
                        ReassignablePartition(
                            partition_index=p.partition, replicas=reassignments[p]
                        )
                        for p in partitions
                    ],
                )
                for topic, partitions in by_topic(batch).items()
            ],
        )
        response = await admin.send(request, node, deadline=deadline)
        raise_on_error(response.error_code, response.error_message)
        return {
            TopicPartition(topic.name, partition.partition_index): error_or_none(
                partition.error_code, partition.error_message
            )
            for topic in response.responses
            for partition in topic.partitions
        }

    return admin.route_to_controller(reassignments, exchange, deadline)


def list_partition_reassignments(
    admin: AdminRequests,
    partitions: list[TopicPartition] | None = None,
    *,
    request_timeout: float = UNSET,
    operation_timeout: float = UNSET,
) -> Coroutine[Any, Any, dict[TopicPartition, PartitionReassignment]]:
    """Returns the reassignments in progress of these partitions, or of all partitions."""
    topics = None
    if partitions is not None:
        require_partitions("partitions", partitions, filled=False)
        topics = [
            ListPartitionReassignmentsTopics(
                name=topic, partition_indexes=[p.partition for p in of_topic]
            )
            for topic, of_topic in by_topic(partitions).items()
        ]
    deadline = admin.deadline(request_timeout)
    wait_ms = admin.operation_timeout_ms(operation_timeout, deadline)
    request = ListPartitionReassignmentsRequest(timeout_ms=wait_ms, topics=topics)

    async def list_reassignments() -> dict[TopicPartition, PartitionReassignment]:
        response = await admin.send_to_controller(request, deadline)
        return {
            TopicPartition(topic.name, partition.partition_index): PartitionReassignment(
                partition.replicas, partition.adding_replicas, partition.removing_replicas
            )
            for topic in response.topics
            for partition in topic.partitions
        }

    return list_reassignments()
