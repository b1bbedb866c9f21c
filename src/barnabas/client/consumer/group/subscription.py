"""Subscriptions of a consumer, and the partitions of subscribed topics."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.client.cluster.metadata import MetadataSnapshot, TopicInfo
from barnabas.client.consumer.group.assignors import ClusterTopics
from barnabas.client.consumer.group.membership import ResolvedSubscription
from barnabas.client.errors import KafkaError, fail
from barnabas.wire.errors import ErrorCode

PATTERN_PREFIX = "^"


@dataclass(slots=True, frozen=True)
class Subscription:
    """The topics that the user subscribes to: names, and patterns of names."""

    names: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def parse(cls, topics: Sequence[str]) -> "Subscription":
        """Raises _INVALID_ARG for a pattern that is not a regular expression."""
        names = frozenset(topic for topic in topics if not topic.startswith(PATTERN_PREFIX))
        patterns = tuple(_compile(topic) for topic in topics if topic.startswith(PATTERN_PREFIX))
        return cls(names, patterns)

    def resolve(self, metadata: MetadataSnapshot, *, with_internal: bool) -> ResolvedSubscription:
        """Returns the names, and the existing topics that match the patterns."""
        if not self.patterns:
            return ResolvedSubscription(self.names)
        matching = frozenset(
            name
            for name, topic in metadata.topics.items()
            if not _is_missing(topic)
            and (with_internal or not topic.is_internal)
            and any(pattern.match(name) for pattern in self.patterns)
        )
        return ResolvedSubscription(self.names, self._one_pattern(), matching)

    def _one_pattern(self) -> str:
        """Returns one regular expression of all patterns, for coordinators that match them."""
        if len(self.patterns) == 1:
            return self.patterns[0].pattern
        return "|".join(f"({pattern.pattern})" for pattern in self.patterns)


def _compile(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        fail(KafkaError._INVALID_ARG, f"{pattern!r} is not a regular expression: {error}")


def partition_counts(
    metadata: MetadataSnapshot, topics: Iterable[str], previous: Mapping[str, int]
) -> dict[str, int]:
    """Returns the partition counts of topics; the previous count while a topic has an error."""
    counts: dict[str, int] = {}
    for name in topics:
        topic = metadata.topics.get(name)
        if topic is None or _is_missing(topic):
            counts[name] = 0
        elif topic.error:
            counts[name] = previous.get(name, 0)
        else:
            counts[name] = len(topic.partitions)
    return counts


def _is_missing(topic: TopicInfo) -> bool:
    """Whether the topic does not exist, or not for this consumer; other errors are temporary."""
    unknown = topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return unknown or bool(topic.error and not topic.error.retriable)


def topics_with_racks(counts: Mapping[str, int], metadata: MetadataSnapshot) -> ClusterTopics:
    """Returns topics with the racks of their replicas, if brokers have racks."""
    racks = {broker.node_id: broker.rack for broker in metadata.brokers.values() if broker.rack}
    if not racks:
        return ClusterTopics(counts)
    return ClusterTopics(
        counts,
        {
            (name, partition.index): frozenset(
                racks[replica] for replica in partition.replicas if replica in racks
            )
            for name in counts
            if name in metadata.topics
            for partition in metadata.topics[name].partitions
        },
    )
