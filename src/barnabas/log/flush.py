"""Flushing a log to disk in a thread, while the event loop appends to it."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from barnabas.log.checkpoint_file import sync_path
from barnabas.log.directory.directory_files import PARTITION_METADATA
from barnabas.log.errors import LogDirFailure, raises_log_dir_failure
from barnabas.log.segments.log_files import INDEX, TIME_INDEX, TRANSACTION_INDEX
from barnabas.log.segments.open_files import OpenFile

if TYPE_CHECKING:
    from barnabas.log.log import Log

_NOTHING_UNFLUSHED = -1


@dataclass(slots=True, frozen=True)
class Flush:
    """What has to reach the disk so that everything below `upto` is durable.

    `sync` may run in any thread: it uses nothing of the log but these descriptors and names.
    """

    directory: str
    upto: int
    truncations: int  # how often the log had been truncated when the flush began
    log_files: tuple[OpenFile, ...]
    other_paths: tuple[str, ...]  # indexes, snapshots, epochs, the folder

    def sync(self) -> None:
        """Blocks until everything is on disk.

        After a failure the state of the files is unknown, whatever a second attempt returns: the
        kernel has dropped the pages. The directory has failed.
        """
        try:
            for file in self.log_files:
                os.fdatasync(file.fd)
            for path in self.other_paths:
                with suppress(FileNotFoundError):  # deleted meanwhile
                    sync_path(path)
        except OSError as error:
            raise LogDirFailure(self.directory, error) from error


class LogFlusher:
    """Tracks what of one log is not on disk yet, and moves its recovery point."""

    __slots__ = (
        "_is_new",
        "_is_overdue",
        "_log",
        "_unsynced_paths",
        "directory",
        "truncations",
        "unflushed_since_ms",
    )

    def __init__(self, log: "Log", *, is_new: bool) -> None:
        self._log = log
        self._is_new = is_new  # the folder itself may not be on disk yet
        self._unsynced_paths: set[str] | None = None  # files and folders for the next flush
        self.directory = log.directory
        self.truncations = 0
        """How often the log was truncated since it was opened."""
        self.unflushed_since_ms = _NOTHING_UNFLUSHED
        self._is_overdue = False
        if log.recovery_point < log.log_end_offset:
            self._include_recovered()

    def _include_recovered(self) -> None:
        """The log was recovered: what is past its recovery point may not be on disk."""
        log = self._log
        _, number = log.segments.floor(log.recovery_point)
        for segment in log.segments.since(number):
            for suffix in (INDEX, TIME_INDEX, TRANSACTION_INDEX):
                self.sync_later(segment.path(suffix))
        self.sync_later(log.leader_epochs.path)
        self.sync_later(log.path)
        self._is_overdue = True

    def is_due(self, now_ms: int) -> bool:
        """Returns whether a segment was rolled, or `flush.messages` or `flush.ms` is reached.

        A flush of what was recovered is always due, or the next crash would cost another scan.
        """
        log = self._log
        if log.recovery_point >= log.log_end_offset:
            return False
        return (
            self._is_overdue
            or log.recovery_point < log.segments.active.base_offset
            or log.log_end_offset - log.recovery_point >= log.config.flush_messages
            or 0 <= self.unflushed_since_ms <= now_ms - log.config.flush_ms
        )

    @raises_log_dir_failure
    def begin(self) -> Flush:
        """Returns what to sync, in any thread; `finish` then moves the recovery point."""
        log = self._log
        _, number = log.segments.floor(log.recovery_point)
        unflushed = log.segments.since(number)
        log_files = tuple(segment.file() for segment in unflushed if segment.is_on_disk)
        epochs: tuple[str, ...] = ()
        if log.leader_epochs.needs_sync:
            log.leader_epochs.save()
            log.leader_epochs.needs_sync = False
            epochs = (log.leader_epochs.path,)
        transactions = log.segments.active.transaction_index
        aborted = (transactions.path,) if transactions.needs_sync else ()
        # Nothing can fail from here on, so that no path is forgotten.
        transactions.needs_sync = False
        other_paths = (*(self._unsynced_paths or ()), *epochs, *aborted)
        self._unsynced_paths = None
        self._is_overdue = False
        self.unflushed_since_ms = _NOTHING_UNFLUSHED
        if self._is_new:
            self._is_new = False
            other_paths += (f"{log.path}/{PARTITION_METADATA}", log.path)
            other_paths += (self.directory.path,)
        return Flush(
            self.directory.path, log.log_end_offset, self.truncations, log_files, other_paths
        )

    def finish(self, flush: Flush) -> None:
        """The flush is on disk. It moves nothing if the log was truncated meanwhile."""
        if flush.truncations == self.truncations and flush.upto > self._log.recovery_point:
            self._log.recovery_point = flush.upto

    def retry(self, flush: Flush) -> None:
        """The flush could not open its files: the next one includes everything it had."""
        for path in flush.other_paths:
            self.sync_later(path)
        self._is_overdue = True

    def flush(self) -> None:
        """Begins, syncs and finishes a flush on the calling thread."""
        flush = self.begin()
        try:
            flush.sync()
        except LogDirFailure as failure:
            self.directory.failed = failure
            raise
        self.finish(flush)

    def sync_later(self, path: str) -> None:
        """Includes a new file, or a folder with a new name in it, in the next flush."""
        if self._unsynced_paths is None:
            self._unsynced_paths = set()
        self._unsynced_paths.add(path)

    def before_truncation(self, offset: int) -> None:
        """Lowers the recovery point: its checkpoint must not claim what the truncation removes."""
        self.truncations += 1
        if offset < self._log.recovery_point:
            self._log.recovery_point = offset
            self.directory.checkpoint()


class BackgroundExecutor(Protocol):
    """A few threads. Work starts in order and may end in any order."""

    def run(self, work: Callable[[], object], done: Callable[[BaseException | None], None]) -> None:
        """Runs `work` in a thread, then calls `done` on the loop with the exception, or None."""
