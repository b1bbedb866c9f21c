"""Reassignments: have partitions move to other brokers, cancel that, see what is under way."""

from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.calls import (
    UNSET,
    Calls,
    Results,
    outcome_of,
    raise_failure,
    require_partitions,
)
from barnabas.client.admin.routes import topics_of
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError
from barnabas.client.values import Partition, TopicPartition
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)


@dataclass(slots=True, frozen=True)
class PartitionReassignment:
    """A move under way: all replicas there are now, those that come and those that go."""

    replicas: list[int]
    adding_replicas: list[int]
    removing_replicas: list[int]


class ReassignmentCalls(Calls):
    def alter_partition_reassignments(
        self,
        reassignments: dict[TopicPartition, list[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        request_timeout: float = UNSET,
        operation_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, Results[TopicPartition, None]]:
        """Have partitions move to these brokers, the preferred leader first; None cancels."""
        require_partitions("reassignments", list(reassignments))
        deadline = self._deadline(request_timeout)
        wait_ms = self._wait_ms(operation_timeout, deadline)
        return self._alter_reassignments(
            reassignments, allow_replication_factor_change, wait_ms, deadline
        )

    async def _alter_reassignments(
        self,
        given: dict[TopicPartition, list[int] | None],
        may_change_factor: bool,
        wait_ms: int,
        deadline: Deadline,
    ) -> Results[TopicPartition, None]:
        replicas: dict[Partition, list[int] | None] = {
            (each.topic, each.partition): target for each, target in given.items()
        }

        async def exchange(
            node: int | None, partitions: list[Partition]
        ) -> Mapping[Partition, KafkaError | None]:
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
                    for topic, indexes in topics_of(partitions).items()
                ],
            )
            response = await self._routes.ask(request, node, deadline=deadline)
            raise_failure(response.error_code, response.error_message)
            return {
                (topic.name, each.partition_index): outcome_of(each.error_code, each.error_message)
                for topic in response.responses
                for each in topic.partitions
            }

        outcomes = await self._routes.by_controller(replicas, exchange, deadline)
        return Results({each: outcomes[each.topic, each.partition] for each in given})

    def list_partition_reassignments(
        self,
        partitions: list[TopicPartition] | None = None,
        *,
        request_timeout: float = UNSET,
        operation_timeout: float = UNSET,
    ) -> Coroutine[Any, Any, dict[TopicPartition, PartitionReassignment]]:
        """The moves of these partitions, or of all, that are not yet done."""
        topics = None
        if partitions is not None:
            require_partitions("partitions", partitions, filled=False)
            by_topic = topics_of((each.topic, each.partition) for each in partitions)
            topics = [
                ListPartitionReassignmentsTopics(name=topic, partition_indexes=indexes)
                for topic, indexes in by_topic.items()
            ]
        deadline = self._deadline(request_timeout)
        wait_ms = self._wait_ms(operation_timeout, deadline)
        request = ListPartitionReassignmentsRequest(timeout_ms=wait_ms, topics=topics)
        return self._list_reassignments(request, deadline)

    async def _list_reassignments(
        self, request: ListPartitionReassignmentsRequest, deadline: Deadline
    ) -> dict[TopicPartition, PartitionReassignment]:
        response = await self._routes.ask_controller(request, deadline)
        return {
            TopicPartition(topic.name, each.partition_index): PartitionReassignment(
                each.replicas, each.adding_replicas, each.removing_replicas
            )
            for topic in response.topics
            for each in topic.partitions
        }
