"""What is known of a cluster: immutable values, and how an answer to Metadata changes them."""

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
    """A topic; one that the cluster does not know, or does not show, has an error."""

    name: str
    topic_id: bytes = uuid.ZERO
    partitions: tuple[PartitionInfo, ...] = ()  # the index of each is its place
    error: ErrorCode = ErrorCode.NONE
    is_internal: bool = False

    @property
    def is_settled(self) -> bool:
        """Whether asking again soon would tell nothing more."""
        if self.error.retriable:
            return False
        return all(partition.leader != NO_LEADER for partition in self.partitions)


@dataclass(slots=True, frozen=True)
class Metadata:
    cluster_id: str | None = None
    controller_id: int = -1
    brokers: Mapping[int, BrokerInfo] = field(default_factory=dict)
    topics: Mapping[str, TopicInfo] = field(default_factory=dict)
    topic_names: Mapping[bytes, str] = field(default_factory=dict)  # topic id -> name

    def leader(self, topic: str, partition: int) -> PartitionInfo | None:
        """The partition as its leader has it; None if it is not known."""
        known = self.topics.get(topic)
        if known is None or not 0 <= partition < len(known.partitions):
            return None
        return known.partitions[partition]

    def updated(
        self, response: MetadataResponse, topic_names: Collection[str], *, is_complete: bool = False
    ) -> "Metadata":
        """What is known once a broker has answered. Topics that nobody wants are forgotten."""
        topics = (
            {}
            if is_complete
            else {name: topic for name, topic in self.topics.items() if name in topic_names}
        )
        for each in response.topics:
            if each.name is not None and (is_complete or each.name in topic_names):
                topics[each.name] = _topic(each, self.topics.get(each.name))
        if is_complete:
            for name in topic_names:
                topics.setdefault(name, TopicInfo(name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        brokers = {
            each.node_id: BrokerInfo(each.node_id, each.host, each.port, each.rack)
            for each in response.brokers
        }
        return Metadata(
            response.cluster_id,
            response.controller_id,
            MappingProxyType(brokers),
            MappingProxyType(topics),
            MappingProxyType(
                {each.topic_id: each.name for each in topics.values() if each.topic_id != uuid.ZERO}
            ),
        )


def _topic(told: MetadataResponseTopic, before: TopicInfo | None) -> TopicInfo:
    assert told.name is not None
    error = ErrorCode.of(told.error_code)
    if before is not None and before.topic_id != told.topic_id:
        before = None  # deleted, perhaps created anew: its epochs have begun anew too
    known = {} if before is None else {each.index: each for each in before.partitions}
    partitions = sorted(told.partitions, key=lambda each: each.partition_index)
    return TopicInfo(
        told.name,
        told.topic_id,
        tuple(_partition(each, known.get(each.partition_index)) for each in partitions),
        error,
        told.is_internal,
    )


def _partition(told: MetadataResponsePartition, before: PartitionInfo | None) -> PartitionInfo:
    """As told, unless by a broker that has not heard of the present leader yet (KIP-320)."""
    if before is not None and 0 <= told.leader_epoch < before.leader_epoch:
        return before
    return PartitionInfo(
        told.partition_index,
        told.leader_id,
        told.leader_epoch,
        tuple(told.replica_nodes),
        tuple(told.isr_nodes),
        tuple(told.offline_replicas),
        ErrorCode.of(told.error_code),
    )
