# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The offsets that a group has committed in one topic, packed to save memory.

The fields that nearly all offsets have are packed into 20 bytes. Rare fields (metadata, an expiry,
the id of another topic of that name) are stored separately. Partitions are grouped in pages of 64.
A page has one bit per slot that has an offset, and as many entries, in the order of the slots: the
index of an entry is the number of bits below its own.

A coordinator that loads its partition stores millions of offsets, so the file is compiled, or runs
as the Python it is. The fields of the classes are declared in `_topic_offsets.pxd`.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct

from barnabas.coordinator.groups.offsets.record import NO_EXPIRY, CommittedOffset
from barnabas.wire.uuid import ZERO

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcpy

    Room = cython.typedef(cython.pointer[cython.char])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)
    Mask = cython.typedef(cython.ulonglong)

_ENTRY = Struct(">qiq")  # offset, leader epoch, commit timestamp
_ENTRY_BYTES: Size = 20
_PACKED_BYTES: Size = 24  # an entry after its partition, as `_plain_commits.py` packs them
_PARTITIONS_PER_PAGE: Size = 64

# Plain commits, with type and version
_SMALLEST_KEY: Size = 10  # both names are empty
_KEY_TYPE: Size = 1
_VERSION: Size = 4
_NO_METADATA: Size = 1
_WITH_TOPIC_ID: Size = 42  # sizes of values
_WITHOUT_TOPIC_ID: Size = 24

_new = tuple.__new__  # takes half the time of a named tuple's own constructor


@cython.cclass
class OffsetPage:
    """The offsets of 64 consecutive partitions, by their slots 0 to 63."""

    def __init__(self) -> None:
        self.mask = 0
        self.entries = b""
        self.rare_fields = None
        self.topic_id = ZERO

    def __len__(self) -> int:
        return len(self.entries) // _ENTRY_BYTES

    def read(self, slot: Size) -> object:
        """Returns the committed offset of a slot, or None if it has none."""
        bit: Mask = _bit(slot)
        if not self.mask & bit:
            return None
        at: Size = _bit_count(self.mask & (bit - 1)) * _ENTRY_BYTES
        return self._committed(slot, _ENTRY.unpack_from(self.entries, at))

    def read_all(self) -> list:
        """Returns each slot that has an offset, with the offset."""
        slots = [slot for slot in range(_PARTITIONS_PER_PAGE) if self.mask & _bit(slot)]
        entries = _ENTRY.iter_unpack(self.entries)
        pairs = zip(slots, entries, strict=True)
        return [(slot, self._committed(slot, entry)) for slot, entry in pairs]

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def write(self, slot: Size, committed: object) -> cython.bint:
        """Stores an offset. Returns whether there was none."""
        offset, epoch, metadata, timestamp, expiry, topic_id = committed
        is_new = self.write_entry(slot, _ENTRY.pack(offset, epoch, timestamp), topic_id)
        if metadata or expiry != NO_EXPIRY:
            self._put_rare_fields(slot, metadata, expiry, topic_id)
        return is_new

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def write_entry(self, slot: Size, entry: bytes, topic_id: bytes) -> cython.bint:
        """Stores an offset without metadata and expiry. Returns whether there was none."""
        bit: Mask = _bit(slot)
        mask: Mask = self.mask
        entries: bytes = self.entries
        if not mask & ~bit:
            self.topic_id = _shared(topic_id)
        if topic_id != self.topic_id:
            self._put_rare_fields(slot, "", NO_EXPIRY, topic_id)
        elif self.rare_fields is not None:
            self._remove_rare_fields(slot)
        is_new: cython.bint = not mask & bit
        if is_new and bit > mask:
            self.entries = entries + entry
        else:
            at: Size = _bit_count(mask & (bit - 1)) * _ENTRY_BYTES
            rest: Size = at if is_new else at + _ENTRY_BYTES
            self.entries = entries[:at] + entry + entries[rest:]
        self.mask = mask | bit
        return is_new

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def is_of_topic(self, slot: Size, topic_id: bytes) -> cython.bint:
        """Whether the offset of a slot may be of the topic with that id; zero is any topic."""
        of_slot = self.topic_id
        if self.rare_fields is not None and slot in self.rare_fields:
            of_slot = self.rare_fields[slot][2]
        return topic_id == ZERO or of_slot in (ZERO, topic_id)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def has_plain(self, slot: Size, topic_id: bytes) -> cython.bint:
        """Whether the slot has an offset, and `overwrite` may replace it."""
        if not 0 <= slot < _PARTITIONS_PER_PAGE or not self.mask & _bit(slot):
            return False
        return self.rare_fields is None and self.topic_id == topic_id

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def overwrite(self, first: Size, packed: bytes, at: Size) -> Size:
        """Replaces offsets by those packed from a position on, while the page has their slots.

        `first` is the partition of slot 0. Returns the position after them.
        """
        mask: Mask = self.mask
        slot: Size = _int32(packed, at) - first
        target: Size
        if cython.compiled:
            entries = PyBytes_FromStringAndSize(self.entries, len(self.entries))  # not seen yet
            room: Room = entries
        else:
            entries = bytearray(self.entries)
        while 0 <= slot < _PARTITIONS_PER_PAGE and mask & _bit(slot):
            target = _bit_count(mask & (_bit(slot) - 1)) * _ENTRY_BYTES
            if cython.compiled:
                memcpy(
                    room + target,
                    cython.cast(cython.pointer[cython.char], packed) + at + 4,
                    _ENTRY_BYTES,
                )
            else:
                entries[target : target + _ENTRY_BYTES] = packed[at + 4 : at + _PACKED_BYTES]
            at += _PACKED_BYTES
            if at == len(packed):
                break
            slot = _int32(packed, at) - first
        self.entries = bytes(entries)
        return at

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def erase(self, slot: Size) -> cython.bint:
        """Removes an offset. Returns whether there was one."""
        bit: Mask = _bit(slot)
        if not self.mask & bit:
            return False
        self.mask ^= bit
        at: Size = _bit_count(self.mask & (bit - 1)) * _ENTRY_BYTES
        self.entries = self.entries[:at] + self.entries[at + _ENTRY_BYTES :]
        if self.rare_fields is not None:
            self._remove_rare_fields(slot)
        return True

    @cython.cfunc
    def _committed(self, slot: Size, entry: tuple) -> object:
        offset, epoch, timestamp = entry
        metadata, expiry, topic_id = "", NO_EXPIRY, self.topic_id
        if self.rare_fields is not None and slot in self.rare_fields:
            metadata, expiry, topic_id = self.rare_fields[slot]
        return _new(CommittedOffset, (offset, epoch, metadata, timestamp, expiry, topic_id))

    @cython.cfunc
    def _put_rare_fields(self, slot: Size, metadata: str, expiry: object, topic_id: bytes):
        if self.rare_fields is None:
            self.rare_fields = {}
        self.rare_fields[slot] = (_shared(metadata), expiry, _shared(topic_id))

    @cython.cfunc
    def _remove_rare_fields(self, slot: Size):
        self.rare_fields.pop(slot, None)
        if not self.rare_fields:
            self.rare_fields = None


