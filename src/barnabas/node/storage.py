"""The log directories of a node: opened, checked against each other, recovered if needed."""

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial
from pathlib import Path

from barnabas.config import BrokerSettings
from barnabas.log import (
    DirectoryInUse,
    LogConfig,
    LogDirectory,
    LogDirFailure,
    MetaProperties,
    NotFormatted,
    OpenFiles,
)
from barnabas.log.directory.directory_recovery import RecoveredSync
from barnabas.node.environment import DiskThreads
from barnabas.node.errors import LogDirInUse, NodeError
from barnabas.replication import Partitions
from barnabas.replication.log_dirs import OUT_OF_FILES

PROGRESS_INTERVAL_S = 5.0
_SYNCED_AT_ONCE = 32

log = logging.getLogger(__name__)


class NodeStorage:
    """Every directory that could be opened, and the paths of those that could not.

    `directories` hold partitions. `metadata` is one of them, unless metadata.log.dir is set.
    """

    def __init__(self, settings: BrokerSettings, files: OpenFiles | None = None) -> None:
        self.failed_paths: list[str] = []
        self._opened: dict[str, LogDirectory] = {}
        self._log_dirs = [str(Path(path).absolute()) for path in settings.log_dirs]
        metadata_path = str(Path(settings.metadata_log_dir).absolute())
        files = OpenFiles() if files is None else files
        try:
            for path in dict.fromkeys((*self._log_dirs, metadata_path)):
                self._open(path, files)
            if metadata_path not in self._opened:
                raise NodeError(f"The metadata log in {metadata_path} cannot be read.")
            self.metadata = self._opened[metadata_path]
            self._check_owner(settings)
        except NodeError:
            self.abandon()
            raise

    @property
    def directories(self) -> list[LogDirectory]:
        return [self._opened[path] for path in self._log_dirs if path in self._opened]

    @property
    def meta(self) -> MetaProperties:
        return self.metadata.meta

    @property
    def previous_broker_epoch(self) -> int:
        """The broker epoch of the last clean shutdown; -1 if any directory was not closed."""
        epochs = {directory.previous_broker_epoch for directory in self.directories}
        return epochs.pop() if len(epochs) == 1 else -1

    def _open(self, path: str, files: OpenFiles) -> None:
        try:
            self._opened[path] = LogDirectory.open(path, files)
        except NotFormatted as error:
            raise NodeError(str(error)) from None
        except LogDirFailure as error:
            if isinstance(error.__cause__, DirectoryInUse):
                raise LogDirInUse(path) from None
            log.error("%s; continuing without it", error)
            self.failed_paths.append(path)

    def _check_owner(self, settings: BrokerSettings) -> None:
        seen_ids: dict[bytes, str] = {}
        for directory in self._opened.values():
            meta = directory.meta
            if meta.node_id != settings.node_id:
                raise NodeError(
                    f"{directory.path} belongs to node {meta.node_id}, but node.id is "
                    f"{settings.node_id}: correct node.id or log.dirs."
                )
            if meta.cluster_id != self.meta.cluster_id:
                raise NodeError(
                    f"{directory.path} belongs to cluster {meta.cluster_id}, "
                    f"{self.metadata.path} to {self.meta.cluster_id}: correct log.dirs."
                )
            other = seen_ids.setdefault(meta.directory_id, directory.path)
            if other != directory.path:
                raise NodeError(f"{directory.path} and {other} are copies with one directory.id.")

    async def recover(
        self,
        threads: DiskThreads,
        config_of: Callable[[str], LogConfig],
        *,
        threads_per_directory: int,
    ) -> None:
        """Recovers the logs of all directories that were not shut down cleanly, in threads.

        Raises LogDirFailure if the disk of the metadata log fails; others go offline.
        """
        recoveries = [
            self._recover(directory, threads, config_of, threads_per_directory)
            for directory in self._opened.values()
        ]
        await asyncio.gather(*recoveries)
        if self.metadata.failed is not None:
            raise self.metadata.failed

    async def _recover(
        self,
        directory: LogDirectory,
        threads: DiskThreads,
        config_of: Callable[[str], LogConfig],
        thread_count: int,
    ) -> None:
        progress = _Progress(directory.path)
        recovery = directory.begin_recovery(config_of, progress.on_scanned)
        if not recovery:
            return
        log.info("%s was not shut down cleanly; recovering %d logs", directory.path, len(recovery))
        began_s = time.monotonic()
        try:
            recovered = await threads.call(
                partial(recovery.run, thread_count, progress.on_recovered)
            )
        except LogDirFailure as failure:
            log.error("%s; continuing without it", failure)
            directory.failed = failure
            return
        except asyncio.CancelledError:
            recovery.stop()
            raise
        directory.finish_recovery(recovered)
        log.info("%s recovered in %.2f s", directory.path, time.monotonic() - began_s)

    def sync_recovered(self, threads: DiskThreads, partitions: Partitions) -> None:
        """Brings recovered logs to disk in the background, a few at a time.

        Another crash then costs no scan, and the disk is free for others in between.
        """
        for directory in self._opened.values():
            sync = directory.begin_sync(_SYNCED_AT_ONCE)
            if sync and directory.failed is None:
                on_done = partial(self._on_synced, threads, partitions, directory, sync)
                threads.run(sync.run, on_done)
                return

    def _on_synced(
        self,
        threads: DiskThreads,
        partitions: Partitions,
        directory: LogDirectory,
        sync: RecoveredSync,
        failure: BaseException | None,
    ) -> None:
        if failure is None:
            directory.finish_sync(sync)
        elif not isinstance(failure, LogDirFailure):
            raise failure
        elif failure.errno in OUT_OF_FILES:
            return  # the shutdown tries again
        else:
            directory.failed = failure  # what is on disk is unknown
            partitions.handle_log_dir_failure(directory, failure)
        self.sync_recovered(threads, partitions)

    def close(self, *, except_for: Collection[LogDirectory] = ()) -> bool:
        """Closes the directories not in `except_for`. Returns False if one failed."""
        is_clean = True
        for directory in self._opened.values():
            if directory in except_for:
                continue
            try:
                directory.close()
            except LogDirFailure as failure:
                log.error("not shut down cleanly: %s", failure)
                is_clean = False
        return is_clean

    def abandon(self) -> None:
        """Releases everything. Directories that were clean at the start stay clean."""
        for directory in self._opened.values():
            with suppress(OSError):
                epoch = directory.previous_broker_epoch
                directory.close(clean=directory.was_clean_shutdown, broker_epoch=epoch)


class _Progress:
    """Logs the progress of a long recovery every few seconds."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._logged_s = time.monotonic()

    def on_scanned(self, name: str, scanned_bytes: int, total_bytes: int) -> None:
        if self._is_due():
            log.info(
                "%s: recovered %d of %d MB of %s",
                self._path,
                scanned_bytes >> 20,
                total_bytes >> 20,
                name,
            )

    def on_recovered(self, count: int, total: int) -> None:
        if self._is_due():
            log.info("%s: recovered %d of %d logs", self._path, count, total)

    def _is_due(self) -> bool:
        now_s = time.monotonic()
        if now_s - self._logged_s < PROGRESS_INTERVAL_S:
            return False
        self._logged_s = now_s
        return True
