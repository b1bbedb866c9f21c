"""Topics as a group sees them: those subscribed to, and their partitions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from barnabas.client.cluster.metadata import Metadata, TopicInfo
from barnabas.client.consumer.group.assignors import ClusterTopics
from barnabas.client.consumer.group.member import ResolvedSubscription
from barnabas.client.errors import KafkaError, fail
from barnabas.wire.errors import ErrorCode

PATTERN_PREFIX = "^"


@dataclass(slots=True, frozen=True)
class Subscription:
    """What the user subscribed to: names, and patterns of names."""

    names: frozenset[str] = frozenset()
    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def parse(cls, topics: Sequence[str]) -> "Subscription":
        """KafkaException _INVALID_ARG for a pattern that is none."""
        names = frozenset(topic for topic in topics if not topic.startswith(PATTERN_PREFIX))
        patterns = tuple(_compiled(topic) for topic in topics if topic.startswith(PATTERN_PREFIX))
        return cls(names, patterns)

    def resolve(self, metadata: Metadata, *, with_internal: bool) -> ResolvedSubscription:
        """The names, and the topics there are that the patterns match."""
        if not self.patterns:
            return ResolvedSubscription(self.names)
        matching = frozenset(
            name
            for name, topic in metadata.topics.items()
            if not _is_gone(topic)
            and (with_internal or not topic.is_internal)
            and any(pattern.match(name) for pattern in self.patterns)
        )
        return ResolvedSubscription(self.names, self._one_pattern(), matching)

    def _one_pattern(self) -> str:
        """All patterns as one, for coordinators that match themselves."""
        if len(self.patterns) == 1:
            return self.patterns[0].pattern
        return "|".join(f"({pattern.pattern})" for pattern in self.patterns)


def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        fail(KafkaError._INVALID_ARG, f"{pattern!r} is no regular expression: {error}")


def partition_counts(
    metadata: Metadata, topics: Iterable[str], before: Mapping[str, int]
) -> dict[str, int]:
    """How many partitions each topic has; as before while the brokers cannot say."""
    counts: dict[str, int] = {}
    for name in topics:
        topic = metadata.topics.get(name)
        if topic is None or _is_gone(topic):
            counts[name] = 0
        elif topic.error:
            counts[name] = before.get(name, 0)
        else:
            counts[name] = len(topic.partitions)
    return counts


def _is_gone(topic: TopicInfo) -> bool:
    """Whether it does not exist, or not for this consumer; other errors say that it does."""
    unknown = topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return unknown or bool(topic.error and not topic.error.retriable)


def topics_with_racks(counts: Mapping[str, int], metadata: Metadata) -> ClusterTopics:
    """The topics with the racks that their replicas are in, as far as brokers have any."""
    rack_of = {each.node_id: each.rack for each in metadata.brokers.values() if each.rack}
    if not rack_of:
        return ClusterTopics(counts)
    return ClusterTopics(
        counts,
        {
            (name, partition.index): frozenset(
                rack_of[replica] for replica in partition.replicas if replica in rack_of
            )
            for name in counts
            if name in metadata.topics
            for partition in metadata.topics[name].partitions
        },
    )
