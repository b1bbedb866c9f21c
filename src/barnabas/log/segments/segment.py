"""One segment: a log file, its two sparse indexes and its transaction index."""

import logging
import os
from collections.abc import Iterator
from contextlib import suppress

from barnabas.log._append import UNKNOWN_TIMESTAMP, SegmentEnd
from barnabas.log.config import LogConfig
from barnabas.log.errors import CorruptLog, DamagedBatch, IndexMismatch
from barnabas.log.segments import _search, file_records
from barnabas.log.segments._batch_walk import BatchWalk
from barnabas.log.segments.index import OffsetIndex, TimeIndex, TransactionIndex
from barnabas.log.segments.log_files import (
    INDEX_SUFFIXES,
    LOG,
    SEGMENT_SUFFIXES,
    segment_path,
)
from barnabas.log.segments.open_files import OpenFile, OpenFiles
from barnabas.log.segments.page_cache import ColdRead, PositionalRead, load_file
from barnabas.wire.records.batch import NO_TIMESTAMP, BatchHeader

SHORT_BYTES = 64 << 10
"""A segment of at most so many bytes is read faster than its indexes are written."""

_RECENT_POSITIONS = 16
_UNKNOWN = UNKNOWN_TIMESTAMP

_logger = logging.getLogger(__name__)


