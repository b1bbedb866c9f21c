"""The file `cleaner-offset-checkpoint`: up to which offset the cleaner has cleaned each log.

Until the file is on disk without a deleted log, another log of the same name must not begin: after
a crash it would look clean. Until the file is on disk with a log, its segments must not be
replaced: recovery runs before the settings of topics are known, and takes a gap for lost records
unless the file has the log.
"""

from collections.abc import Collection

from barnabas.log.checkpoint_file import encode_offsets
from barnabas.log.directory.offset_checkpoints import (
    Checkpoint,
    CheckpointWriter,
    PartitionKey,
    read_checkpoint,
)

CLEANER_OFFSETS = "cleaner-offset-checkpoint"


class CleanerOffsets:
    """The first dirty offset of each log of a directory that was cleaned."""

    __slots__ = ("_added", "_offsets", "_removed", "_writer", "is_changed")

    def __init__(self, path: str) -> None:
        self._offsets = read_checkpoint(f"{path}/{CLEANER_OFFSETS}")
        self._added: dict[PartitionKey, int] = {}  # by which checkpoint
        self._removed: dict[PartitionKey, int] = {}  # after which checkpoint
        self._writer = CheckpointWriter(path)
        self.is_changed = False
        """Whether a log was cleaned since the last checkpoint began."""

    def __contains__(self, key: PartitionKey) -> bool:
        return key in self._offsets

    def get(self, key: PartitionKey) -> int | None:
        """Returns the first dirty offset; None if the log was never cleaned."""
        return self._offsets.get(key)

    def put(self, key: PartitionKey, offset: int) -> None:
        if key not in self._offsets:
            self._added[key] = self._writer.begun + 1
        self._offsets[key] = offset
        self.is_changed = True

    def is_on_disk(self, key: PartitionKey) -> bool:
        """Returns whether the file has the log."""
        return key in self._offsets and self._writer.written >= self._added.get(key, 0)

    def remove(self, key: PartitionKey) -> None:
        """The log was deleted: the next checkpoint leaves it out."""
        self._added.pop(key, None)
        if self._offsets.pop(key, None) is not None:
            self._removed[key] = self._writer.begun

    def discard_stale(self, key: PartitionKey) -> bool:
        """Forgets the old log of a name. Returns whether the file still has its offset: then a
        checkpoint must be written before another log begins."""
        return self._writer.written <= self._removed.pop(key, -1)

    def remove_missing(self, folders: Collection[str]) -> None:
        """Forgets the logs that have no folder."""
        for key in list(self._offsets):
            if f"{key[0]}-{key[1]}" not in folders:
                self.remove(key)

    def begin_checkpoint(self) -> Checkpoint:
        """Returns the file as it is now, which may be written in any thread."""
        self.is_changed = False
        written = self._writer.written
        self._removed = {key: after for key, after in self._removed.items() if written <= after}
        return self._writer.begin({CLEANER_OFFSETS: encode_offsets(self._offsets)})
