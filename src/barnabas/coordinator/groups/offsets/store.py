"""The offsets that the groups of one shard have committed, found by group and by topic."""

from collections.abc import Iterator, Mapping, Set

from barnabas.coordinator.groups.offsets.pending import PendingOffsets
from barnabas.coordinator.groups.offsets.record import CommittedOffset, OffsetKey
from barnabas.coordinator.groups.offsets.topic import TopicOffsets
from barnabas.wire.records.batch import NO_PRODUCER_ID

_NO_OFFSETS: Mapping[str, TopicOffsets] = {}
_NO_GROUPS: Set[str] = frozenset()


class _GroupOffsets(dict[str, TopicOffsets]):
    """What one group has committed, by topic."""

    __slots__ = ("group_id",)

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id


class _TopicGroups(set[str]):
    """The groups that have committed offsets of one topic."""

    __slots__ = ("topic",)

    def __init__(self, topic: str) -> None:
        self.topic = topic


class OffsetStore:
    """Committed offsets, and those that wait for the end of a transaction.

    They change as records are replayed, and by nothing else.
    """

    __slots__ = ("_by_group", "_by_topic", "count", "pending")

    def __init__(self) -> None:
        self.count = 0
        """How many are committed."""
        self.pending = PendingOffsets()
        self._by_group: dict[str, _GroupOffsets] = {}
        self._by_topic: dict[str, _TopicGroups] = {}

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        offsets = self.of(group_id).get(topic)
        return offsets.get(partition) if offsets is not None else None

    def of(self, group_id: str) -> Mapping[str, TopicOffsets]:
        """What a group has committed, by topic."""
        return self._by_group.get(group_id, _NO_OFFSETS)

    def has(self, key: OffsetKey) -> bool:
        """Whether there is one, be it committed or pending."""
        return key in self.pending.by_key or self.get(*key) is not None

    def has_any(self, group_id: str) -> bool:
        """Whether a group has any at all, committed or pending."""
        return group_id in self._by_group or bool(self.pending.of_group(group_id))

    def keys_of(self, group_id: str) -> Iterator[OffsetKey]:
        """Everything that a group has an offset for, committed or pending."""
        for topic, offsets in self.of(group_id).items():
            for partition, _ in offsets:
                yield OffsetKey(group_id, topic, partition)
        for key in self.pending.of_group(group_id):
            if self.get(*key) is None:
                yield key

    def groups_of(self, topic: str) -> Set[str]:
        """The groups that have committed offsets of a topic."""
        return self._by_topic.get(topic, _NO_GROUPS)

    def put(
        self, key: OffsetKey, committed: CommittedOffset, producer_id: int = NO_PRODUCER_ID
    ) -> None:
        """An offset was committed; in a transaction of that producer's, if there is one."""
        if producer_id != NO_PRODUCER_ID:
            self.pending.put(producer_id, key, committed)
            return
        if self.pending.by_key:
            self.pending.overtake(key)
        self._settle(key, committed)

    def remove(self, key: OffsetKey) -> None:
        """An offset was deleted, and whatever waits to take its place."""
        self.pending.drop(key)
        group_id, topic, partition = key
        topics = self._by_group.get(group_id)
        offsets = topics.get(topic) if topics is not None else None
        if topics is None or offsets is None:
            return
        self.count -= offsets.remove(partition)
        if not offsets:
            self._forget(topics, topic)

    def end(self, producer_id: int, committed: bool) -> None:
        """A transaction ended."""
        for key, offset in self.pending.end(producer_id, committed):
            self._settle(key, offset)

    def _settle(self, key: OffsetKey, committed: CommittedOffset) -> None:
        group_id, topic, partition = key
        topics = self._by_group.get(group_id)
        if topics is None:
            topics = self._by_group[group_id] = _GroupOffsets(group_id)
        offsets = topics.get(topic)
        if offsets is None:
            offsets = self._begin(topics, topic)
        self.count += offsets.put(partition, committed)

    def _begin(self, topics: _GroupOffsets, topic: str) -> TopicOffsets:
        """A group's first offset of a topic. Of each name, one string is kept for all."""
        groups = self._by_topic.get(topic)
        if groups is None:
            groups = self._by_topic[topic] = _TopicGroups(topic)
        groups.add(topics.group_id)
        offsets = topics[groups.topic] = TopicOffsets()
        return offsets

    def _forget(self, topics: _GroupOffsets, topic: str) -> None:
        """A group's last offset of a topic is gone."""
        del topics[topic]
        if not topics:
            del self._by_group[topics.group_id]
        groups = self._by_topic[topic]
        groups.remove(topics.group_id)
        if not groups:
            del self._by_topic[topic]
