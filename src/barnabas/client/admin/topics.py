"""Topics: create, delete, describe, add partitions."""

import functools
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.model import (
    AclOperation,
    Node,
    TopicCollection,
    TopicPartitionInfo,
    Uuid,
    as_operations,
    operations_from_bits,
)
from barnabas.client.admin.requests import UNSET, AdminRequests, require_list
from barnabas.client.admin.results import Results, error_of
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError, KafkaException, broker_error, error_in
from barnabas.wire.messages.metadata import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponseTopic,
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponseTopic,
    TopicRequest,
)
from barnabas.wire.messages.topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

_TOPICS_PER_PAGE = 1000


@functools.total_ordering
class NewTopic:
    """A topic to create, with numbers of partitions and replicas, or with given replicas."""

    __slots__ = ("config", "num_partitions", "replica_assignment", "replication_factor", "topic")

    def __init__(
        self,
        topic: str,
        num_partitions: int = -1,
        replication_factor: int = -1,
        replica_assignment: list[list[int]] | None = None,
        config: dict[str, str] | None = None,
    ) -> None:
        self.topic = topic
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.replica_assignment = replica_assignment
        self.config = config

    def _key(self) -> tuple[str, int, int]:
        return self.topic, self.num_partitions, self.replication_factor

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, NewTopic) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self._key() < other._key() if isinstance(other, NewTopic) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        count = f",num_partitions={self.num_partitions}" if self.num_partitions >= 0 else ""
        return f"NewTopic(topic={self.topic}{count})"


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


@dataclass(slots=True, eq=False)
class TopicDescription:
    """A topic and its partitions."""

    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: list[TopicPartitionInfo]
    authorized_operations: list[AclOperation] | None = None

    def __post_init__(self) -> None:
        self.authorized_operations = as_operations(self.authorized_operations)


def create_topics(
    admin: AdminRequests,
    new_topics: list[NewTopic],
    *,
    validate_only: bool = False,
    request_timeout: float = UNSET,
    operation_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[str, None]]:
    """Creates topics; results are by topic name.

    `validate_only` checks the request without creating anything. `operation_timeout` limits how
    long the controller may take to create the topics.
    """
    require_list("new_topics", new_topics, NewTopic)
    deadline = admin.deadline(request_timeout)
    wait_ms = admin.operation_timeout_ms(operation_timeout, deadline)
    topics = [_creatable(topic) for topic in new_topics]

    async def exchange(node: int | None, names: list[str]) -> Mapping[str, KafkaError | None]:
        left = set(names)
        request = CreateTopicsRequest(
            topics=[topic for topic in topics if topic.name in left],
            timeout_ms=wait_ms,
            validate_only=validate_only,
        )
        response = await admin.send(request, node, deadline=deadline)
        return {topic.name: error_of(topic) for topic in response.topics}

    return admin.route_to_controller([topic.name for topic in topics], exchange, deadline)


def delete_topics(
    admin: AdminRequests,
    topics: list[str],
    *,
    request_timeout: float = UNSET,
    operation_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[str, None]]:
    """Deletes topics with all their records; results are by topic name."""
    require_list("topics", topics, str)
    deadline = admin.deadline(request_timeout)
    wait_ms = admin.operation_timeout_ms(operation_timeout, deadline)

    async def exchange(node: int | None, names: list[str]) -> Mapping[str, KafkaError | None]:
        states = [DeleteTopicState(name=name) for name in names]
        request = DeleteTopicsRequest(topics=states, topic_names=names, timeout_ms=wait_ms)
        response = await admin.send(request, node, deadline=deadline)
        return {topic.name: error_of(topic) for topic in response.responses}

    return admin.route_to_controller(topics, exchange, deadline)


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
    by_topic = {new.topic: _extended(new) for new in new_partitions}

    async def exchange(node: int | None, names: list[str]) -> Mapping[str, KafkaError | None]:
        request = CreatePartitionsRequest(
            topics=[by_topic[name] for name in names],
            timeout_ms=wait_ms,
            validate_only=validate_only,
        )
        response = await admin.send(request, node, deadline=deadline)
        return {topic.name: error_of(topic) for topic in response.results}

    return admin.route_to_controller(by_topic, exchange, deadline)


def describe_topics(
    admin: AdminRequests,
    topics: TopicCollection,
    *,
    include_authorized_operations: bool = False,
    request_timeout: float = UNSET,
) -> Coroutine[Any, Any, Results[str, TopicDescription]]:
    """Returns partitions, leaders, replicas and ids of topics, by topic name.

    `include_authorized_operations` adds the operations that this client may do on each topic.
    """
    if not isinstance(topics, TopicCollection):
        raise TypeError(f"topics must be a TopicCollection, not {type(topics).__name__}")
    require_list("topic_names", topics.topic_names, str, filled=False)
    deadline = admin.deadline(request_timeout)
    return _describe_topics(admin, topics.topic_names, include_authorized_operations, deadline)


