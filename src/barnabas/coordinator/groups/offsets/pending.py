"""Offsets committed in transactions that have not ended yet."""

from collections.abc import Hashable, Set
from itertools import takewhile
from typing import TypeVar

from barnabas.coordinator.groups.offsets.record import CommittedOffset, OffsetKey

K = TypeVar("K", bound=Hashable)


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
