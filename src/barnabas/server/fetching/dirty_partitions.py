"""What has moved among the partitions of a fetch session, noted between its fetches.

A session may follow hundreds of partitions, of which a few have news. Those that were read to
their end are at rest: they are not looked at again before something pokes them, so that a fetch
costs by the news.
"""

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.server.fetching.fetch_session import SessionPartition


class Pokes(Protocol):
    """Where what moves is told of, by key."""

    def watch(self, key: Hashable, watcher: "Stirred") -> None: ...

    def unwatch(self, key: Hashable, watcher: "Stirred") -> None: ...

    def poke(self, key: Hashable, readable_bytes: int = 0) -> None: ...


class Stirred:
    """The partitions of a session that its next fetch must look at.

    A fetch that waits for them is parked at this object itself.
    """

    __slots__ = ("_by_key", "_is_over", "_pokes", "_unread")

    def __init__(self, partitions: Iterable["SessionPartition"]) -> None:
        self._unread = dict.fromkeys(partitions)
        self._by_key: dict[Hashable, SessionPartition] = {}
        self._pokes: Pokes | None = None
        self._is_over = False

    def take(self) -> list["SessionPartition"]:
        """All that are to be read, and from here on count as read."""
        unread = list(self._unread)
        self._unread.clear()
        return unread

    def stir(self, wanted: "SessionPartition") -> None:
        """Whatever it was read before, it is to be read again."""
        self._unread[wanted] = None

    def watch(self, wanted: "SessionPartition", keys: tuple[Hashable, ...], pokes: Pokes) -> None:
        """Stir a partition when one of `keys` is poked; the first of them ends a wait, too."""
        if wanted.watched == keys or self._is_over:
            return
        self._unwatch(wanted)
        self._pokes = pokes
        wanted.watched = keys
        for key in keys:
            self._by_key[key] = wanted
            pokes.watch(key, self)

    def forget(self, wanted: "SessionPartition") -> None:
        self._unread.pop(wanted, None)
        self._unwatch(wanted)

    def close(self) -> None:
        """The session is over."""
        self._is_over = True
        for key in self._by_key:
            assert self._pokes is not None
            self._pokes.unwatch(key, self)
        self._by_key.clear()

    def take_note(self, key: Hashable, _: int) -> bool:
        wanted = self._by_key[key]
        self._unread[wanted] = None
        if self._pokes is not None and key is wanted.watched[0]:
            self._pokes.poke(self)
        return False

    def finish(self, satisfied: bool) -> None:
        """It goes on watching, whatever happens."""

    def _unwatch(self, wanted: "SessionPartition") -> None:
        for key in wanted.watched:
            self._by_key.pop(key, None)
            assert self._pokes is not None
            self._pokes.unwatch(key, self)
        wanted.watched = ()