async def _describe_topics(
    admin: AdminRequests, names: list[str], with_operations: bool, deadline: Deadline
) -> Results[str, TopicDescription]:
    if not names:
        return Results({})
    nodes = await admin.broker_nodes(deadline)
    try:
        described_topics: Iterable[_DescribedTopic] = await _describe_by_page(
            admin, sorted(set(names)), deadline
        )
    except KafkaException as failure:
        if error_in(failure).code() != KafkaError._UNSUPPORTED_FEATURE:
            raise
        described_topics = await _request_metadata(admin, names, with_operations, deadline)
    described = {
        topic.name: _described(topic, nodes, with_operations) for topic in described_topics
    }
    return Results({name: described[name] for name in names})


async def _describe_by_page(
    admin: AdminRequests, names: list[str], deadline: Deadline
) -> "Iterable[DescribeTopicPartitionsResponseTopic]":
    """Returns topics, requested page by page (KIP-966): a topic may continue in the next page."""
    topics: dict[str | None, DescribeTopicPartitionsResponseTopic] = {}
    first = 0
    cursor: Cursor | None = None
    while first < len(names):
        page = names[first : first + _TOPICS_PER_PAGE]
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in page], cursor=cursor
        )
        response = await admin.send(request, deadline=deadline)
        for topic in response.topics:
            first_part = topics.setdefault(topic.name, topic)
            if first_part is not topic:
                first_part.partitions += topic.partitions
        cursor = response.next_cursor
        if cursor is None:
            first += len(page)
        else:
            first += page.index(cursor.topic_name)
    return topics.values()


async def _request_metadata(
    admin: AdminRequests, names: list[str], with_operations: bool, deadline: Deadline
) -> list[MetadataResponseTopic]:
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=with_operations,
    )
    response = await admin.send(request, deadline=deadline)
    topics: list[MetadataResponseTopic] = response.topics
    return topics


_DescribedTopic = DescribeTopicPartitionsResponseTopic | MetadataResponseTopic


def _creatable(topic: NewTopic) -> CreatableTopic:
    assignment = topic.replica_assignment
    if assignment is None:
        count, copies = topic.num_partitions, topic.replication_factor
    elif topic.replication_factor != -1:
        raise ValueError(
            f"{topic.topic}: give a replication_factor or a replica_assignment, not both"
        )
    elif topic.num_partitions not in (-1, len(assignment)):
        raise ValueError(
            f"{topic.topic}: num_partitions is {topic.num_partitions}, but the replica_assignment"
            f" has {len(assignment)} partitions"
        )
    else:
        count = copies = -1
    return CreatableTopic(
        name=topic.topic,
        num_partitions=count,
        replication_factor=copies,
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
            for index, brokers in enumerate(assignment or ())
        ],
        configs=[
            CreatableTopicConfig(name=name, value=None if value is None else str(value))
            for name, value in (topic.config or {}).items()
        ],
    )


def _described(
    topic: _DescribedTopic, nodes: Mapping[int, Node], with_operations: bool
) -> TopicDescription | KafkaError:
    if topic.error_code:
        return broker_error(topic.error_code)

    def named(ids: Iterable[int]) -> list[Node]:
        return [nodes.get(node_id) or Node(node_id, "", -1) for node_id in ids]

    def optional(ids: Iterable[int] | None) -> list[Node] | None:
        return None if ids is None else named(ids)

    partitions = [
        TopicPartitionInfo(
            id=partition.partition_index,
            leader=nodes.get(partition.leader_id),
            replicas=named(partition.replica_nodes),
            isr=named(partition.isr_nodes),
            elr=optional(getattr(partition, "eligible_leader_replicas", None)),
            last_known_elr=optional(getattr(partition, "last_known_elr", None)),
            offline=named(partition.offline_replicas),
        )
        for partition in topic.partitions
    ]
    assert topic.name is not None, "topics were requested by name"
    return TopicDescription(
        topic.name,
        Uuid.from_bytes(topic.topic_id),
        topic.is_internal,
        sorted(partitions, key=lambda partition: partition.id),
        operations_from_bits(topic.topic_authorized_operations) if with_operations else None,
    )


def _extended(new: NewPartitions) -> CreatePartitionsTopic:
    assignments = None
    if new.replica_assignment is not None:
        assignments = [
            CreatePartitionsAssignment(broker_ids=list(brokers))
            for brokers in new.replica_assignment
        ]
    return CreatePartitionsTopic(name=new.topic, count=new.new_total_count, assignments=assignments)
