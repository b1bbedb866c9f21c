"""The offsets a group has committed in one topic, packed: a few dozen bytes each would be many.

What nearly all offsets have is packed into 20 bytes; what few have (metadata, an expiry, the id
of another topic of that name) is kept beside. Partitions are gathered in pages of 64. A page has
a bit for each partition that has an offset, and as many entries, in the order of the partitions:
so an entry's place is the number of bits below its own.
"""

from collections.abc import Iterator
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple, TypeVar

from barnabas.coordinator.groups.offsets.record import NO_EXPIRY, CommittedOffset
from barnabas.wire.uuid import ZERO

PAGE = 64
"""Partitions to a page."""

_ENTRY = Struct(">qqi")  # offset, commit timestamp, leader epoch
_ENTRY_BYTES = _ENTRY.size

_new: Any = tuple.__new__
T = TypeVar("T", str, bytes)


class _Rarity(NamedTuple):
    """What an entry has no place for."""

    metadata: str
    expire_timestamp: int
    topic_id: bytes


class OffsetPage:
    """The offsets of up to 64 partitions that follow each other, by their place among these."""

    __slots__ = ("_entries", "_mask", "_rarities", "_topic_id")

    def __init__(self) -> None:
        self._mask = 0
        self._entries = b""
        self._rarities: dict[int, _Rarity] | None = None
        self._topic_id = ZERO

    def __len__(self) -> int:
        return self._mask.bit_count()

    def read(self, place: int) -> CommittedOffset | None:
        bit = 1 << place
        if not self._mask & bit:
            return None
        at = (self._mask & bit - 1).bit_count() * _ENTRY_BYTES
        return self._committed(place, *_ENTRY.unpack_from(self._entries, at))

    def read_all(self) -> Iterator[tuple[int, CommittedOffset]]:
        """Each place that has an offset, with that."""
        mask = self._mask
        for entry in _ENTRY.iter_unpack(self._entries):
            bit = mask & -mask
            mask ^= bit
            place = bit.bit_length() - 1
            yield place, self._committed(place, *entry)

    def write(self, place: int, committed: CommittedOffset) -> bool:
        """Set an offset; whether there was none."""
        offset, epoch, metadata, timestamp, expiry, topic_id = committed
        bit = 1 << place
        mask = self._mask
        if not mask & ~bit:
            self._topic_id = _shared(topic_id)
        if metadata or expiry != NO_EXPIRY or topic_id != self._topic_id:
            if self._rarities is None:
                self._rarities = {}
            self._rarities[place] = _Rarity(_shared(metadata), expiry, _shared(topic_id))
        elif self._rarities is not None:
            self._forget_rarity(place)
        is_new = not mask & bit
        at = (mask & bit - 1).bit_count() * _ENTRY_BYTES
        entries = self._entries
        entry = _ENTRY.pack(offset, timestamp, epoch)
        if at == len(entries):
            self._entries = entries + entry
        else:
            rest = entries[at if is_new else at + _ENTRY_BYTES :]
            self._entries = entries[:at] + entry + rest
        self._mask = mask | bit
        return is_new

    def erase(self, place: int) -> bool:
        """Forget an offset; whether there was one."""
        bit = 1 << place
        if not self._mask & bit:
            return False
        self._mask ^= bit
        at = (self._mask & bit - 1).bit_count() * _ENTRY_BYTES
        self._entries = self._entries[:at] + self._entries[at + _ENTRY_BYTES :]
        if self._rarities is not None:
            self._forget_rarity(place)
        return True

    def _committed(self, place: int, offset: int, timestamp: int, epoch: int) -> CommittedOffset:
        metadata, expiry, topic_id = "", NO_EXPIRY, self._topic_id
        if self._rarities is not None and place in self._rarities:
            metadata, expiry, topic_id = self._rarities[place]
        committed: CommittedOffset = _new(
            CommittedOffset, (offset, epoch, metadata, timestamp, expiry, topic_id)
        )
        return committed

    def _forget_rarity(self, place: int) -> None:
        assert self._rarities is not None
        self._rarities.pop(place, None)
        if not self._rarities:
            self._rarities = None


class TopicOffsets(OffsetPage):
    """All partitions of a topic: the first page itself, and those beyond it, if there are any."""

    __slots__ = ("_beyond",)

    def __init__(self) -> None:
        super().__init__()
        self._beyond: dict[int, OffsetPage] | None = None

    def __len__(self) -> int:
        return super().__len__() + sum(map(len, self._beyond.values() if self._beyond else ()))

    def __iter__(self) -> Iterator[tuple[int, CommittedOffset]]:
        """Each partition that has an offset, with that."""
        for first, page in self.pages():
            for place, committed in page.read_all():
                yield first + place, committed

    def pages(self) -> list[tuple[int, OffsetPage]]:
        """Each page, with the number of its first partition."""
        beyond = self._beyond or {}
        return [(0, self), *((number * PAGE, page) for number, page in beyond.items())]

    def get(self, partition: int) -> CommittedOffset | None:
        if 0 <= partition < PAGE:
            return self.read(partition)
        page = self._beyond.get(partition // PAGE) if self._beyond is not None else None
        return page.read(partition % PAGE) if page is not None else None

    def put(self, partition: int, committed: CommittedOffset) -> bool:
        """Set an offset; whether there was none."""
        if 0 <= partition < PAGE:
            return self.write(partition, committed)
        if self._beyond is None:
            self._beyond = {}
        page = self._beyond.get(partition // PAGE)
        if page is None:
            page = self._beyond[partition // PAGE] = OffsetPage()
        return page.write(partition % PAGE, committed)

    def remove(self, partition: int) -> bool:
        """Forget an offset; whether there was one."""
        if 0 <= partition < PAGE:
            return self.erase(partition)
        page = self._beyond.get(partition // PAGE) if self._beyond is not None else None
        if page is None or not page.erase(partition % PAGE):
            return False
        assert self._beyond is not None
        if not page:
            del self._beyond[partition // PAGE]
        return True


@lru_cache(maxsize=1024)
def _shared(value: T) -> T:
    """The same, and if it was met before, the one that was."""
    return value