@cython.cclass
class TopicOffsets(OffsetPage):
    """All partitions of a topic: the first page itself, and further pages if there are any."""

    def __init__(self) -> None:
        OffsetPage.__init__(self)
        self.more_pages = None

    def __len__(self) -> int:
        return sum([len(page.entries) // _ENTRY_BYTES for _, page in self.pages()])

    def __iter__(self) -> object:
        """Iterates over the partitions that have an offset, with their offsets."""
        return iter(
            [
                (first + slot, committed)
                for first, page in self.pages()
                for slot, committed in page.read_all()
            ]
        )

    def pages(self) -> list:
        """Returns each page with the number of its first partition."""
        pages: list = [(0, self)]
        if self.more_pages is not None:
            for number, page in self.more_pages.items():
                pages.append((number * _PARTITIONS_PER_PAGE, page))
        return pages

    def get(self, partition: Size) -> object:
        """Returns the committed offset of a partition, or None if it has none."""
        page: OffsetPage = self._page(partition)
        return None if page is None else page.read(partition % _PARTITIONS_PER_PAGE)

    def put(self, partition: Size, committed: object) -> bool:
        """Stores an offset. Returns whether there was none."""
        page: OffsetPage = self._ensure_page(partition)
        return page.write(partition % _PARTITIONS_PER_PAGE, committed)

    def remove(self, partition: Size) -> bool:
        """Removes an offset. Returns whether there was one."""
        page: OffsetPage = self._page(partition)
        if page is None or not page.erase(partition % _PARTITIONS_PER_PAGE):
            return False
        if page is not self and not page.mask:
            del self.more_pages[partition // _PARTITIONS_PER_PAGE]
        return True

    @cython.cfunc
    def _page(self, partition: Size) -> OffsetPage:
        if 0 <= partition < _PARTITIONS_PER_PAGE:
            return self
        if self.more_pages is None:
            return None
        return self.more_pages.get(partition // _PARTITIONS_PER_PAGE)

    @cython.cfunc
    def _ensure_page(self, partition: Size) -> OffsetPage:
        page: OffsetPage = self._page(partition)
        if page is None:
            if self.more_pages is None:
                self.more_pages = {}
            page = self.more_pages[partition // _PARTITIONS_PER_PAGE] = OffsetPage()
        return page


def put_plain(pairs: list, start: Size, topic_offsets: object) -> tuple[int, int]:
    """Stores the offsets of plain commits from index `start` on, up to a record of another kind.

    A plain commit has no metadata, and is in the version that Kafka 4.3 writes; `record.py` has
    the layout. `topic_offsets(names, timestamp)` returns where the offsets of a group and a topic
    are stored. It is not called again while the names stay the same, as they often do. Returns the
    index of the record of another kind, and the number of offsets that are new.
    """
    index: Size
    partition: Size
    names_end: Size
    key: bytes
    value: bytes
    entry: bytes
    topic_id: bytes
    names: bytes = b""
    offsets: TopicOffsets = None
    page: OffsetPage
    added: Long = 0
    for index in range(start, len(pairs)):
        key, value = pairs[index]
        if key is None or value is None or not _is_plain(key, value):
            return index, added
        names_end = len(key) - 4
        if offsets is None or key[2:names_end] != names:
            names = key[2:names_end]
            offsets = topic_offsets(names, int.from_bytes(value[15:23], "big", signed=True))
        partition = _int32(key, names_end)
        page = offsets._ensure_page(partition)
        entry = value[2:14] + value[15:23]
        topic_id = value[26:] if len(value) == _WITH_TOPIC_ID else ZERO
        added += page.write_entry(partition % _PARTITIONS_PER_PAGE, entry, topic_id)
    return len(pairs), added


def list_offsets(
    offsets: TopicOffsets | None, partitions: list, topic_id: bytes, response_type: object
) -> list:
    """Returns the partitions of an OffsetFetch response, with -1 for those without an offset.

    With a topic id other than zero, an offset of another topic of that name is none.
    """
    partition: Size
    slot: Size
    bit: Mask
    at: Size
    page: OffsetPage
    listed: list = []
    offset: Long
    epoch: Long
    for partition in partitions:
        page = None if offsets is None else offsets._page(partition)
        offset, epoch, metadata = -1, -1, ""
        if page is not None:
            slot = partition % _PARTITIONS_PER_PAGE
            bit = _bit(slot)
            if page.mask & bit and page.is_of_topic(slot, topic_id):
                at = _bit_count(page.mask & (bit - 1)) * _ENTRY_BYTES
                offset = _int32(page.entries, at) * 0x100000000 + (
                    _int32(page.entries, at + 4) & 0xFFFFFFFF
                )
                epoch = _int32(page.entries, at + 8)
                if page.rare_fields is not None and slot in page.rare_fields:
                    metadata = page.rare_fields[slot][0]
        listed.append(
            response_type(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=epoch,
                metadata=metadata,
            )
        )
    return listed


def put_packed(offsets: TopicOffsets, packed: bytes, topic_id: bytes) -> int:
    """Stores the offsets of a commit, which `_plain_commits.py` has packed.

    Returns the number of offsets that are new.
    """
    added: Long = 0
    at: Size = 0
    partition: Size
    slot: Size
    page: OffsetPage
    while at < len(packed):
        partition = _int32(packed, at)
        slot = partition % _PARTITIONS_PER_PAGE
        page = offsets._ensure_page(partition)
        if page.has_plain(slot, topic_id):
            at = page.overwrite(partition - slot, packed, at)
        else:
            added += page.write_entry(slot, packed[at + 4 : at + _PACKED_BYTES], topic_id)
            at += _PACKED_BYTES
    return added


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _is_plain(key: bytes, value: bytes) -> cython.bint:
    if len(key) < _SMALLEST_KEY or key[0] != 0 or key[1] != _KEY_TYPE:
        return False
    if len(value) == _WITH_TOPIC_ID:
        if value[23] != 1 or value[24] != 0 or value[25] != 16:  # one tag, number 0, its size
            return False
    elif len(value) != _WITHOUT_TOPIC_ID or value[23] != 0:
        return False
    return value[0] == 0 and value[1] == _VERSION and value[14] == _NO_METADATA


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _int32(data: bytes, at: Size) -> Size:
    """Returns the signed big-endian integer at a position."""
    value: Size = data[at] - ((data[at] & 0x80) << 1)
    # A negative number must not be shifted to the left.
    return value * 0x1000000 + (data[at + 1] << 16 | data[at + 2] << 8 | data[at + 3])


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _bit(slot: Size) -> Mask:
    one: Mask = 1
    return one << slot


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _bit_count(mask: Mask) -> Size:
    if not cython.compiled:
        return mask.bit_count()
    count: Size = 0
    while mask:
        mask &= mask - 1
        count += 1
    return count


@lru_cache(maxsize=1024)
def _shared(value: object) -> object:
    """Returns an equal object that is shared with earlier callers."""
    return value
