"""The offsets that the groups of one shard have committed, by group and by topic."""

from collections.abc import Iterator, Mapping, Set

from barnabas.coordinator.groups.offsets.pending import PendingOffsets
from barnabas.coordinator.groups.offsets.record import CommittedOffset, OffsetKey
from barnabas.coordinator.groups.offsets.topic import TopicOffsets
from barnabas.wire.records.batch import NO_PRODUCER_ID

_NO_OFFSETS: Mapping[str, TopicOffsets] = {}
_NO_GROUPS: Set[str] = frozenset()


class _GroupOffsets(dict[str, TopicOffsets]):
    """The offsets of one group, by topic."""

    __slots__ = ("group_id",)

    def __init__(self, group_id: str) -> None:
        self.group_id = group_id


class _TopicGroups(set[str]):
    """The groups that have committed offsets of one topic."""

    __slots__ = ("topic",)

    def __init__(self, topic: str) -> None:
        self.topic = topic


class OffsetStore:
    """Committed offsets and those of open transactions. Only replayed records change them."""

    __slots__ = ("_by_group", "_by_topic", "count", "pending")

    def __init__(self) -> None:
        self.count = 0
        """The number of committed offsets."""
        self.pending = PendingOffsets()
        self._by_group: dict[str, _GroupOffsets] = {}
        self._by_topic: dict[str, _TopicGroups] = {}

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        offsets = self.of(group_id).get(topic)
        return offsets.get(partition) if offsets is not None else None

    def of(self, group_id: str) -> Mapping[str, TopicOffsets]:
        """Returns the committed offsets of a group, by topic."""
        return self._by_group.get(group_id, _NO_OFFSETS)

    def has(self, key: OffsetKey) -> bool:
        """Whether there is an offset, committed or pending."""
        return key in self.pending.by_key or self.get(*key) is not None

    def has_any(self, group_id: str) -> bool:
        """Whether a group has any offset, committed or pending."""
        return group_id in self._by_group or bool(self.pending.of_group(group_id))

    def keys_of(self, group_id: str) -> Iterator[OffsetKey]:
        """Yields the keys of all offsets of a group, committed or pending."""
        for topic, offsets in self.of(group_id).items():
            for partition, _ in offsets:
                yield OffsetKey(group_id, topic, partition)
        for key in self.pending.of_group(group_id):
            if self.get(*key) is None:
                yield key

    def groups_of(self, topic: str) -> Set[str]:
        """Returns the groups that have committed offsets of a topic."""
        return self._by_topic.get(topic, _NO_GROUPS)

    def put(
        self, key: OffsetKey, committed: CommittedOffset, producer_id: int = NO_PRODUCER_ID
    ) -> None:
        """Stores an offset; as a pending one if it is part of a producer's transaction."""
        if producer_id != NO_PRODUCER_ID:
            self.pending.put(producer_id, key, committed)
            return
        if self.pending.by_key:
            self.pending.supersede(key)
        self._put_committed(key, committed)

    def remove(self, key: OffsetKey) -> None:
        """Deletes an offset, and those of open transactions for the same key."""
        self.pending.drop(key)
        group_id, topic, partition = key
        topics = self._by_group.get(group_id)
        offsets = topics.get(topic) if topics is not None else None
        if topics is None or offsets is None:
            return
        self.count -= offsets.remove(partition)
        if not offsets:
            self._remove_topic(topics, topic)

    def end_transaction(self, producer_id: int, committed: bool) -> None:
        for key, offset in self.pending.end(producer_id, committed):
            self._put_committed(key, offset)

    def _put_committed(self, key: OffsetKey, committed: CommittedOffset) -> None:
        group_id, topic, partition = key
        topics = self._by_group.get(group_id)
        if topics is None:
            topics = self._by_group[group_id] = _GroupOffsets(group_id)
        offsets = topics.get(topic)
        if offsets is None:
            offsets = self._add_topic(topics, topic)
        self.count += offsets.put(partition, committed)

    def _add_topic(self, topics: _GroupOffsets, topic: str) -> TopicOffsets:
        """Adds the first offset of a group in a topic. All groups share one string of the name."""
        groups = self._by_topic.get(topic)
        if groups is None:
            groups = self._by_topic[topic] = _TopicGroups(topic)
        groups.add(topics.group_id)
        offsets = topics[groups.topic] = TopicOffsets()
        return offsets

    def _remove_topic(self, topics: _GroupOffsets, topic: str) -> None:
        """Removes a topic in which a group has no offset left."""
        del topics[topic]
        if not topics:
            del self._by_group[topics.group_id]
        groups = self._by_topic[topic]
        groups.remove(topics.group_id)
        if not groups:
            del self._by_topic[topic]
