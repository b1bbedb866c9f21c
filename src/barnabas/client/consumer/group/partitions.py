"""Partitions grouped by topic, as most requests want them."""

from collections import defaultdict
from collections.abc import Iterable

from barnabas.client.values import TopicPartitionTuple


def by_topic(partitions: Iterable[TopicPartitionTuple]) -> dict[str, list[int]]:
    """The indexes of each topic's partitions; topics and indexes in order."""
    indexes: defaultdict[str, list[int]] = defaultdict(list)
    for topic, index in sorted(partitions):
        indexes[topic].append(index)
    return dict(indexes)
