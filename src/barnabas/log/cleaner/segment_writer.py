"""Writes one cleaned segment: the files that end in `.cleaned`."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from barnabas.log.cleaner._indexes import SegmentIndexes
from barnabas.log.cleaner.writeback import start_writeback
from barnabas.log.segments.index import TRANSACTION_VERSION, AbortedTransaction, TransactionIndex
from barnabas.log.segments.log_files import (
    CLEANED,
    INDEX,
    LOG,
    TIME_INDEX,
    TRANSACTION_INDEX,
    file_name,
)

WRITEBACK_BYTES = 1 << 20
"""How much is written before the disk begins with it, while the cleaning continues."""

_WRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC


@dataclass(slots=True, frozen=True)
class CleanedSegment:
    """A segment whose `.cleaned` files are complete and on disk."""

    base_offset: int
    size_bytes: int
    suffixes: tuple[str, ...]
    """Which of its files there are."""


class CleanedSegmentWriter:
    """Writes the log file batch by batch, and its indexes at the end."""

    __slots__ = (
        "_aborted",
        "_fd",
        "_folder_fd",
        "_on_written",
        "_started_bytes",
        "base_offset",
        "indexes",
        "size_bytes",
    )

    def __init__(
        self,
        folder_fd: int,
        base_offset: int,
        index_interval_bytes: int,
        on_written: Callable[[int], None],
    ) -> None:
        self.base_offset = base_offset
        self.indexes = SegmentIndexes(base_offset, index_interval_bytes)
        """Every batch that is written is counted here."""
        self.size_bytes = 0
        self._folder_fd = folder_fd
        self._on_written = on_written
        self._aborted: list[AbortedTransaction] = []
        self._started_bytes = 0  # on their way to the disk
        self._fd = self._create(LOG)

    def write(self, batches: memoryview) -> None:
        """Appends whole batches."""
        written = 0
        while written < len(batches):
            written += os.pwrite(self._fd, batches[written:], self.size_bytes + written)
        self.size_bytes += written
        unstarted_bytes = self.size_bytes - self._started_bytes
        if unstarted_bytes >= WRITEBACK_BYTES:
            start_writeback(self._fd, self._started_bytes, unstarted_bytes)
            self._started_bytes = self.size_bytes
        self._on_written(written)

    def add_aborted(self, aborted: AbortedTransaction) -> None:
        """The segment has the marker of a transaction some of whose data is left."""
        self._aborted.append(aborted)

    def finish(self, modified_ns: int) -> CleanedSegment:
        """Writes the indexes and syncs everything.

        The file gets the time of its last source, by which records without timestamps expire.
        """
        suffixes = [LOG, INDEX, TIME_INDEX]
        self._write_file(INDEX, self.indexes.take_offset_index())
        self._write_file(TIME_INDEX, self.indexes.take_time_index(final=True))
        if self._aborted:
            entry = TransactionIndex.ENTRY
            content = (entry.pack(TRANSACTION_VERSION, *aborted) for aborted in self._aborted)
            self._write_file(TRANSACTION_INDEX, b"".join(content))
            suffixes.append(TRANSACTION_INDEX)
        os.utime(self._fd, ns=(modified_ns, modified_ns))
        os.fsync(self._fd)
        self.close()
        return CleanedSegment(self.base_offset, self.size_bytes, tuple(suffixes))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _create(self, suffix: str) -> int:
        name = file_name(self.base_offset, suffix) + CLEANED
        return os.open(name, _WRITE, 0o644, dir_fd=self._folder_fd)

    def _write_file(self, suffix: str, content: bytes) -> None:
        fd = self._create(suffix)
        try:
            written = 0
            while written < len(content):
                written += os.pwrite(fd, content[written:], written)
            os.fsync(fd)
        finally:
            os.close(fd)


def remove_cleaned_files(folder_fd: int) -> None:
    """Removes the files that were not put in place.

    With one that is left, recovery would take the segments of a later cleaning for unfinished.
    """
    for name in os.listdir(folder_fd):
        if name.endswith(CLEANED):
            os.unlink(name, dir_fd=folder_fd)
