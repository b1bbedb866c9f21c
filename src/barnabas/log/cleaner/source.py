"""The segments that a cleaning reads, in a thread, while the log goes on.

The folder is opened once and its files by their names in it: a folder that is deleted, and a new
one with the same name, are never confused.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from mmap import mmap

from barnabas.log.log import Log
from barnabas.log.segments.index import AbortedTransaction, TransactionIndex
from barnabas.log.segments.log_files import INDEX, LOG, TIME_INDEX, TRANSACTION_INDEX, file_name
from barnabas.log.segments.segment import LogSegment
from barnabas.wire.records.batch import HEADER_BYTES, BatchHeader, CorruptBatch, read_header

MAX_SEGMENTS_PER_GROUP = 64
"""The event loop renames the files of a whole group at once."""

_MAX_RELATIVE_OFFSET = 0x7FFFFFFF
_READ = os.O_RDONLY | os.O_CLOEXEC


@dataclass(slots=True, frozen=True)
class SourceSegment:
    """A closed segment as it was when the cleaning began."""

    segment: LogSegment
    """Only for the event loop, to see whether the log still has it."""
    base_offset: int
    next_offset: int
    size_bytes: int

    @classmethod
    def of(cls, segment: LogSegment) -> "SourceSegment":
        return cls(segment, segment.base_offset, segment.next_offset, segment.size_bytes)


class SourceSegments:
    """The closed segments below an offset, as they were when the cleaning began."""

    __slots__ = ("_log", "_truncations", "left", "needed_from")

    def __init__(self, log: Log, end_offset: int) -> None:
        self._log = log
        self._truncations = log.flusher.truncations
        self.left = [
            SourceSegment.of(segment)
            for segment in log.segments.ordered[:-1]
            if segment.base_offset < end_offset
        ]
        """Those that are not replaced yet."""
        self.needed_from = 0
        """Retention may delete the segments before this offset, which nothing has read yet."""

    def on_replaced(self, count: int) -> None:
        """New segments are in place of the first ones."""
        del self.left[:count]

    def are_unchanged(self) -> bool:
        """Returns whether the log still has those that are needed, with the same content."""
        deleted_to = min(self._log.segments.base_offset, self.needed_from)
        while self.left and self.left[0].next_offset <= deleted_to:
            del self.left[0]
        return self._log.flusher.truncations == self._truncations and (
            self._log.segments.has_consecutive([source.segment for source in self.left])
        )


class SourceFolder:
    """The folder of the log that is cleaned."""

    __slots__ = ("fd",)

    def __init__(self, path: str) -> None:
        self.fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        os.close(self.fd)

    def sync(self) -> None:
        """Makes the present names of its files survive a power loss."""
        os.fsync(self.fd)

    @contextmanager
    def open_log_file(self, source: SourceSegment) -> Iterator[int]:
        fd = os.open(file_name(source.base_offset, LOG), _READ, dir_fd=self.fd)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
            yield fd
        finally:
            os.close(fd)

    def modified_ns(self, source: SourceSegment) -> int:
        return os.stat(file_name(source.base_offset, LOG), dir_fd=self.fd).st_mtime_ns

    def index_bytes(self, source: SourceSegment) -> tuple[int, int]:
        """Returns the sizes of the offset index and the time index."""
        return (
            self._size_bytes(file_name(source.base_offset, INDEX)),
            self._size_bytes(file_name(source.base_offset, TIME_INDEX)),
        )

    def aborted_transactions(self, base_offsets: Sequence[int]) -> list[AbortedTransaction]:
        """Returns the entries of the transaction indexes of these segments."""
        aborted: list[AbortedTransaction] = []
        for base_offset in base_offsets:
            content = self._read(file_name(base_offset, TRANSACTION_INDEX))
            entry = TransactionIndex.ENTRY
            whole_bytes = len(content) // entry.size * entry.size
            aborted += [
                AbortedTransaction(*fields)
                for _, *fields in entry.iter_unpack(content[:whole_bytes])
            ]
        return aborted

    def _size_bytes(self, name: str) -> int:
        try:
            return os.stat(name, dir_fd=self.fd).st_size
        except FileNotFoundError:  # it is rebuilt when it is needed
            return 0

    def _read(self, name: str) -> bytes:
        try:
            fd = os.open(name, _READ, dir_fd=self.fd)
        except FileNotFoundError:
            return b""
        with open(fd, "rb") as file:
            return file.read()


def group_segments(
    folder: SourceFolder, sources: Sequence[SourceSegment], *, segment_bytes: int, index_bytes: int
) -> list[list[SourceSegment]]:
    """Returns the segments in groups, each of which becomes one segment."""
    groups: list[list[SourceSegment]] = []
    group_bytes = offset_index_bytes = time_index_bytes = 0
    for source in sources:
        offsets, times = folder.index_bytes(source)
        group_bytes += source.size_bytes
        offset_index_bytes += offsets
        time_index_bytes += times
        if (
            groups
            and group_bytes <= segment_bytes
            and offset_index_bytes <= index_bytes
            and time_index_bytes <= index_bytes
            and _has_relative_offsets(groups[-1][0], source)
            and len(groups[-1]) < MAX_SEGMENTS_PER_GROUP
        ):
            groups[-1].append(source)
            continue
        groups.append([source])
        group_bytes, offset_index_bytes, time_index_bytes = source.size_bytes, offsets, times
    return groups


def _has_relative_offsets(first: SourceSegment, source: SourceSegment) -> bool:
    """Whether offsets fit into an index of the group; an empty segment needs no entries."""
    return not source.size_bytes or (
        source.next_offset - 1 - first.base_offset <= _MAX_RELATIVE_OFFSET
    )


class BatchReader:
    """Reads whole batches of a log file into a buffer that is used again.

    The buffer grows for a batch that is larger, and is as small as before afterwards.
    """

    __slots__ = ("_buffer", "_size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self._size_bytes = max(size_bytes, HEADER_BYTES)
        self._buffer = mmap(-1, self._size_bytes)  # page-aligned: the kernel copies faster

    def read(self, fd: int, position: int, end: int) -> memoryview:
        """Returns bytes from `position` on, at least one whole batch of the file before `end`."""
        view = self._fill(fd, position, end)
        needed_bytes = _first_batch_bytes(view, end - position)
        if needed_bytes > len(view):
            self._buffer = mmap(-1, needed_bytes)
            view = self._fill(fd, position, end)
            if needed_bytes > len(view):
                raise CorruptBatch(f"The file ends within the batch at byte {position}.")
        elif len(self._buffer) > self._size_bytes >= needed_bytes:
            view.release()
            self._buffer = mmap(-1, self._size_bytes)
            view = self._fill(fd, position, end)
        return view

    def _fill(self, fd: int, position: int, end: int) -> memoryview:
        view = memoryview(self._buffer)[: end - position]
        return view[: os.preadv(fd, [view], position)]


def read_whole_batch(chunk: memoryview, position: int) -> BatchHeader | None:
    """Returns the header of the batch at `position`; None if the chunk has only a part of it."""
    if len(chunk) - position < HEADER_BYTES:
        return None
    header = read_header(chunk, position)
    return header if header.size_bytes <= len(chunk) - position else None


def _first_batch_bytes(view: memoryview, left_bytes: int) -> int:
    if left_bytes < HEADER_BYTES or len(view) < min(HEADER_BYTES, left_bytes):
        raise CorruptBatch("The file ends within a batch header.")
    size_bytes = read_header(view).size_bytes
    if not HEADER_BYTES <= size_bytes <= left_bytes:
        raise CorruptBatch(f"A batch of {size_bytes} bytes does not fit the rest of the file.")
    return size_bytes