class LogSegment(SegmentEnd):
    """The batches from `base_offset` up to the base offset of the next segment.

    `size_bytes` is the size of all whole batches; a preallocated file is longer. `next_offset` is
    exact for the active segment, and the base offset of the next segment for all others.
    `recent_positions` has the starts and ends of the last reads: readers continue there.
    """

    __slots__ = (
        "_cached_generation",
        "_files",
        "_folder",
        "_indexes",
        "_transactions",
        "created_ms",
        "is_on_disk",
        "preallocated",
        "recent_positions",
    )

    def __init__(
        self,
        folder: str,
        base_offset: int,
        files: OpenFiles,
        index_interval_bytes: int,
        size_bytes: int = 0,
    ) -> None:
        super().__init__(base_offset, index_interval_bytes, size_bytes)
        self.created_ms = _UNKNOWN
        self.is_on_disk = True
        self.preallocated = False
        self.recent_positions: dict[int, int] | None = None
        self._folder = folder
        self._files = files
        self._cached_generation = -1  # in which the indexes were last read or created
        self._indexes: tuple[OffsetIndex, TimeIndex] | None = None
        self._transactions: TransactionIndex | None = None

    @classmethod
    def new(
        cls, folder: str, base_offset: int, files: OpenFiles, index_interval_bytes: int
    ) -> "LogSegment":
        """Returns an empty segment, whose file is created when it is first needed."""
        segment = cls(folder, base_offset, files, index_interval_bytes)
        segment.is_on_disk = False
        segment._cached_generation = files.generation
        segment.max_timestamp = NO_TIMESTAMP
        segment._indexes = segment._new_indexes()
        segment._transactions = TransactionIndex(folder, base_offset, files)
        return segment

    def create_file(self, preallocate_bytes: int = 0) -> None:
        """Creates the log file now: its name says where the log continues."""
        fd = self.file().fd
        os.ftruncate(fd, 0)
        if preallocate_bytes:
            os.posix_fallocate(fd, 0, preallocate_bytes)
            self.preallocated = True

    def path(self, suffix: str = LOG) -> str:
        return segment_path(self._folder, self.base_offset, suffix)

    def file(self) -> OpenFile:
        """Returns the log file, opened again if it was evicted."""
        handle = self.handle
        if not isinstance(handle, OpenFile):
            self.is_on_disk = True
            return self._files.open(self, self.path())
        handle.used = True
        return handle

    @property
    def has_index_files(self) -> bool:
        return self.offset_index.is_on_disk and self.time_index.is_on_disk

    @property
    def offset_index(self) -> OffsetIndex:
        return (self._indexes or self._load_indexes())[0]

    @property
    def time_index(self) -> TimeIndex:
        return (self._indexes or self._load_indexes())[1]

    @property
    def transaction_index(self) -> TransactionIndex:
        if self._transactions is None:
            self._transactions = TransactionIndex(self._folder, self.base_offset, self._files)
            self._transactions.load()
        return self._transactions

    # Writing

    def add_index_entries(self, last_offset: int) -> None:
        """Adds an entry to both indexes, for the batch at the end that has `last_offset`."""
        offsets, times = self._indexes or self._load_indexes()
        offsets.append(last_offset, self.size_bytes)
        times.append(self.max_timestamp, self.offset_of_max_timestamp)

    def limits(self, config: LogConfig) -> tuple[int, int, int]:
        """Returns the bytes and the age with which the segment is full, and for how many entries
        the indexes have space. With a jitter, the age is not known here."""
        offsets, times = self._indexes or self._load_indexes()
        free_entries = min(
            config.max_offset_entries - offsets.count, config.max_time_entries - times.count
        )
        return (
            config.segment_bytes,
            -1 if config.segment_jitter_ms else config.roll_ms,
            free_entries,
        )

    def on_batches_scanned(self, walk: BatchWalk) -> None:
        """Counts the batches in the file that a step of a scan has found valid."""
        offsets, times = self._indexes or self._load_indexes()
        for last_offset, position, max_timestamp, offset_of_max in walk.index_entries:
            offsets.append(last_offset, position)
            times.append(max_timestamp, offset_of_max)
        self.unindexed_bytes = walk.unindexed_bytes
        self.max_timestamp = walk.max_timestamp
        self.offset_of_max_timestamp = walk.offset_of_max_timestamp
        self.size_bytes = walk.position
        self.next_offset = walk.next_offset

    def seal(self) -> None:
        """Completes the segment: writes its indexes and ends the file after the last batch."""
        if not self.is_on_disk:
            return
        self.time_index.append(*self.max_timestamp_and_offset())
        self.offset_index.flush()
        self.time_index.flush()
        if self.preallocated:
            os.ftruncate(self.file().fd, self.size_bytes)
            self.preallocated = False

    def truncate(self, offset: int) -> None:
        """Drops every batch from `offset` on, at which a batch begins."""
        position = self.position_of(offset)
        self.recent_positions = None
        self.offset_index.truncate(offset)
        self.time_index.truncate(offset)
        self.transaction_index.truncate(offset)
        os.ftruncate(self.file().fd, position)
        self.preallocated = False
        self.size_bytes = position
        if not self.load_tail(indexes_complete=False):
            self.rebuild_indexes()
        self.next_offset = offset

    def close(self) -> None:
        """Closes the files; they are opened again when needed."""
        self._files.release(self)
        for index in (*(self._indexes or ()), self._transactions):
            if index is not None:
                index.close()

    def delete_files(self) -> None:
        self.close()
        for suffix in SEGMENT_SUFFIXES:
            with suppress(FileNotFoundError):
                os.unlink(self.path(suffix))

    # Reading

    def position_of(self, offset: int, pread: PositionalRead = os.pread) -> int:
        """Returns the position of the first batch that reaches `offset`; the end if none does.

        With `pread_cached` this and the following reads raise NotCached or ColdRead instead of
        waiting for the disk.
        """
        recent = self.recent_positions
        if recent is not None:
            position = recent.get(offset)
            if position is not None:
                return position
        try:
            position = self._find(offset, pread)
        except IndexMismatch:
            self.rebuild_indexes()
            position = self._find(offset, pread)
        if position < self.size_bytes:
            self.cache_position(offset, position)  # it is read again if the response waits
        return position

    def _find(self, offset: int, pread: PositionalRead) -> int:
        if pread is not os.pread and self._cached_generation != self._files.generation:
            raise ColdRead(self._cache_indexes)
        last_offset, start = self.offset_index.lookup(offset) or (None, 0)
        try:
            return _search.find_batch(
                self.file().fd, start, self.size_bytes, offset, last_offset, pread
            )
        except DamagedBatch as damage:
            raise CorruptLog(self.path(), damage.position, damage.reason) from None

    def end_before(self, offset: int, pread: PositionalRead = os.pread) -> tuple[int, int]:
        """Returns where the batches that do not reach `offset` end, and the offset after them."""
        position = self.position_of(offset, pread)
        if position == self.size_bytes:
            return position, offset
        return position, min(offset, self.batch_extent(position, pread)[0])

    def find_batch_end(
        self, position: int, limit: int, end: int, pread: PositionalRead = os.pread
    ) -> tuple[int, int]:
        """Returns where the last batch that fits before `limit` ends, and the next offset."""
        try:
            return self._find_batch_end(position, limit, end, pread)
        except IndexMismatch:
            self.rebuild_indexes()
            return self._find_batch_end(position, limit, end, pread)

    def _find_batch_end(
        self, position: int, limit: int, end: int, pread: PositionalRead
    ) -> tuple[int, int]:
        if pread is not os.pread and self._cached_generation != self._files.generation:
            raise ColdRead(self._cache_indexes)
        last_offset, start = self.offset_index.lookup_before(limit) or (None, 0)
        if start <= position:
            last_offset, start = None, position
        try:
            return _search.find_batch_end(self.file().fd, start, limit, end, last_offset, pread)
        except DamagedBatch as damage:
            raise CorruptLog(self.path(), damage.position, damage.reason) from None

    def batch_extent(self, position: int, pread: PositionalRead = os.pread) -> tuple[int, int, int]:
        """Returns first offset, last offset and size of the batch at `position`."""
        try:
            return file_records.read_extent(self.file().fd, position, self.size_bytes, pread)
        except DamagedBatch as damage:
            raise CorruptLog(self.path(), damage.position, damage.reason) from None

    def batch_headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Yields the position and header of every batch from `position` on."""
        file = self.file()  # a reference, or the descriptor could be reused meanwhile
        try:
            yield from file_records.read_headers(file.fd, position, self.size_bytes)
        except DamagedBatch as damage:
            raise CorruptLog(self.path(), damage.position, damage.reason) from None

    def read_batch(self, position: int, header: BatchHeader) -> bytes:
        """Reads the whole batch at `position`."""
        content = os.pread(self.file().fd, header.size_bytes, position)
        if len(content) < header.size_bytes:
            raise CorruptLog(self.path(), position, "the file ends within the batch")
        return content

    def cache_position(self, offset: int, position: int) -> None:
        """Remembers the position of the first batch that reaches `offset`."""
        recent = self.recent_positions
        if recent is None:
            self.recent_positions = {offset: position}
            return
        recent[offset] = position
        if len(recent) > _RECENT_POSITIONS:
            del recent[next(iter(recent))]

    def has_full_index(self, max_offset_entries: int, max_time_entries: int) -> bool:
        """Returns whether an index has so many entries."""
        offsets, times = self._indexes or self._load_indexes()
        return offsets.count >= max_offset_entries or times.count >= max_time_entries

    def age_ms(self, timestamp: int, now_ms: int) -> int:
        """Returns by how much `timestamp` is later than the first batch.

        If batches have no timestamps, returns the time since the first call.
        """
        if self.created_ms == _UNKNOWN:
            self.created_ms = now_ms
        first_timestamp = self.first_timestamp
        if first_timestamp == _UNKNOWN:
            first_timestamp = self.first_batch_timestamp()
        if first_timestamp >= 0:
            return timestamp - first_timestamp
        return now_ms - self.created_ms

    def first_batch_timestamp(self) -> int:
        """Returns the largest timestamp of the first batch; there must be one."""
        if self.first_timestamp == _UNKNOWN:
            headers = (header.max_timestamp for _, header in self.batch_headers())
            self.first_timestamp = next(headers, NO_TIMESTAMP)
        return self.first_timestamp

    def last_modified_ms(self) -> int:
        """Returns the largest timestamp, or the time of the last write if records have none."""
        timestamp, _ = self.max_timestamp_and_offset()
        return timestamp if timestamp >= 0 else self.written_ms()

    def written_ms(self) -> int:
        """Returns when the file was last written to."""
        return int(os.stat(self.path()).st_mtime * 1000)

    def max_timestamp_and_offset(self) -> tuple[int, int]:
        """Returns the largest timestamp and the last offset of the batch that has it."""
        if self.max_timestamp == _UNKNOWN:
            if self.time_index.count == 0 and self.size_bytes and self.first_batch_timestamp() >= 0:
                self.rebuild_indexes()  # the last entry of the time index is missing
            last = self.time_index.last() or (NO_TIMESTAMP, self.base_offset)
            self.max_timestamp, self.offset_of_max_timestamp = last
        return self.max_timestamp, self.offset_of_max_timestamp

    def _cache_indexes(self) -> None:
        """Reads the indexes, in a thread: a map that is not in memory waits for the disk."""
        for suffix in INDEX_SUFFIXES:
            load_file(self.path(suffix))
        self._cached_generation = self._files.generation

    # Loading

    def load_tail(self, *, indexes_complete: bool, upto: int | None = None) -> bool:
        """Finds the end of the segment, or of its batches below `upto`, by the indexes.

        Returns False if the indexes do not match the batches, or if no batch ends at `upto`.

        The indexes are complete after a clean shutdown. Otherwise entries of the time index may be
        missing, and the search for the largest timestamp begins at its last entry.
        """
        if self._indexes is None and not self._try_load_indexes():
            if not indexes_complete or self.size_bytes > SHORT_BYTES:
                return False
            self.clear_indexes()
        offsets, times = self._indexes or self._load_indexes()
        if not indexes_complete and not (offsets.is_ascending() and times.is_ascending()):
            return False
        if upto is not None:
            offsets.truncate(upto)
            times.truncate(upto)
        timestamp, offset_of_max = times.last() or (NO_TIMESTAMP, self.base_offset)
        self.max_timestamp, self.offset_of_max_timestamp = timestamp, offset_of_max
        last = offsets.last()
        entry = last if indexes_complete else offsets.lookup(offset_of_max)
        if entry is not None and not self._is_indexed_batch(entry):
            return False
        self.next_offset = self.base_offset
        end = entry[1] if entry else 0
        try:
            for position, header in self.batch_headers(end):
                if upto is not None and header.base_offset >= upto:
                    break
                end = position + header.size_bytes
                self.next_offset = header.next_offset
                if header.max_timestamp > self.max_timestamp:
                    self.max_timestamp = header.max_timestamp
                    self.offset_of_max_timestamp = header.last_offset
        except CorruptLog:
            return False
        if upto is not None and self.next_offset != upto:
            return False
        self.size_bytes = end
        self.unindexed_bytes = end - (last[1] if last else 0)
        return True

    def reset(self) -> None:
        """Resets all counts, to count the batches in the file again."""
        self.size_bytes = 0
        self.next_offset = self.base_offset
        self.unindexed_bytes = 0
        self.first_timestamp = _UNKNOWN
        self.max_timestamp = NO_TIMESTAMP
        self.offset_of_max_timestamp = self.base_offset
        self.recent_positions = None
        if self._indexes is None:
            self._try_load_indexes()
        self.clear_indexes()

    def clear_indexes(self) -> None:
        self.forget_limits()
        for index in self._indexes or ():
            index.clear()

    def rebuild_indexes(self) -> None:
        """Rebuilds both indexes, up to the first damaged batch."""
        _logger.warning("%s: rebuilding its indexes", self.path())
        size_bytes, next_offset = self.size_bytes, self.next_offset
        self.reset()
        file = self.file()
        try:
            for _, header in file_records.read_headers(file.fd, 0, size_bytes):
                self.on_batch_written(header.size_bytes, header.last_offset, header.max_timestamp)
        except DamagedBatch as damage:
            _logger.error("%s is damaged at %s", self.path(), damage)
        self.size_bytes, self.next_offset = size_bytes, next_offset
        self.seal()

    def _load_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        if not self._try_load_indexes():
            self.rebuild_indexes()
        assert self._indexes is not None
        return self._indexes

    def _try_load_indexes(self) -> bool:
        self.forget_limits()
        offsets, times = self._indexes = self._new_indexes()
        return offsets.load() & times.load()  # & and not `and`: both are loaded

    def _new_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        return (
            OffsetIndex(self._folder, self.base_offset, self._files),
            TimeIndex(self._folder, self.base_offset, self._files),
        )

    def _is_indexed_batch(self, entry: tuple[int, int]) -> bool:
        last_offset, position = entry
        try:
            return (
                file_records.read_extent(self.file().fd, position, self.size_bytes)[1]
                == last_offset
            )
        except DamagedBatch:
            return False
