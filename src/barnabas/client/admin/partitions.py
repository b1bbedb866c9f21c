"""Partitions: move them to other brokers, elect leaders, describe their producers."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.model import ElectionType, by_topic
from barnabas.client.admin.requests import UNSET, AdminRequests, require_partitions
from barnabas.client.admin.results import Results, error_of, raise_on_error
from barnabas.client.errors import KafkaError
from barnabas.client.values import TopicPartition
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from barnabas.wire.messages.partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.transaction_descriptions import (
    DescribeProducersRequest,
    PartitionResponse,
    TopicRequest,
)


@dataclass(slots=True, frozen=True)
class PartitionReassignment:
    """A reassignment in progress: all current replicas, those added and those removed."""

    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]


@dataclass(slots=True, frozen=True)
class ProducerState:
    """The state of a producer in a partition; transaction fields are None if none is open."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int | None
    current_transaction_start_offset: int | None


ElectionErrors = dict[TopicPartition, KafkaError | None]


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
        raise_on_error(response)
        return {
            TopicPartition(topic.name, partition.partition_index): error_of(partition)
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


def elect_leaders(
    admin: AdminRequests,
    election_type: ElectionType,
    partitions: list[TopicPartition] | None = None,
    *,
    request_timeout: float = UNSET,
    operation_timeout: float = UNSET,
) -> Coroutine[Any, Any, ElectionErrors]:
    """Elects the leaders of these partitions, or of all partitions that need an election.

    The result has the error of each partition: ELECTION_NOT_NEEDED if its leader is the right
    one already.
    """
    if not isinstance(election_type, ElectionType):
        raise TypeError(f"{election_type!r} is not an ElectionType")
    topics = None
    if partitions is not None:
        require_partitions("partitions", partitions, filled=False)
        topics = [
            TopicPartitions(topic=topic, partitions=[p.partition for p in of_topic])
            for topic, of_topic in by_topic(partitions).items()
        ]
    deadline = admin.deadline(request_timeout)
    request = ElectLeadersRequest(
        election_type=election_type.value,
        topic_partitions=topics,
        timeout_ms=admin.operation_timeout_ms(operation_timeout, deadline),
    )

    async def elect() -> ElectionErrors:
        response = await admin.send_to_controller(request, deadline)
        elected: ElectionErrors = {}
        for topic in response.replica_election_results:
            for result in topic.partition_result:
                partition = TopicPartition(topic.topic, result.partition_id)
                partition.error = error_of(result)
                elected[partition] = partition.error
        return elected

    return elect()


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
    return error_of(partition) or [
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
