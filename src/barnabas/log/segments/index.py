"""The indexes of a segment: offset to position, timestamp to offset, and aborted transactions.

An entry of the first two is written for a batch once `index.interval.bytes` of log have passed
since the entry before. New entries wait in memory and are written a few dozen at a time: a crash
may lose them, because recovery rebuilds the indexes of every segment that it scans. Reading maps
the file; writing never goes through the map, whose first store into a fresh page is expensive.

`.index`, 8 bytes an entry, by ascending offset:

     0  relative offset  int32   last offset of the batch, relative to the segment's base offset
     4  position         int32   where the batch begins in the log file

`.timeindex`, 12 bytes an entry, by ascending timestamp:

     0  timestamp        int64   the largest in the segment so far
     8  relative offset  int32   last offset of the batch that has it

`.txnindex`, 34 bytes for each abort marker, in the order of the markers; the file exists once there
is one:

     0  version             int16   0
     2  producer id         int64
    10  first offset        int64   of the transaction
    18  last offset         int64   of its abort marker
    26  last stable offset  int64   once the marker was appended
"""

import os
import struct
from itertools import pairwise
from typing import ClassVar, NamedTuple

from barnabas.log.segments._search import count_up_to
from barnabas.log.segments.log_files import TRANSACTION_INDEX, segment_path
from barnabas.log.segments.open_files import Handle, OpenFiles, OpenMap
from barnabas.wire.records.batch import NO_TIMESTAMP

_PENDING_ENTRIES = 64
_PAGE_ENTRIES = 256  # fewer than the entries of any index in a page of 4096 bytes
TRANSACTION_VERSION = 0
_LAST_OFFSET = 3  # the number of the field in an entry of `.txnindex`

Key = tuple[int, int]
"""Where in an entry a field begins, and its size."""

_RELATIVE_OFFSET: Key = (0, 4)
_POSITION: Key = (4, 4)
_TIMESTAMP: Key = (0, 8)
_OFFSET_OF_TIMESTAMP: Key = (8, 4)
_MARKER_OFFSET: Key = (18, 8)


