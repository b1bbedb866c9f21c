"""Values of the public API that all clients share, as in `confluent_kafka`."""

import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas.client.errors import KafkaError

OFFSET_BEGINNING = -2
OFFSET_END = -1
OFFSET_STORED = -1000
OFFSET_INVALID = -1001

TIMESTAMP_NOT_AVAILABLE = 0
TIMESTAMP_CREATE_TIME = 1
TIMESTAMP_LOG_APPEND_TIME = 2

PartitionKey = tuple[str, int]
"""A topic name and a partition, as a key of the clients' own dictionaries."""


@functools.total_ordering
class TopicPartition:
    """A partition with an offset.

    Equal to every other of the same topic and partition, whatever the offset.
    """

    __slots__ = ("error", "leader_epoch", "metadata", "offset", "partition", "topic")

    def __init__(
        self,
        topic: str,
        partition: int = -1,
        offset: int = OFFSET_INVALID,
        metadata: str | None = None,
        leader_epoch: int | None = None,
    ) -> None:
        if not isinstance(topic, str):
            raise TypeError(f"topic must be str, not {type(topic).__name__}")
        self.topic = topic
        self.partition = operator.index(partition)
        self.offset = operator.index(offset)
        self.metadata = metadata
        self.leader_epoch = leader_epoch
        self.error: KafkaError | None = None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TopicPartition):
            return NotImplemented
        return (self.topic, self.partition) == (other.topic, other.partition)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, TopicPartition):
            return NotImplemented
        return (self.topic, self.partition) < (other.topic, other.partition)

    def __hash__(self) -> int:
        return hash((self.topic, self.partition))

    def __repr__(self) -> str:
        return (
            f"TopicPartition{{topic={self.topic},partition={self.partition},offset={self.offset},"
            f"leader_epoch={self.leader_epoch},error={self.error}}}"
        )


@dataclass(slots=True, frozen=True)
class PreparedTransaction:
    """A transaction whose records are all written: any process with it can commit or abort it."""

    transactional_id: str
    producer_id: int
    epoch: int


class ConsumerGroupMetadata:
    """A consumer's membership in its group; a transactional producer sends it with offsets."""

    __slots__ = ("generation_id", "group_id", "group_instance_id", "member_id")

    def __init__(
        self,
        group_id: str,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id  # the member epoch in the consumer protocol
        self.member_id = member_id
        self.group_instance_id = group_instance_id


class ThrottleEvent:
    """A broker delayed a response because a quota was exceeded; `throttle_time` is in seconds."""

    __slots__ = ("broker_id", "broker_name", "throttle_time")

    def __init__(self, broker_name: str, broker_id: int, throttle_time: float) -> None:
        self.broker_name = broker_name
        self.broker_id = broker_id
        self.throttle_time = throttle_time

    def __str__(self) -> str:
        throttle_ms = int(self.throttle_time * 1000)
        return f"{self.broker_name}/{self.broker_id} throttled for {throttle_ms} ms"


def group_by_topic(partitions: Iterable[PartitionKey]) -> dict[str, list[int]]:
    """Returns the indexes of partitions by topic, as requests list them."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    return topics
