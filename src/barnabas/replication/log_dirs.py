"""The log directories of a broker (JBOD): where each partition is, and which disks still work."""

import errno
import logging
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from barnabas.log import LogDirectory, LogDirFailure
from barnabas.metadata.states import DirectoryId
from barnabas.wire.errors import ErrorCode, KafkaError

_FULL = (
    "is full: nothing is appended there until there is space. "
    "Free some, or lower the retention of its topics."
)
_TOO_MANY_FILES = "cannot be read or written now: too many open files. Raise ulimit -n."
OUT_OF_FILES = (errno.EMFILE, errno.ENFILE)
_SHORTAGES = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    **dict.fromkeys(OUT_OF_FILES, _TOO_MANY_FILES),
}
"""What is no fault of the disk: the directory serves on, and all is well when it is over."""

_EVERY_DIRECTORY = "*"

_logger = logging.getLogger(__name__)


class Disks:
    """Several log directories. A partition's folder is in one of them, or in none so far."""

    __slots__ = (
        "_by_id",
        "_cordoned",
        "_counts",
        "_lost_at_start",
        "_offline",
        "_short",
        "by_path",
        "directories",
    )

    def __init__(
        self,
        directories: Sequence[LogDirectory],
        *,
        lost_paths: Sequence[str] = (),
        cordoned: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self.directories = tuple(directories)
        self._lost_at_start = tuple(lost_paths)
        self._cordoned = cordoned
        self._by_id = {directory.directory_id: directory for directory in directories}
        self.by_path = {directory.path: directory for directory in directories}
        self._counts: dict[LogDirectory, int] | None = None
        self._offline: set[LogDirectory] = set()
        self._short: set[LogDirectory] = set()

    @property
    def lost_paths(self) -> list[str]:
        """The directories that cannot be used, whose partitions are not served."""
        failed = [directory.path for directory in self.directories if directory.failed]
        return [*self._lost_at_start, *failed]

    def working(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if directory.failed is None]

    def at_path(self, path: str) -> LogDirectory:
        """The working directory of that name in `log.dirs`."""
        path = str(Path(path).absolute())
        directory = self.by_path.get(path)
        if path in self._lost_at_start or (directory is not None and directory.failed):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path} has failed.")
        if directory is None:
            raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"{path} is not among log.dirs.")
        return directory

    def is_cordoned(self, path: str) -> bool:
        """Whether nothing new may be put there (KIP-1066)."""
        cordoned = self._cordoned()
        return path in cordoned or _EVERY_DIRECTORY in cordoned

    @property
    def cordoned_ids(self) -> list[bytes]:
        return [each.directory_id for each in self.directories if self.is_cordoned(each.path)]

    def holding(self, topic: str, index: int, directory_id: bytes) -> LogDirectory | None:
        """Where the partition's folder is, by what the metadata says of it; None if nowhere.

        A replica that was moved may be elsewhere: the metadata learns of a move after it.
        """
        named = self._by_id.get(directory_id)
        for directory in (named, *self.directories) if named is not None else self.directories:
            if directory.failed is None and Path(directory.path, f"{topic}-{index}").is_dir():
                return directory
        if named is not None:
            is_lost = named.failed is not None
        else:
            is_lost = bool(self.lost_paths) and not DirectoryId.is_reserved(directory_id)
        if is_lost:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"{topic}-{index} is in a log directory that has failed: "
                f"{', '.join(self.lost_paths)}.",
            )
        return None

    def place(self, directory_id: bytes) -> LogDirectory:
        """Where to make a partition's folder: as the metadata says, or where there are fewest."""
        chosen = self._by_id.get(directory_id) or self._emptiest()
        if self._counts is not None:
            self._counts[chosen] += 1
        return chosen

    def _emptiest(self) -> LogDirectory:
        working = self.working()
        if not working:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "Every log directory has failed.")
        if len(working) == 1:
            return working[0]
        if self._counts is None:
            self._counts = {
                directory: len(directory.partitions()) for directory in self.directories
            }
        open_to_new = [each for each in working if not self.is_cordoned(each.path)]
        return min(open_to_new or working, key=self._counts.__getitem__)

    def left(self, directory: LogDirectory) -> None:
        """A partition is no longer there."""
        if self._counts is not None:
            self._counts[directory] -= 1

    def lose(self, directory: LogDirectory, failure: OSError) -> bool:
        """Serve nothing from there any more; False if that was known, or if it is well but for
        something that is short: space, or open files.
        """
        if failure.errno in _SHORTAGES and directory.failed is None:
            self._tell_of_shortage(directory, _SHORTAGES[failure.errno])
            return False
        if directory in self._offline:
            return False
        _logger.error("Taking log directory %s offline: %s", directory.path, failure)
        self._offline.add(directory)
        if directory.failed is None:
            directory.failed = LogDirFailure(directory.path, failure)
        return True

    def has_space(self, directory: LogDirectory) -> None:
        """Something was written there, or removed."""
        self._short.discard(directory)

    def _tell_of_shortage(self, directory: LogDirectory, what: str) -> None:
        """Once, for every producer will try again and again."""
        if directory not in self._short:
            self._short.add(directory)
            _logger.error("Log directory %s %s", directory.path, what)
