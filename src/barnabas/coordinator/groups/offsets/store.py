"""The offsets that the groups of one shard have committed, and those of open transactions."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Set
from itertools import takewhile
from typing import TypeVar

from barnabas.coordinator.groups.offsets import _topic_offsets
from barnabas.coordinator.groups.offsets._topic_offsets import TopicOffsets
from barnabas.coordinator.groups.offsets.record import CommittedOffset, OffsetKey, read_names
from barnabas.coordinator.records import EncodedRecord
from barnabas.wire.records.batch import NO_PRODUCER_ID

_NO_OFFSETS: Mapping[str, TopicOffsets] = {}
_NO_GROUPS: Set[str] = frozenset()


K = TypeVar("K", bound=Hashable)


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

    def put_plain(
        self,
        records: list[EncodedRecord],
        start: int,
        ensure_group: Callable[[str, int], None],
    ) -> int:
        """Stores committed offsets from index `start` on, without an object for each.

        Ends at a record that is not a plain commit, and returns its index. While transactions have
        pending offsets, no commit is plain. `ensure_group` is called with each group, and the
        timestamp of its commit.
        """

        def topic_offsets(names: bytes, timestamp: int) -> TopicOffsets:
            group_id, topic = read_names(names)
            ensure_group(group_id, timestamp)
            return self._ensure_topic(group_id, topic)

        if self.pending.by_key:
            return start
        end, added = _topic_offsets.put_plain(records, start, topic_offsets)
        self.count += added
        return end

    def put_packed(self, group_id: str, topic: str, topic_id: bytes, entries: bytes) -> None:
        """Stores committed offsets that are packed; no transaction may have pending offsets."""
        offsets = self._ensure_topic(group_id, topic)
        self.count += _topic_offsets.put_packed(offsets, entries, topic_id)

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
        self.count += self._ensure_topic(group_id, topic).put(partition, committed)

    def _ensure_topic(self, group_id: str, topic: str) -> TopicOffsets:
        topics = self._by_group.get(group_id)
        if topics is None:
            topics = self._by_group[group_id] = _GroupOffsets(group_id)
        offsets = topics.get(topic)
        return self._add_topic(topics, topic) if offsets is None else offsets

    def _add_topic(self, topics: _GroupOffsets, topic: str) -> TopicOffsets:
        """Adds a topic to those of a group. All groups share one string of the name."""
        groups = self._by_topic.get(topic)
        if groups is None:
            groups = self._by_topic[topic] = _TopicGroups(topic)
        groups.add(topics.group_id)
        offsets = topics[groups.topic] = _topic_offsets.TopicOffsets()
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


class PendingOffsets:
    """The offsets of open transactions.

    The later commit in the log wins, whether it is part of a transaction or not. An offset that is
    superseded stays pending until its transaction ends, without a value.
    """

    __slots__ = ("_keys_by_group", "_keys_by_producer", "by_key")

    def __init__(self) -> None:
        self.by_key: dict[OffsetKey, dict[int, CommittedOffset | None]] = {}
        """The pending offsets by producer id, in the order of the log; None where superseded."""
        self._keys_by_group: dict[str, set[OffsetKey]] = {}
        self._keys_by_producer: dict[int, set[OffsetKey]] = {}

    def of_group(self, group_id: str) -> Set[OffsetKey]:
        return self._keys_by_group.get(group_id, frozenset())

    def put(self, producer_id: int, key: OffsetKey, committed: CommittedOffset) -> None:
        by_producer = self.by_key.setdefault(key, {})
        by_producer.pop(producer_id, None)
        by_producer[producer_id] = committed
        self._keys_by_group.setdefault(key.group, set()).add(key)
        self._keys_by_producer.setdefault(producer_id, set()).add(key)

    def supersede(self, key: OffsetKey) -> None:
        """An offset was committed outside of transactions, after all that are pending."""
        by_producer = self.by_key.get(key)
        if by_producer is not None:
            self.by_key[key] = dict.fromkeys(by_producer)

    def drop(self, key: OffsetKey) -> None:
        """The offset was deleted, and with it those that are pending."""
        for producer_id in self.by_key.pop(key, ()):
            _discard(self._keys_by_producer, producer_id, key)
        _discard(self._keys_by_group, key.group, key)

    def end(self, producer_id: int, committed: bool) -> list[tuple[OffsetKey, CommittedOffset]]:
        """The producer's transaction ended. Returns the offsets that it committed."""
        keys = self._keys_by_producer.pop(producer_id, set())
        taken = [(key, self._take(key, producer_id, committed)) for key in keys]
        return [(key, offset) for key, offset in taken if offset is not None]

    def _take(self, key: OffsetKey, producer_id: int, committed: bool) -> CommittedOffset | None:
        by_producer = self.by_key[key]
        offset = by_producer[producer_id] if committed else None
        if offset is not None:
            for earlier in takewhile(lambda other: other != producer_id, by_producer):
                by_producer[earlier] = None
        del by_producer[producer_id]
        if not by_producer:
            del self.by_key[key]
            _discard(self._keys_by_group, key.group, key)
        return offset


def _discard(keys_by: dict[K, set[OffsetKey]], name: K, key: OffsetKey) -> None:
    keys = keys_by.get(name)
    if keys is not None:
        keys.discard(key)
        if not keys:
            del keys_by[name]
