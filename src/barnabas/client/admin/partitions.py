"""Partitions: add them to existing topics."""

import functools
from collections.abc import Coroutine, Mapping
from typing import Any

from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.results import Results, error_or_none
from barnabas.client.admin.validation import UNSET, require_list
from barnabas.client.errors import KafkaError
from barnabas.wire.messages.topics import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)


@functools.total_ordering
class NewPartitions:
    """The total number of partitions for a topic, and optionally replicas of the new ones."""

    __slots__ = ("new_total_count", "replica_assignment", "topic")

    def __init__(
        self,
        topic: str,
        new_total_count: int,
        replica_assignment: list[list[int]] | None = None,
    ) -> None:
        self.topic = topic
        self.new_total_count = new_total_count
        self.replica_assignment = replica_assignment

    def _key(self) -> tuple[str, int]:
        return self.topic, self.new_total_count

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, NewPartitions) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._key() < other._key() if isinstance(other, NewPartitions) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"NewPartitions(topic={self.topic},new_total_count={self.new_total_count})"


def create_partitions(
    admin: AdminRequests,
    new_partitions: list[NewPartitions],
    *,
    validate_only: bool = False,
    request_timeout: float = UNSET,
    operation_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[str, None]]:
    """Adds partitions to existing topics; results are by topic name.

    Records with the same key may go to another partition from then on. `validate_only` checks the
    request without adding anything.
    """
    require_list("new_partitions", new_partitions, NewPartitions)
    deadline = admin.deadline(request_timeout)
    wait_ms = admin.operation_timeout_ms(operation_timeout, deadline)
    by_topic = {new.topic: _creatable(new) for new in new_partitions}

    async def exchange(node: int | None, names: list[str]) -> Mapping[str, KafkaError | None]:
        request = CreatePartitionsRequest(
            topics=[by_topic[name] for name in names],
            timeout_ms=wait_ms,
            validate_only=validate_only,
        )
        response = await admin.send(request, node, deadline=deadline)
        return {
            topic.name: error_or_none(topic.error_code, topic.error_message)
            for topic in response.results
        }

    return admin.route_to_controller(by_topic, exchange, deadline)


def _creatable(new: NewPartitions) -> CreatePartitionsTopic:
    assignments = None
    if new.replica_assignment is not None:
        assignments = [
            CreatePartitionsAssignment(broker_ids=list(brokers))
            for brokers in new.replica_assignment
        ]
    return CreatePartitionsTopic(name=new.topic, count=new.new_total_count, assignments=assignments)
