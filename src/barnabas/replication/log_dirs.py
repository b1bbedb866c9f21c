"""The log directories of a broker (JBOD): which partition is where, and which are offline."""

import errno
import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from barnabas.log import LogDirectory, LogDirFailure
from barnabas.log.errors import DISK_FULL
from barnabas.metadata.states import DirectoryId
from barnabas.wire.errors import ErrorCode, KafkaError

_FULL = (
    "is full: appends fail until there is space. Free some, or lower the retention of its topics."
)
_TOO_MANY_FILES = "cannot be read or written now: too many open files. Raise ulimit -n."
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)
_SHORTAGES = {
    **dict.fromkeys(DISK_FULL, _FULL),
    **dict.fromkeys(OUT_OF_FILES, _TOO_MANY_FILES),
}
"""Errors that are not a failure of the disk: the directory stays online."""

_EVERY_DIRECTORY = "*"

_logger = logging.getLogger(__name__)


class LogDirs:
    """All log directories. The folder of a partition is in one of them, or does not exist yet."""

    __slots__ = (
        "_by_id",
        "_cordoned",
        "_offline",
        "_offline_at_start",
        "_partition_counts",
        "_reported_shortages",
        "by_path",
        "directories",
    )

    def __init__(
        self,
        directories: Sequence[LogDirectory],
        *,
        offline_paths: Sequence[str] = (),
        cordoned: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self.directories = tuple(directories)
        self._offline_at_start = tuple(offline_paths)
        self._cordoned = cordoned
        self._by_id = {directory.directory_id: directory for directory in directories}
        self.by_path = {directory.path: directory for directory in directories}
        self._partition_counts: dict[LogDirectory, int] | None = None
        self._offline: set[LogDirectory] = set()
        self._reported_shortages: set[LogDirectory] = set()

    @property
    def offline_paths(self) -> list[str]:
        """The directories that have failed; their partitions are not served."""
        failed = [directory.path for directory in self.directories if directory.failed]
        return [*self._offline_at_start, *failed]

    def online(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.failed is None]

    def at_path(self, path: str) -> LogDirectory:
        """Returns the online directory of that name in `log.dirs`."""
        path = str(Path(path).absolute())
        directory = self.by_path.get(path)
        if path in self._offline_at_start or (directory is not None and directory.failed):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path} has failed.")
        if directory is None:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not among log.dirs.")
        return directory

    def is_cordoned(self, path: str) -> bool:
        """Returns whether no new partitions may be created there (KIP-1066)."""
        cordoned = self._cordoned()
        return path in cordoned or _EVERY_DIRECTORY in cordoned

    @property
    def cordoned_ids(self) -> list[bytes]:
        return [
            directory.directory_id
            for directory in self.directories
            if self.is_cordoned(directory.path)
        ]

    def find(self, topic: str, index: int, directory_id: bytes) -> LogDirectory | None:
        """Returns the directory with the partition's folder; None if there is no folder.

        A replica that was moved may be in another directory than the metadata says: the metadata
        changes after the move.
        """
        named = self._by_id.get(directory_id)
        for directory in (named, *self.directories) if named is not None else self.directories:
            if directory.failed is None and Path(directory.path, f"{topic}-{index}").is_dir():
                return directory
        if named is not None:
            is_offline = named.failed is not None
        else:
            is_offline = bool(self.offline_paths) and not DirectoryId.is_reserved(directory_id)
        if is_offline:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{topic}-{index} is in a log directory that has failed: "
                f"{', '.join(self.offline_paths)}.",
            )
        return None

    def select_for_new(self, directory_id: bytes) -> LogDirectory:
        """Returns the directory for a new partition: the metadata's, or the one with the fewest."""
        selected = self._by_id.get(directory_id) or self._with_fewest_partitions()
        if self._partition_counts is not None:
            self._partition_counts[selected] += 1
        return selected

    def _with_fewest_partitions(self) -> LogDirectory:
        online = self.online()
        if not online:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "Every log directory has failed.")
        if len(online) == 1:
            return online[0]
        if self._partition_counts is None:
            self._partition_counts = {
                directory: len(directory.partitions()) for directory in self.directories
            }
        uncordoned = [directory for directory in online if not self.is_cordoned(directory.path)]
        return min(uncordoned or online, key=self._partition_counts.__getitem__)

    def on_partition_removed(self, directory: LogDirectory) -> None:
        """A partition's folder was deleted or moved away."""
        if self._partition_counts is not None:
            self._partition_counts[directory] -= 1

    def mark_offline(self, directory: LogDirectory, failure: OSError) -> bool:
        """Takes a directory offline. Returns False if it was offline before, or if the failure is
        only a shortage of space or of open files.
        """
        if failure.errno in _SHORTAGES and directory.failed is None:
            if failure.errno in DISK_FULL:
                directory.on_full()
            self._report_shortage(directory, _SHORTAGES[failure.errno])
            return False
        if directory in self._offline:
            return False
        _logger.error("Taking log directory %s offline: %s", directory.path, failure)
        self._offline.add(directory)
        if directory.failed is None:
            directory.failed = LogDirFailure(directory.path, failure)
        return True

    def on_write_succeeded(self, directory: LogDirectory) -> None:
        """A write or a delete succeeded: the next shortage is reported again."""
        self._reported_shortages.discard(directory)

    def _report_shortage(self, directory: LogDirectory, message: str) -> None:
        """Logs a shortage once: producers retry again and again."""
        if directory not in self._reported_shortages:
            self._reported_shortages.add(directory)
            _logger.error("Log directory %s %s", directory.path, message)
