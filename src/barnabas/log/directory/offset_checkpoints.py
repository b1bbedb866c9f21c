"""What the checkpoints of a log directory say of each log in it, opened or not.

A log that is deleted goes out of them with the next checkpoint. Until that is on disk, another log
of the same name must not begin: after a crash it would be taken for the old one, cut short.
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
    from barnabas.log.log import Log

PartitionKey: TypeAlias = tuple[str, int]
"""Topic and partition."""

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
START_OFFSETS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"

_logger = logging.getLogger(__name__)


class OffsetCheckpoints:
    """Where logs begin, what of them counts, and what of them is safely on disk."""

    __slots__ = (
        "_checkpointing",
        "_deleted",
        "_left_out",
        "_left_out_by",
        "high_watermarks",
        "recovery_points",
        "start_offsets",
    )

    def __init__(self, path: str) -> None:
        self.recovery_points = _read(f"{path}/{RECOVERY_POINTS}")
        self.start_offsets = _read(f"{path}/{START_OFFSETS}")
        self.high_watermarks = _read(f"{path}/{HIGH_WATERMARKS}")
        self._checkpointing = CheckpointWriter(path)
        self._deleted: dict[PartitionKey, None] = {}
        self._left_out: dict[PartitionKey, None] = {}  # deleted, by a checkpoint begun since
        self._left_out_by = 0  # the number of the newest of those checkpoints

    def update(self, log: "Log") -> None:
        """Note how far a log is now."""
        key = (log.topic, log.partition)
        self._deleted.pop(key, None)  # it has moved away and back
        self.recovery_points[key] = log.recovery_point
        if log.log_start_offset > log.segments.base_offset:
            self.start_offsets[key] = log.log_start_offset
        else:
            self.start_offsets.pop(key, None)

    def remove_missing(self, folders: Collection[str]) -> None:
        """What has no folder any more was deleted, moments before the last stop."""
        for key in (*self.recovery_points, *self.high_watermarks):
            if f"{key[0]}-{key[1]}" not in folders:
                self.remove(key)

    def remove(self, key: PartitionKey) -> None:
        """The log was deleted: the next checkpoint says nothing of it."""
        self._deleted[key] = None

    def discard_stale(self, key: PartitionKey) -> bool:
        """Another log of that name begins; whether the files must first be rid of the old one."""
        self._deleted.pop(key, None)
        is_on_disk = key in self._left_out and self._checkpointing.written < self._left_out_by
        return self._drop(key) or is_on_disk

    def begin_checkpoint(self, high_watermarks: Mapping[PartitionKey, int] | None) -> "Checkpoint":
        if self._checkpointing.written >= self._left_out_by:
            self._left_out.clear()
        if high_watermarks is not None:
            self.high_watermarks.update(high_watermarks)
        for key in self._deleted:
            self._drop(key)
        files = {
            RECOVERY_POINTS: encode_offsets(self.recovery_points),
            START_OFFSETS: encode_offsets(self.start_offsets),
        }
        if high_watermarks is not None:
            files[HIGH_WATERMARKS] = encode_offsets(self.high_watermarks)
        checkpoint = self._checkpointing.begin(files)
        if self._deleted:
            self._left_out.update(self._deleted)
            self._left_out_by = checkpoint.number
            self._deleted.clear()
        return checkpoint

    def _drop(self, key: PartitionKey) -> bool:
        """Whether anything was known of it."""
        checkpoints = (self.recovery_points, self.start_offsets, self.high_watermarks)
        dropped = [offsets.pop(key, None) for offsets in checkpoints]
        return any(dropped)


def _read(path: str) -> dict[PartitionKey, int]:
    """A checkpoint's offsets. Without them more is scanned, or read again, but nothing is lost."""
    try:
        return read_offsets(path)
    except MalformedCheckpoint as error:
        _logger.error("%s; going on without it", error)
        return {}


class CheckpointWriter:
    """Writes in turn, and never what is older over what is newer.

    A recovery point that was lowered must not come back: after a crash it would vouch for
    records that are no longer there.
    """

    __slots__ = ("_begun", "_directory", "_lock", "_newest", "written")

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self._lock = Lock()
        self._begun = 0
        self._newest = 0  # of those whose writing has begun
        self.written = 0
        """The number of the newest that is on disk."""

    def begin(self, files: Mapping[str, bytes]) -> "Checkpoint":
        self._begun += 1
        return Checkpoint(self, self._begun, files)

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
    """What the checkpoint files should say, as of the moment it was begun."""

    __slots__ = ("_checkpointing", "_files", "number")

    def __init__(
        self, checkpointing: CheckpointWriter, number: int, files: Mapping[str, bytes]
    ) -> None:
        self._checkpointing = checkpointing
        self.number = number
        self._files = files

    def write(self) -> None:
        """Blocks until they are on disk."""
        self._checkpointing.write(self.number, self._files)
