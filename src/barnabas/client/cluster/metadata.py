"""The metadata of a cluster: immutable values, and how a Metadata response updates them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from barnabas.wire import uuid
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

NO_LEADER = -1


@dataclass(slots=True, frozen=True)
class BrokerInfo:
    node_id: int
    host: str
    port: int
    rack: str | None = None


@dataclass(slots=True, frozen=True)
class PartitionInfo:
    index: int
    leader: int = NO_LEADER
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    error: ErrorCode = ErrorCode.NONE


@dataclass(slots=True, frozen=True)
class TopicInfo:
    """A topic; one that does not exist, or is not authorized, has an error."""

    name: str
    topic_id: bytes = uuid.ZERO
    partitions: tuple[PartitionInfo, ...] = ()  # by partition index
    error: ErrorCode = ErrorCode.NONE
    is_internal: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether another request soon would return the same."""
        if self.error.retriable:
            return False
        return all(partition.leader != NO_LEADER for partition in self.partitions)


@dataclass(slots=True, frozen=True)
class MetadataSnapshot:
    cluster_id: str | None = None
    controller_id: int = -1
    brokers: Mapping[int, BrokerInfo] = field(default_factory=dict)
    topics: Mapping[str, TopicInfo] = field(default_factory=dict)
    topic_names: Mapping[bytes, str] = field(default_factory=dict)  # topic id -> name

    def leader(self, topic: str, partition: int) -> PartitionInfo | None:
        """Returns the partition with its leader; None if it is unknown."""
        info = self.topics.get(topic)
        if info is None or not 0 <= partition < len(info.partitions):
            return None
        return info.partitions[partition]

    def updated(
        self, response: MetadataResponse, topic_names: Collection[str], *, is_complete: bool = False
    ) -> "MetadataSnapshot":
        """Returns the metadata after a response, with the topics of `topic_names` only.

        A complete response has all topics of the cluster, and all of them stay.
        """
        topics = (
            {}
            if is_complete
            else {name: topic for name, topic in self.topics.items() if name in topic_names}
        )
        for topic in response.topics:
            if topic.name is not None and (is_complete or topic.name in topic_names):
                topics[topic.name] = _topic(topic, self.topics.get(topic.name))
        if is_complete:
            for name in topic_names:
                topics.setdefault(name, TopicInfo(name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        brokers = {
            broker.node_id: BrokerInfo(broker.node_id, broker.host, broker.port, broker.rack)
            for broker in response.brokers
        }
        return MetadataSnapshot(
            response.cluster_id,
            response.controller_id,
            MappingProxyType(brokers),
            MappingProxyType(topics),
            MappingProxyType(
                {info.topic_id: info.name for info in topics.values() if info.topic_id != uuid.ZERO}
            ),
        )


def _topic(response: MetadataResponseTopic, before: TopicInfo | None) -> TopicInfo:
    assert response.name is not None
    error = ErrorCode.of(response.error_code)
    if before is not None and before.topic_id != response.topic_id:
        before = None  # deleted and created again: its epochs start again too
    existing = {} if before is None else {info.index: info for info in before.partitions}
    partitions = sorted(response.partitions, key=lambda partition: partition.partition_index)
    return TopicInfo(
        response.name,
        response.topic_id,
        tuple(
            _partition(partition, existing.get(partition.partition_index))
            for partition in partitions
        ),
        error,
        response.is_internal,
    )


def _partition(response: MetadataResponsePartition, before: PartitionInfo | None) -> PartitionInfo:
    """Returns the newer of the two: a broker may not know the present leader yet (KIP-320)."""
    if before is not None and 0 <= response.leader_epoch < before.leader_epoch:
        return before
    return PartitionInfo(
        response.partition_index,
        response.leader_id,
        response.leader_epoch,
        tuple(response.replica_nodes),
        tuple(response.isr_nodes),
        tuple(response.offline_replicas),
        ErrorCode.of(response.error_code),
    )
