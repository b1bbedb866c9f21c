"""The partitions of a fetch session that changed since they were last read.

A session may contain hundreds of partitions, of which a few change between two fetches. Partitions
that were read to their end are caught up: they are not read again before a change notifies them,
so that the cost of a fetch grows with what changed.
"""

from collections.abc import Hashable, Iterable, KeysView
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.server.fetching.fetch_session import SessionPartition


class ChangeNotifier(Protocol):
    """Notifies watchers about changes of keys: the purgatory."""

    def watch(self, key: Hashable, watcher: "DirtyPartitions") -> None: ...

    def unwatch(self, key: Hashable, watcher: "DirtyPartitions") -> None: ...

    def notify(self, key: Hashable, readable_bytes: int = 0) -> None: ...


class DirtyPartitions:
    """The partitions of a session that its next fetch must read.

    A delayed fetch of the session watches this object itself.
    """

    __slots__ = ("_by_key", "_dirty", "_is_closed", "_notifier")

    def __init__(self, partitions: Iterable["SessionPartition"]) -> None:
        self._dirty = dict.fromkeys(partitions)
        self._by_key: dict[Hashable, SessionPartition] = {}
        self._notifier: ChangeNotifier | None = None
        self._is_closed = False

    @property
    def partitions(self) -> KeysView["SessionPartition"]:
        """The dirty partitions, in the order in which they are read."""
        return self._dirty.keys()

    def take_all(self) -> list["SessionPartition"]:
        """Returns the dirty partitions, which are no longer dirty from then on."""
        dirty = list(self._dirty)
        self._dirty.clear()
        return dirty

    def mark_dirty(self, partition: "SessionPartition") -> None:
        """Makes the next fetch read a partition, also if it was caught up."""
        self._dirty[partition] = None

    def watch(
        self, partition: "SessionPartition", keys: tuple[Hashable, ...], notifier: ChangeNotifier
    ) -> None:
        """Marks a partition dirty when one of `keys` changes.

        A change of the first key also notifies the delayed fetch of the session.
        """
        if partition.watched_keys == keys or self._is_closed:
            return
        self._unwatch(partition)
        self._notifier = notifier
        partition.watched_keys = keys
        for key in keys:
            self._by_key[key] = partition
            notifier.watch(key, self)

    def remove(self, partition: "SessionPartition") -> None:
        self._dirty.pop(partition, None)
        self._unwatch(partition)

    def close(self) -> None:
        """Called when the session ends."""
        self._is_closed = True
        for key in self._by_key:
            assert self._notifier is not None
            self._notifier.unwatch(key, self)
        self._by_key.clear()

    def on_change(self, key: Hashable, _: int) -> bool:
        partition = self._by_key[key]
        self._dirty[partition] = None
        if self._notifier is not None and key is partition.watched_keys[0]:
            self._notifier.notify(self)
        return False

    def complete(self, satisfied: bool) -> None:
        """Does nothing: the session continues to watch."""

    def _unwatch(self, partition: "SessionPartition") -> None:
        for key in partition.watched_keys:
            self._by_key.pop(key, None)
            assert self._notifier is not None
            self._notifier.unwatch(key, self)
        partition.watched_keys = ()
