"""Offsets that were committed in transactions which have not ended yet."""

from collections.abc import Hashable, Set
from itertools import takewhile
from typing import TypeVar

from barnabas.coordinator.groups.offsets.record import CommittedOffset, OffsetKey

K = TypeVar("K", bound=Hashable)


class PendingOffsets:
    """What producers have committed, for as long as nobody knows whether it counts.

    A commit that came later in the log wins, whether it was part of a transaction or not: one
    that is overtaken still waits for its end, but for nothing.
    """

    __slots__ = ("_keys_by_group", "_keys_by_producer", "by_key")

    def __init__(self) -> None:
        self.by_key: dict[OffsetKey, dict[int, CommittedOffset | None]] = {}
        """What waits by producer id, in the order of the log; None for what was overtaken."""
        self._keys_by_group: dict[str, set[OffsetKey]] = {}
        self._keys_by_producer: dict[int, set[OffsetKey]] = {}

    def of_group(self, group_id: str) -> Set[OffsetKey]:
        return self._keys_by_group.get(group_id, frozenset())

    def put(self, producer_id: int, key: OffsetKey, committed: CommittedOffset) -> None:
        waiting = self.by_key.setdefault(key, {})
        waiting.pop(producer_id, None)
        waiting[producer_id] = committed
        self._keys_by_group.setdefault(key.group, set()).add(key)
        self._keys_by_producer.setdefault(producer_id, set()).add(key)

    def overtake(self, key: OffsetKey) -> None:
        """A commit outside of transactions came after all that wait."""
        waiting = self.by_key.get(key)
        if waiting is not None:
            self.by_key[key] = dict.fromkeys(waiting)

    def drop(self, key: OffsetKey) -> None:
        """The offset was deleted, and with it what waits."""
        for producer_id in self.by_key.pop(key, ()):
            _discard(self._keys_by_producer, producer_id, key)
        _discard(self._keys_by_group, key.group, key)

    def end(self, producer_id: int, committed: bool) -> list[tuple[OffsetKey, CommittedOffset]]:
        """The producer's transaction ended; the offsets that count from now on."""
        keys = self._keys_by_producer.pop(producer_id, set())
        taken = [(key, self._take(key, producer_id, committed)) for key in keys]
        return [(key, offset) for key, offset in taken if offset is not None]

    def _take(self, key: OffsetKey, producer_id: int, committed: bool) -> CommittedOffset | None:
        waiting = self.by_key[key]
        offset = waiting[producer_id] if committed else None
        if offset is not None:
            for earlier in takewhile(lambda other: other != producer_id, waiting):
                waiting[earlier] = None
        del waiting[producer_id]
        if not waiting:
            del self.by_key[key]
            _discard(self._keys_by_group, key.group, key)
        return offset


def _discard(keys_by: dict[K, set[OffsetKey]], name: K, key: OffsetKey) -> None:
    keys = keys_by.get(name)
    if keys is not None:
        keys.discard(key)
        if not keys:
            del keys_by[name]
