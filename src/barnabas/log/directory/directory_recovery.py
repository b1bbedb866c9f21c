"""Recovering the logs of a directory after an unclean shutdown, in threads.

A recovered log opens without another scan. Nothing is synced before the broker serves requests:
then the logs that are open flush themselves, and `RecoveredSync` brings the others to disk.
"""

import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count

from barnabas.log.checkpoint_file import sync_path
from barnabas.log.directory.directory_files import read_partition_metadata
from barnabas.log.directory.offset_checkpoints import PartitionKey
from barnabas.log.errors import DISK_FULL, CorruptLog, LogDirFailure
from barnabas.log.leader_epochs import path_in
from barnabas.log.producers import snapshots
from barnabas.log.recovery import LoadedLog, LogLoadParams, load_log
from barnabas.log.segments.log_files import LOG, list_log_files, segment_path
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.segment import SHORT_BYTES

OnRecovered = Callable[[int, int], None]
"""Called in any thread with the number of logs recovered so far, and of all to recover."""

_OPEN_FILES = 64

_logger = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class RecoveredLog:
    """The offsets of a log that was recovered; those from `recovery_point` on are not synced."""

    key: PartitionKey
    base_offset: int
    log_start_offset: int
    recovery_point: int
    log_end_offset: int


class DirectoryRecovery:
    """The logs of a directory that are to be recovered.

    `run` may be called in any thread: it uses nothing of the directory but these parameters.
    """

    def __init__(self, path: str, logs: Sequence[tuple[PartitionKey, LogLoadParams]]) -> None:
        self._path = path
        self._logs = logs
        self._is_stopped = False

    def __len__(self) -> int:
        return len(self._logs)

    def run(self, threads: int = 1, on_recovered: OnRecovered | None = None) -> list[RecoveredLog]:
        """Returns the logs that could be recovered. Opening one of the others raises the reason."""
        number = count(1)

        def recover(log: tuple[PartitionKey, LogLoadParams]) -> RecoveredLog | None:
            if self._is_stopped:
                return None
            recovered = self._recover(*log)
            if on_recovered is not None:
                on_recovered(next(number), len(self._logs))
            return recovered

        if threads == 1:
            return [log for log in map(recover, self._logs) if log is not None]
        with ThreadPoolExecutor(threads, thread_name_prefix="recovery") as executor:
            return [log for log in executor.map(recover, self._logs) if log is not None]

    def stop(self) -> None:
        """Makes `run` end soon: the logs that are left are recovered another time."""
        self._is_stopped = True

    def _recover(self, key: PartitionKey, params: LogLoadParams) -> RecoveredLog | None:
        try:
            if read_partition_metadata(params.folder) is None:
                return None  # created just before the crash; the caller of open_log knows its id
            return _recover_log(key, replace(params, files=OpenFiles(_OPEN_FILES)))
        except CorruptLog as damage:
            _logger.error("%s cannot be served: %s", params.name, damage)
            return None
        except OSError as error:
            if error.errno not in DISK_FULL:
                raise LogDirFailure(self._path, error) from error
            _logger.warning("%s is recovered when it is opened: %s", params.name, error.strerror)
            return None


def _recover_log(key: PartitionKey, params: LogLoadParams) -> RecoveredLog:
    loaded = load_log(params)
    try:
        _save(loaded)
    finally:
        for segment in loaded.segments:
            segment.close()
    return RecoveredLog(
        key,
        loaded.segments[0].base_offset,
        loaded.log_start_offset,
        loaded.recovery_point,
        loaded.log_end_offset,
    )


def _save(loaded: LoadedLog) -> None:
    """Writes what opening the log again needs, unless a short read tells the same.

    Most logs of a broker are nearly empty, and creating a file takes longer than reading them.
    """
    active, epochs = loaded.segments[-1], loaded.leader_epochs
    if active.size_bytes > SHORT_BYTES or active.has_index_files:
        active.seal()
    log_bytes = sum(segment.size_bytes for segment in loaded.segments)
    replayed_bytes = log_bytes
    if loaded.snapshot_offset >= active.base_offset:
        replayed_bytes = active.size_bytes - active.position_of(loaded.snapshot_offset)
    if replayed_bytes > SHORT_BYTES:
        snapshots.write(loaded.params.folder, loaded.log_end_offset, loaded.producers)
    if log_bytes > SHORT_BYTES or os.path.exists(epochs.path):
        epochs.save()


class RecoveredSync:
    """Recovered logs to bring to disk. `run` may be called in any thread."""

    def __init__(self, path: str, logs: Sequence[tuple[PartitionKey, int]]) -> None:
        self.keys = [key for key, _ in logs]
        self._path = path
        self._logs = logs  # with their recovery points

    def __len__(self) -> int:
        return len(self._logs)

    def run(self, threads: int = 1) -> None:
        """Blocks until everything is on disk."""
        try:
            if threads == 1:
                for log in self._logs:
                    self._sync(log)
                return
            with ThreadPoolExecutor(threads) as executor:
                list(executor.map(self._sync, self._logs))
        except OSError as error:
            raise LogDirFailure(self._path, error) from error

    def _sync(self, log: tuple[PartitionKey, int]) -> None:
        (topic, partition), recovery_point = log
        folder = f"{self._path}/{topic}-{partition}"
        with suppress(FileNotFoundError):  # deleted meanwhile
            files = list_log_files(folder)
            first = max((base for base in files.logs if base <= recovery_point), default=0)
            for base, suffix in (*((base, LOG) for base in files.logs), *files.indexes):
                if base >= first:
                    sync_path(segment_path(folder, base, suffix))
            with suppress(FileNotFoundError):
                sync_path(path_in(folder))
            sync_path(folder)
