"""A segment as it was at one time, for a thread that searches its files."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.log.errors import IndexMismatch
from barnabas.log.segments.index import TimeIndex
from barnabas.log.segments.log_files import TIME_INDEX
from barnabas.log.segments.open_files import HandleOwner, OpenFile, OpenFiles, OpenMap
from barnabas.log.segments.segment import LogSegment
from barnabas.wire.records.batch import NO_TIMESTAMP


class SegmentSnapshot(LogSegment):
    """Shares nothing with the segment but its files, and changes none of them.

    It raises IndexMismatch where the segment would rebuild an index, and FileNotFoundError if the
    segment was deleted meanwhile.
    """

    __slots__ = ()

    def __init__(self, segment: LogSegment, files: "ReadOnlyFiles") -> None:
        super().__init__(
            os.path.dirname(segment.path()),
            segment.base_offset,
            files,
            segment.index_interval_bytes,
            segment.size_bytes,
        )
        self.next_offset = segment.next_offset
        self.max_timestamp = segment.max_timestamp
        self.offset_of_max_timestamp = segment.offset_of_max_timestamp

    def max_timestamp_and_offset(self) -> tuple[int, int]:
        """Reads one entry where a segment loads its indexes: most segments are not searched."""
        if self.max_timestamp < NO_TIMESTAMP:
            self._read_last_time_entry()
        return super().max_timestamp_and_offset()

    def rebuild_indexes(self) -> None:
        """Does nothing for a new segment, whose indexes are not in files yet."""
        if self.offset_index.count or self.time_index.count:
            raise IndexMismatch(f"the indexes of {self.path()} must be rebuilt")

    def _read_last_time_entry(self) -> None:
        entry_bytes = TimeIndex.ENTRY.size
        with _opened(self.path(TIME_INDEX)) as fd:
            count = os.fstat(fd).st_size // entry_bytes
            last = os.pread(fd, entry_bytes, (count - 1) * entry_bytes) if count else b""
        if last:
            timestamp, relative_offset = TimeIndex.ENTRY.unpack(last)
            if timestamp > 0:  # else the file ends in zeros, which loading it detects
                self.max_timestamp = timestamp
                self.offset_of_max_timestamp = self.base_offset + relative_offset


class ReadOnlyFiles(OpenFiles):
    """Opens files for reading only. A map is a copy.

    A thread that waited for the disk in a real map would hold the GIL, and the event loop with it.
    """

    __slots__ = ()

    def open(self, owner: HandleOwner, path: str) -> OpenFile:
        owner.handle = file = OpenFile(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        return file

    def map(self, owner: HandleOwner, path: str) -> OpenMap:
        with _opened(path) as fd:
            owner.handle = copy = OpenMap(os.pread(fd, os.fstat(fd).st_size, 0))
        return copy


@contextmanager
def _opened(path: str) -> Iterator[int]:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield fd
    finally:
        os.close(fd)