class IndexFile:
    """The entries in the file, followed by those that are not written yet."""

    __slots__ = ("_files", "_folder", "_pending", "_written", "base_offset", "count", "handle")

    ENTRY: ClassVar[struct.Struct]
    KEY: ClassVar[int] = 0  # the field that ascends from entry to entry
    SUFFIX: ClassVar[str]

    def __init__(self, folder: str, base_offset: int, files: OpenFiles) -> None:
        self._folder = folder
        self._files = files
        self._pending = bytearray()
        self._written = -1  # entries in the file; -1 while there is no file
        self.count = 0
        self.base_offset = base_offset
        self.handle: Handle | None = None

    @property
    def path(self) -> str:
        return segment_path(self._folder, self.base_offset, self.SUFFIX)

    @property
    def is_on_disk(self) -> bool:
        return self._written >= 0

    def load(self) -> bool:
        """Reads the size of the file; returns False if it is missing or is not an index."""
        try:
            size_bytes = os.stat(self.path).st_size
        except FileNotFoundError:
            return False
        self._written, partial_bytes = divmod(size_bytes, self.ENTRY.size)
        self.count = self._written
        if partial_bytes:
            return False
        if self._written < 2:
            return True
        # A file that Kafka preallocated and did not trim before it crashed ends in zeros.
        last, before = self.entry(self._written - 1), self.entry(self._written - 2)
        return last[self.KEY] > before[self.KEY]

    def is_ascending(self) -> bool:
        """Returns False if the file lacks a page: after a power failure there may be zeros."""
        keys = [self.entry(number)[self.KEY] for number in range(0, self._written, _PAGE_ENTRIES)]
        return all(before < after for before, after in pairwise((0, *keys)))

    def flush(self) -> None:
        """Writes the pending entries to the file; creates the file if it is missing."""
        if self._written >= 0 and not self._pending:
            return
        written = max(self._written, 0)
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if os.pwrite(fd, self._pending, written * self.ENTRY.size) != len(self._pending):
                raise OSError(f"{self.path}: the entries were written only in part")
        finally:
            os.close(fd)
        self._written = written + len(self._pending) // self.ENTRY.size
        self._pending = bytearray()

    def clear(self) -> None:
        """Removes all entries."""
        self._truncate_to_count(0)

    def close(self) -> None:
        self._files.release(self)

    def entry(self, number: int) -> tuple[int, ...]:
        """Returns the fields of an entry as they are in the file."""
        size, written = self.ENTRY.size, max(self._written, 0)
        if number < written:
            return self.ENTRY.unpack_from(self._map().view, number * size)
        return self.ENTRY.unpack_from(self._pending, (number - written) * size)

    def _add(self, *fields: int) -> None:
        self._pending += self.ENTRY.pack(*fields)
        self.count += 1
        if len(self._pending) >= _PENDING_ENTRIES * self.ENTRY.size:
            try:
                self.flush()
            except OSError:
                # The log itself was written. The entries stay in memory; if the disk is really
                # failing, the next write of the log says so.
                return

    def _count_up_to(self, target: int, key: Key) -> int:
        """Returns how many entries have a key of at most `target`."""
        size, written = self.ENTRY.size, max(self._written, 0)
        pending = self._pending
        if pending:
            count = count_up_to(pending, len(pending) // size, size, *key, target)
            if count:
                return written + count
        return count_up_to(self._map().view, written, size, *key, target) if written else 0

    def _truncate_to_count(self, count: int) -> None:
        """Removes every entry from number `count` on."""
        written = max(self._written, 0)
        self.count = count
        if count >= written:
            del self._pending[(count - written) * self.ENTRY.size :]
            return
        self._pending = bytearray()
        self._files.release(self)  # before the pages it maps are gone
        os.truncate(self.path, count * self.ENTRY.size)
        self._written = count

    def _map(self) -> OpenMap:
        handle = self.handle
        if not isinstance(handle, OpenMap) or len(handle.view) < self._written * self.ENTRY.size:
            self._files.release(self)
            return self._files.map(self, self.path)
        handle.used = True
        return handle


class OffsetIndex(IndexFile):
    """Maps offsets to positions from which to search."""

    __slots__ = ()
    ENTRY = struct.Struct(">II")
    SUFFIX = ".index"

    def append(self, last_offset: int, position: int) -> None:
        self._add(last_offset - self.base_offset, position)

    def lookup(self, offset: int) -> tuple[int, int] | None:
        """Returns last offset and position of the last indexed batch that ends by `offset`."""
        count = self._count_up_to(offset - self.base_offset, _RELATIVE_OFFSET)
        return self._at(count - 1) if count else None

    def lookup_before(self, position: int) -> tuple[int, int] | None:
        """Returns last offset and position of the last indexed batch before `position`."""
        count = self._count_up_to(position - 1, _POSITION)
        return self._at(count - 1) if count else None

    def last(self) -> tuple[int, int] | None:
        """Returns last offset and position of the last indexed batch."""
        count = self.count
        return self._at(count - 1) if count else None

    def truncate(self, offset: int) -> None:
        """Removes the entries of batches that reach `offset`."""
        self._truncate_to_count(self._count_up_to(offset - self.base_offset - 1, _RELATIVE_OFFSET))

    def _at(self, number: int) -> tuple[int, int]:
        relative_offset, position = self.entry(number)
        return self.base_offset + relative_offset, position


class TimeIndex(IndexFile):
    """Maps timestamps to the offsets before which no record is that late."""

    __slots__ = ("last_timestamp",)
    ENTRY = struct.Struct(">qI")
    SUFFIX = ".timeindex"

    def __init__(self, folder: str, base_offset: int, files: OpenFiles) -> None:
        super().__init__(folder, base_offset, files)
        self.last_timestamp = NO_TIMESTAMP

    def load(self) -> bool:
        if not super().load():
            return False
        self._find_last_timestamp()
        return True

    def append(self, max_timestamp: int, offset_of_max: int) -> None:
        """Adds an entry, unless the timestamp is not larger than the last."""
        if max_timestamp > self.last_timestamp:
            self._add(max_timestamp, offset_of_max - self.base_offset)
            self.last_timestamp = max_timestamp

    def lookup(self, timestamp: int) -> tuple[int, int] | None:
        """Returns timestamp and offset of the last entry that is not after `timestamp`."""
        count = self._count_up_to(timestamp, _TIMESTAMP)
        return self._at(count - 1) if count else None

    def last(self) -> tuple[int, int] | None:
        count = self.count
        return self._at(count - 1) if count else None

    def truncate(self, offset: int) -> None:
        """Removes the entries whose batch reaches `offset`."""
        self._truncate_to_count(
            self._count_up_to(offset - self.base_offset - 1, _OFFSET_OF_TIMESTAMP)
        )
        self._find_last_timestamp()

    def clear(self) -> None:
        super().clear()
        self.last_timestamp = NO_TIMESTAMP

    def _at(self, number: int) -> tuple[int, int]:
        timestamp, relative_offset = self.entry(number)
        return timestamp, self.base_offset + relative_offset

    def _find_last_timestamp(self) -> None:
        last = self.last()
        self.last_timestamp = last[0] if last else NO_TIMESTAMP


class AbortedTransaction(NamedTuple):
    """The range of offsets that a reader of committed records skips for a producer."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex(IndexFile):
    """The aborted transactions of one segment, by the offset of their marker.

    `needs_sync` makes the next flush include the file: without an entry, readers would get the
    records of an aborted transaction.
    """

    __slots__ = ("needs_sync",)
    ENTRY = struct.Struct(">hqqqq")
    KEY = _LAST_OFFSET
    SUFFIX = TRANSACTION_INDEX

    def __init__(self, folder: str, base_offset: int, files: OpenFiles) -> None:
        super().__init__(folder, base_offset, files)
        self.needs_sync = False

    def append(self, aborted: AbortedTransaction) -> None:
        self.needs_sync = True
        self._add(TRANSACTION_VERSION, *aborted)
        self.flush()

    def overlapping(self, start: int, end: int) -> tuple[list[AbortedTransaction], bool]:
        """Returns the transactions with records in [start, end), and whether these are all."""
        overlapping = []
        for number in range(self._count_up_to(start - 1, _MARKER_OFFSET), self.count):
            aborted = AbortedTransaction._make(self.entry(number)[1:])
            if aborted.first_offset < end:
                overlapping.append(aborted)
            if aborted.last_stable_offset >= end:
                return overlapping, True
        return overlapping, False

    def truncate(self, offset: int) -> None:
        """Removes the markers from `offset` on."""
        self._truncate_to_count(self._count_up_to(offset - 1, _MARKER_OFFSET))
