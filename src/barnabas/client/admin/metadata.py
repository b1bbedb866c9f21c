"""Metadata of brokers, topics and partitions, as `list_topics` of all clients returns it."""

from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Any

from barnabas.client.admin.model import Uuid
from barnabas.client.admin.requests import UNSET, AdminRequests
from barnabas.client.admin.results import error_of
from barnabas.client.cluster import Deadline
from barnabas.client.errors import KafkaError
from barnabas.wire import uuid
from barnabas.wire.messages.metadata import MetadataResponse, MetadataResponseTopic

_FOR_EVER_MS = 2**31 - 1


@dataclass(slots=True, eq=False, repr=False)
class PartitionMetadata:
    id: int = -1
    leader: int = -1
    replicas: list[int] = field(default_factory=list)
    isrs: list[int] = field(default_factory=list)
    error: KafkaError | None = None

    def __repr__(self) -> str:
        return f"PartitionMetadata({self.id}{f', {self.error}' if self.error else ''})"

    def __str__(self) -> str:
        return str(self.id)


@dataclass(slots=True, eq=False, repr=False)
class TopicMetadata:
    topic: str | None = None
    partitions: dict[int, PartitionMetadata] = field(default_factory=dict)
    error: KafkaError | None = None
    topic_id: Uuid = field(default_factory=lambda: Uuid(0, 0))
    is_internal: bool = False

    def __repr__(self) -> str:
        error = f", {self.error}" if self.error else ""
        return f"TopicMetadata({self.topic}, {len(self.partitions)} partitions{error})"

    def __str__(self) -> str:
        return str(self.topic)


@dataclass(slots=True, eq=False, repr=False)
class BrokerMetadata:
    id: int = -1
    host: str | None = None
    port: int = -1
    rack: str | None = None

    def __repr__(self) -> str:
        return f"BrokerMetadata({self.id}, {self.host}:{self.port})"

    def __str__(self) -> str:
        return f"{self.host}:{self.port}/{self.id}"


@dataclass(slots=True, eq=False, repr=False)
class ClusterMetadata:
    """The metadata of a cluster; `orig_broker_id` and `orig_broker_name` are of its sender.

    The id is -1 for a bootstrap server that is not among the brokers.
    """

    cluster_id: str | None = None
    controller_id: int = -1
    brokers: dict[int, BrokerMetadata] = field(default_factory=dict)
    topics: dict[str, TopicMetadata] = field(default_factory=dict)
    orig_broker_id: int = -1
    orig_broker_name: str | None = None

    def __repr__(self) -> str:
        return f"ClusterMetadata({self.cluster_id})"

    def __str__(self) -> str:
        return str(self.cluster_id)


def list_topics(
    admin: AdminRequests, topic: str | None = None, timeout: float = UNSET
) -> Coroutine[Any, Any, ClusterMetadata]:
    """Returns the brokers of the cluster with one topic, or with all topics.

    A topic that does not exist is listed with its `error`. The call waits as long as it takes
    unless `timeout` (in seconds) is given.
    """
    deadline = deadline_after(timeout)

    async def describe() -> ClusterMetadata:
        topics = None if topic is None else [topic]
        response, node_id, address = await admin.cluster.describe_with_node(
            topics, timeout_ms=deadline.remaining_ms()
        )
        return cluster_metadata(response, node_id, address)

    return describe()


def cluster_id(admin: AdminRequests, timeout: float = UNSET) -> Coroutine[Any, Any, str | None]:
    """Returns the id that the cluster was formatted with."""
    deadline = deadline_after(timeout)

    async def describe() -> str | None:
        response = await admin.cluster.describe([], timeout_ms=deadline.remaining_ms())
        return response.cluster_id

    return describe()


def cluster_metadata(
    response: MetadataResponse, node_id: int = -1, address: str | None = None
) -> ClusterMetadata:
    """Returns the value of `list_topics` for a response, with the broker that sent it."""
    brokers = {
        broker.node_id: BrokerMetadata(broker.node_id, broker.host, broker.port, broker.rack)
        for broker in response.brokers
    }
    topics = {topic.name: _topic(topic) for topic in response.topics if topic.name is not None}
    cluster = ClusterMetadata(response.cluster_id, response.controller_id, brokers, topics)
    by_address = {f"{broker.host}:{broker.port}": broker for broker in brokers.values()}
    origin = brokers.get(node_id) or by_address.get(address or "")
    if origin is not None:
        cluster.orig_broker_id, cluster.orig_broker_name = origin.id, str(origin)
    elif address is not None:
        cluster.orig_broker_name = f"{address}/bootstrap"
    return cluster


def _topic(topic: MetadataResponseTopic) -> TopicMetadata:
    partitions = {
        partition.partition_index: PartitionMetadata(
            partition.partition_index,
            partition.leader_id,
            partition.replica_nodes,
            partition.isr_nodes,
            error_of(partition),
        )
        for partition in sorted(topic.partitions, key=lambda entry: entry.partition_index)
    }
    topic_id = Uuid.from_bytes(topic.topic_id or uuid.ZERO)
    error = error_of(topic)
    return TopicMetadata(topic.name, partitions, error, topic_id, topic.is_internal)


def deadline_after(timeout: float) -> Deadline:
    """Returns the deadline of a call with `timeout`, which waits without limit by default."""
    return Deadline.after(_FOR_EVER_MS if timeout < 0 else timeout * 1000)
