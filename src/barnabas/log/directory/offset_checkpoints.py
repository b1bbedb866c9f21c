"""The offset checkpoints of a log directory: offsets of each of its logs, opened or not.

The next checkpoint leaves a deleted log out. Until that is on disk, another log of the same name
must not begin: after a crash it would look like the old one, truncated.
"""

import logging
from collections.abc import Collection, Mapping
from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from barnabas.log.checkpoint_file import (
    MalformedCheckpoint,
    encode_offsets,
    read_offsets,
    replace_file,
)
from barnabas.log.errors import LogDirFailure

if TYPE_CHECKING:
    from barnabas.log.directory.directory_recovery import RecoveredLog
    from barnabas.log.log import Log

PartitionKey: TypeAlias = tuple[str, int]
"""Topic and partition."""

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"

_logger = logging.getLogger(__name__)


class OffsetCheckpoints:
    """Log start offsets, high watermarks and recovery points by partition."""

    __slots__ = (
        "_deleted",
        "_left_out",
        "_left_out_by",
        "_writer",
        "high_watermarks",
        "recovery_points",
        "start_offsets",
        "unsynced_ends",
    )

    def __init__(self, path: str) -> None:
        self.recovery_points = read_checkpoint(f"{path}/{RECOVERY_POINTS}")
        self.start_offsets = read_checkpoint(f"{path}/{START_OFFSETS}")
        self.high_watermarks = read_checkpoint(f"{path}/{HIGH_WATERMARKS}")
        self.unsynced_ends: dict[PartitionKey, int] = {}
        """The ends of the logs that were recovered, but not opened or synced since."""
        self._writer = CheckpointWriter(path)
        self._deleted: dict[PartitionKey, None] = {}
        self._left_out: dict[PartitionKey, None] = {}  # deleted, and left out by a checkpoint
        self._left_out_by = 0  # the number of the newest of those checkpoints

    def update(self, log: "Log") -> None:
        """Sets the offsets of an open log to its current ones."""
        key = (log.topic, log.partition)
        self._deleted.pop(key, None)  # it was moved to another directory and back
        self.unsynced_ends.pop(key, None)  # its own flushes include all that is not on disk
        self.recovery_points[key] = log.recovery_point
        self._put_start_offset(key, log.log_start_offset, log.segments.base_offset)

    def on_recovered(self, log: "RecoveredLog") -> None:
        """Sets the offsets of a log that was recovered."""
        self.recovery_points[log.key] = log.recovery_point
        self._put_start_offset(log.key, log.log_start_offset, log.base_offset)
        if log.recovery_point < log.log_end_offset:
            self.unsynced_ends[log.key] = log.log_end_offset

    def on_synced(self, key: PartitionKey) -> None:
        """Moves the recovery point of a recovered log that is on disk, unless it was opened."""
        end_offset = self.unsynced_ends.pop(key, None)
        if end_offset is not None:
            self.recovery_points[key] = end_offset

    def remove_missing(self, folders: Collection[str]) -> None:
        """Removes logs without a folder: they were deleted just before the last shutdown."""
        for key in (*self.recovery_points, *self.high_watermarks):
            if f"{key[0]}-{key[1]}" not in folders:
                self.remove(key)

    def remove(self, key: PartitionKey) -> None:
        """The log was deleted: the next checkpoint leaves it out."""
        self._deleted[key] = None

    def discard_stale(self, key: PartitionKey) -> bool:
        """Forgets the old log of a name. Returns whether the files still have its offsets: then a
        checkpoint must be written before another log begins."""
        self._deleted.pop(key, None)
        is_on_disk = key in self._left_out and self._writer.written < self._left_out_by
        return self._remove_offsets(key) or is_on_disk

    def begin_checkpoint(self, high_watermarks: Mapping[PartitionKey, int] | None) -> "Checkpoint":
        if self._writer.written >= self._left_out_by:
            self._left_out.clear()
        if high_watermarks is not None:
            self.high_watermarks.update(high_watermarks)
        for key in self._deleted:
            self._remove_offsets(key)
        files = {
            RECOVERY_POINTS: encode_offsets(self.recovery_points),
            START_OFFSETS: encode_offsets(self.start_offsets),
        }
        if high_watermarks is not None:
            files[HIGH_WATERMARKS] = encode_offsets(self.high_watermarks)
        checkpoint = self._writer.begin(files)
        if self._deleted:
            self._left_out.update(self._deleted)
            self._left_out_by = checkpoint.number
            self._deleted.clear()
        return checkpoint

    def _put_start_offset(self, key: PartitionKey, offset: int, base_offset: int) -> None:
        if offset > base_offset:
            self.start_offsets[key] = offset
        else:
            self.start_offsets.pop(key, None)

    def _remove_offsets(self, key: PartitionKey) -> bool:
        """Returns whether there were offsets of the log."""
        self.unsynced_ends.pop(key, None)
        checkpoints = (self.recovery_points, self.start_offsets, self.high_watermarks)
        removed = [offsets.pop(key, None) for offsets in checkpoints]
        return any(removed)


def read_checkpoint(path: str) -> dict[PartitionKey, int]:
    """Reads a checkpoint file. Without it more is scanned or fetched again, but nothing is lost."""
    try:
        return read_offsets(path)
    except MalformedCheckpoint as error:
        _logger.error("%s; continuing without it", error)
        return {}


class CheckpointWriter:
    """Writes the checkpoint files of a directory, from any thread, never older over newer ones.

    A recovery point that was lowered must not come back: after a crash it would claim records that
    are no longer there.
    """

    __slots__ = ("_directory", "_lock", "_newest", "begun", "written")

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._lock = Lock()
        self._newest = 0  # of the checkpoints whose writing has begun
        self.begun = 0
        """The number of the newest checkpoint."""
        self.written = 0
        """The number of the newest checkpoint on disk."""

    def begin(self, files: Mapping[str, bytes]) -> "Checkpoint":
        self.begun += 1
        return Checkpoint(self, self.begun, files)

    def write(self, number: int, files: Mapping[str, bytes]) -> None:
        with self._lock:
            if number < self._newest:
                return
            self._newest = number
            try:
                for name, content in files.items():
                    replace_file(f"{self._directory}/{name}", content)
            except OSError as error:
                raise LogDirFailure(self._directory, error) from error
            self.written = number


class Checkpoint:
    """The content of the checkpoint files at the moment it was begun."""

    __slots__ = ("_files", "_writer", "number")

    def __init__(self, writer: CheckpointWriter, number: int, files: Mapping[str, bytes]) -> None:
        self._writer = writer
        self.number = number
        self._files = files

    def write(self) -> None:
        """Blocks until the files are on disk."""
        self._writer.write(self.number, self._files)
