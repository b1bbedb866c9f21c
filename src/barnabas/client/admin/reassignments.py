"""Reassignments: move partitions to other brokers, cancel moves, list those in progress."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.results import Results, error_or_none, raise_on_error
from barnabas.client.admin.validation import UNSET, require_partitions
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError
from barnabas.client.values import TopicPartition, TopicPartitionTuple, group_by_topic
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
    return _alter_reassignments(
        admin, reassignments, allow_replication_factor_change, wait_ms, deadline
    )


async def _alter_reassignments(
    admin: AdminRequests,
    reassignments: dict[TopicPartition, list[int] | None],
    may_change_factor: bool,
    wait_ms: int,
    deadline: Deadline,
) -> Results[TopicPartition, None]:
    replicas: dict[TopicPartitionTuple, list[int] | None] = {
        (partition.topic, partition.partition): target
        for partition, target in reassignments.items()
    }

    async def exchange(
        node: int | None, partitions: list[TopicPartitionTuple]
    ) -> Mapping[TopicPartitionTuple, KafkaError | None]:
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=wait_ms,
            allow_replication_factor_change=may_change_factor,
            topics=[
                ReassignableTopic(
                    name=topic,
                    partitions=[
                        ReassignablePartition(
                            partition_index=index, replicas=replicas[topic, index]
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in group_by_topic(partitions).items()
            ],
        )
        response = await admin.send(request, node, deadline=deadline)
        raise_on_error(response.error_code, response.error_message)
        return {
            (topic.name, partition.partition_index): error_or_none(
                partition.error_code, partition.error_message
            )
            for topic in response.responses
            for partition in topic.partitions
        }

    outcomes = await admin.route_to_controller(replicas, exchange, deadline)
    return Results(
        {partition: outcomes[partition.topic, partition.partition] for partition in reassignments}
    )


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
        by_topic = group_by_topic(
            (partition.topic, partition.partition) for partition in partitions
        )
        topics = [
            ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in by_topic.items()
        ]
    deadline = admin.deadline(request_timeout)
    wait_ms = admin.operation_timeout_ms(operation_timeout, deadline)
    request = ListPartitionReassignmentsRequest(timeout_ms=wait_ms, topics=topics)
    return _list_reassignments(admin, request, deadline)


async def _list_reassignments(
    admin: AdminRequests, request: ListPartitionReassignmentsRequest, deadline: Deadline
) -> dict[TopicPartition, PartitionReassignment]:
    response = await admin.send_to_controller(request, deadline)
    return {
        TopicPartition(topic.name, partition.partition_index): PartitionReassignment(
            partition.replicas, partition.adding_replicas, partition.removing_replicas
        )
        for topic in response.topics
        for partition in topic.partitions
    }
