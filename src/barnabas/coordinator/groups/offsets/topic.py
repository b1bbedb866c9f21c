"""The offsets that a group has committed in one topic, packed to save memory.

The fields that nearly all offsets have are packed into 20 bytes. Rare fields (metadata, an expiry,
the id of another topic of that name) are stored separately. Partitions are grouped in pages of 64.
A page has one bit per slot that has an offset, and as many entries, in the order of the slots: the
index of an entry is the number of bits below its own.
"""

from collections.abc import Iterator
from functools import lru_cache
from struct import Struct
from typing import Any, NamedTuple, TypeVar

from barnabas.coordinator.groups.offsets.record import NO_EXPIRY, CommittedOffset
from barnabas.wire.uuid import ZERO

PARTITIONS_PER_PAGE = 64

_ENTRY = Struct(">qqi")  # offset, commit timestamp, leader epoch
_ENTRY_BYTES = _ENTRY.size

_new: Any = tuple.__new__
T = TypeVar("T", str, bytes)


class _RareFields(NamedTuple):
    """The fields that an entry does not have."""

    metadata: str
    expire_timestamp: int
    topic_id: bytes


class OffsetPage:
    """The offsets of 64 consecutive partitions, by their slots 0 to 63."""

    __slots__ = ("_entries", "_mask", "_rare_fields", "_topic_id")

    def __init__(self) -> None:
        self._mask = 0
        self._entries = b""
        self._rare_fields: dict[int, _RareFields] | None = None
        self._topic_id = ZERO

    def __len__(self) -> int:
        return self._mask.bit_count()

    def read(self, slot: int) -> CommittedOffset | None:
        bit = 1 << slot
        if not self._mask & bit:
            return None
        at = (self._mask & bit - 1).bit_count() * _ENTRY_BYTES
        return self._committed(slot, *_ENTRY.unpack_from(self._entries, at))

    def read_all(self) -> Iterator[tuple[int, CommittedOffset]]:
        """Yields each slot that has an offset, with the offset."""
        mask = self._mask
        for entry in _ENTRY.iter_unpack(self._entries):
            bit = mask & -mask
            mask ^= bit
            slot = bit.bit_length() - 1
            yield slot, self._committed(slot, *entry)

    def write(self, slot: int, committed: CommittedOffset) -> bool:
        """Stores an offset. Returns whether there was none."""
        offset, epoch, metadata, timestamp, expiry, topic_id = committed
        bit = 1 << slot
        mask = self._mask
        if not mask & ~bit:
            self._topic_id = _shared(topic_id)
        if metadata or expiry != NO_EXPIRY or topic_id != self._topic_id:
            if self._rare_fields is None:
                self._rare_fields = {}
            self._rare_fields[slot] = _RareFields(_shared(metadata), expiry, _shared(topic_id))
        elif self._rare_fields is not None:
            self._remove_rare_fields(slot)
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

    def erase(self, slot: int) -> bool:
        """Removes an offset. Returns whether there was one."""
        bit = 1 << slot
        if not self._mask & bit:
            return False
        self._mask ^= bit
        at = (self._mask & bit - 1).bit_count() * _ENTRY_BYTES
        self._entries = self._entries[:at] + self._entries[at + _ENTRY_BYTES :]
        if self._rare_fields is not None:
            self._remove_rare_fields(slot)
        return True

    def _committed(self, slot: int, offset: int, timestamp: int, epoch: int) -> CommittedOffset:
        metadata, expiry, topic_id = "", NO_EXPIRY, self._topic_id
        if self._rare_fields is not None and slot in self._rare_fields:
            metadata, expiry, topic_id = self._rare_fields[slot]
        committed: CommittedOffset = _new(
            CommittedOffset, (offset, epoch, metadata, timestamp, expiry, topic_id)
        )
        return committed

    def _remove_rare_fields(self, slot: int) -> None:
        assert self._rare_fields is not None
        self._rare_fields.pop(slot, None)
        if not self._rare_fields:
            self._rare_fields = None


class TopicOffsets(OffsetPage):
    """All partitions of a topic: the first page itself, and further pages if there are any."""

    __slots__ = ("_more_pages",)

    def __init__(self) -> None:
        super().__init__()
        self._more_pages: dict[int, OffsetPage] | None = None

    def __len__(self) -> int:
        return super().__len__() + sum(
            map(len, self._more_pages.values() if self._more_pages else ())
        )

    def __iter__(self) -> Iterator[tuple[int, CommittedOffset]]:
        """Yields each partition that has an offset, with the offset."""
        for first, page in self.pages():
            for slot, committed in page.read_all():
                yield first + slot, committed

    def pages(self) -> list[tuple[int, OffsetPage]]:
        """Returns each page with the number of its first partition."""
        more = self._more_pages or {}
        return [(0, self), *((number * PARTITIONS_PER_PAGE, page) for number, page in more.items())]

    def get(self, partition: int) -> CommittedOffset | None:
        if 0 <= partition < PARTITIONS_PER_PAGE:
            return self.read(partition)
        page = (
            self._more_pages.get(partition // PARTITIONS_PER_PAGE)
            if self._more_pages is not None
            else None
        )
        return page.read(partition % PARTITIONS_PER_PAGE) if page is not None else None

    def put(self, partition: int, committed: CommittedOffset) -> bool:
        """Stores an offset. Returns whether there was none."""
        if 0 <= partition < PARTITIONS_PER_PAGE:
            return self.write(partition, committed)
        if self._more_pages is None:
            self._more_pages = {}
        page = self._more_pages.get(partition // PARTITIONS_PER_PAGE)
        if page is None:
            page = self._more_pages[partition // PARTITIONS_PER_PAGE] = OffsetPage()
        return page.write(partition % PARTITIONS_PER_PAGE, committed)

    def remove(self, partition: int) -> bool:
        """Removes an offset. Returns whether there was one."""
        if 0 <= partition < PARTITIONS_PER_PAGE:
            return self.erase(partition)
        page = (
            self._more_pages.get(partition // PARTITIONS_PER_PAGE)
            if self._more_pages is not None
            else None
        )
        if page is None or not page.erase(partition % PARTITIONS_PER_PAGE):
            return False
        assert self._more_pages is not None
        if not page:
            del self._more_pages[partition // PARTITIONS_PER_PAGE]
        return True


@lru_cache(maxsize=1024)
def _shared(value: T) -> T:
    """Returns an equal object that is shared with earlier callers."""
    return value
