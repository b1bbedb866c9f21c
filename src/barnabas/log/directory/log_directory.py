"""A log directory: one entry of `log.dirs`.

Each partition has a folder `topic-partition` in it. A few files hold for all of them:

    meta.properties                    the cluster and node that the directory belongs to
    .lock                              held while a process has the directory open
    .kafka_cleanshutdown               exists if the last shutdown was clean
    recovery-point-offset-checkpoint   the offset up to which each log is on disk
    log-start-offset-checkpoint        where a log begins, if later than its first segment
    replication-offset-checkpoint      high watermarks
    cleaner-offset-checkpoint          the offset up to which each compacted log is clean

Opening a directory reads these files; `open_log` reads the folder of one partition.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

from barnabas.log.config import DEFAULT_CONFIG, LogConfig
from barnabas.log.directory.cleaner_offsets import CleanerOffsets
from barnabas.log.directory.directory_files import (
    DirectoryLock,
    MetaProperties,
    read_meta_properties,
    read_partition_metadata,
    take_clean_shutdown,
    write_clean_shutdown,
    write_meta_properties,
    write_partition_metadata,
)
from barnabas.log.directory.directory_recovery import (
    DirectoryRecovery,
    RecoveredLog,
    RecoveredSync,
)
from barnabas.log.directory.offset_checkpoints import Checkpoint, OffsetCheckpoints, PartitionKey
from barnabas.log.directory.pending_deletes import (
    DELETED_FOLDER,
    DueDeletes,
    PendingDeletes,
    is_deleted_folder,
    remove_leftovers,
)
from barnabas.log.errors import LogDirFailure
from barnabas.log.flush import Flush
from barnabas.log.log import Log
from barnabas.log.recovery import LogLoadParams, RecoveryProgress, create_empty_log, load_log
from barnabas.log.segments.open_files import OpenFiles
from barnabas.wire import uuid
from barnabas.wire.errors import ErrorCode, KafkaError

_SYNC_THREADS = 4
_MAX_NAME_BYTES = 255
_PARTITION_FOLDER = re.compile(r"(.+)-(\d+)")
_MIN_FREE_SHARE = 0.05
"""A disk counts as full at the start, and once it was full, while less of it is free."""


class LogDirectory:
    """The logs under one path. `failed` is set once the disk has failed."""

    def __init__(self, path: str, meta: MetaProperties, files: OpenFiles) -> None:
        self.path = path
        self.meta = meta
        self.files = files
        self.failed: LogDirFailure | None = None
        self.logs: dict[PartitionKey, Log] = {}
        self._lock = DirectoryLock(path)
        self.checkpoints = OffsetCheckpoints(path)
        self.cleaner_offsets = CleanerOffsets(path)
        clean_shutdown = take_clean_shutdown(path)
        self.was_clean_shutdown = clean_shutdown is not None
        self.previous_broker_epoch = clean_shutdown.broker_epoch if clean_shutdown else -1
        self._clean = (
            set(self.checkpoints.recovery_points)
            if self.was_clean_shutdown
            else set[PartitionKey]()
        )
        names = set(os.listdir(path))
        self.checkpoints.remove_missing(names)
        self.cleaner_offsets.remove_missing(names)
        self._pending_deletes = PendingDeletes()
        self._is_full = self._lacks_space()
        if self._is_full:
            remove_leftovers(path, names)
        else:
            deleted = (f"{path}/{name}" for name in names if is_deleted_folder(name))
            self._pending_deletes.add(deleted, delay_ms=0)

    @classmethod
    def open(cls, path: str | os.PathLike[str], files: OpenFiles | None = None) -> "LogDirectory":
        """Locks a formatted directory and reads its checkpoints.

        Raises NotFormatted if it was never formatted, LogDirFailure if the disk fails or another
        process has the directory open (DirectoryInUse).
        """
        path = os.path.abspath(path)
        try:
            meta = read_meta_properties(path)
            return cls(path, meta, OpenFiles() if files is None else files)
        except OSError as error:
            raise LogDirFailure(path, error) from error

    @staticmethod
    def format(
        path: str | os.PathLike[str],
        cluster_id: str,
        node_id: int,
        directory_id: bytes | None = None,
    ) -> None:
        """Creates a directory that can be opened."""
        os.makedirs(path, exist_ok=True)
        meta = MetaProperties(cluster_id, node_id, directory_id or uuid.random_uuid())
        write_meta_properties(os.path.abspath(path), meta)

    @property
    def directory_id(self) -> bytes:
        return self.meta.directory_id

    @property
    def total_bytes(self) -> int:
        space = os.statvfs(self.path)
        return space.f_blocks * space.f_frsize

    @property
    def usable_bytes(self) -> int:
        space = os.statvfs(self.path)
        return space.f_bavail * space.f_frsize

    # Logs

    def partitions(self) -> list[PartitionKey]:
        """Returns the partitions that have a folder here, without opening them."""
        return [
            (match[1], int(match[2]))
            for name in os.listdir(self.path)
            if (match := _PARTITION_FOLDER.fullmatch(name)) is not None
        ]

    def topic_id_of(self, topic: str, partition: int) -> bytes | None:
        """Returns the topic id in the partition's folder; None if it has none."""
        return read_partition_metadata(self._folder(topic, partition))

    def open_log(
        self,
        topic: str,
        partition: int,
        topic_id: bytes,
        config: LogConfig = DEFAULT_CONFIG,
        progress: RecoveryProgress | None = None,
    ) -> Log:
        """Opens the log in an existing folder; recovers it after an unclean shutdown."""
        key = (topic, partition)
        if key in self.logs:
            return self.logs[key]
        folder = self._folder(topic, partition)
        try:
            self._check_topic_id(folder, topic_id)
            params = self._load_params(key, folder, config, progress)
            log = self.logs[key] = Log(self, topic, partition, topic_id, load_log(params))
        except OSError as error:
            raise LogDirFailure(self.path, error) from error
        self._clean.add(key)
        self.checkpoints.update(log)
        return log

    def create_log(
        self, topic: str, partition: int, topic_id: bytes, config: LogConfig = DEFAULT_CONFIG
    ) -> Log:
        """Creates an empty log in a new folder."""
        key = (topic, partition)
        folder = self._folder(topic, partition)
        try:
            if self.checkpoints.discard_stale(key):
                self.checkpoint({})
            if self.cleaner_offsets.discard_stale(key):
                self.cleaner_offsets.begin_checkpoint().write()
            os.mkdir(folder)
            write_partition_metadata(folder, topic_id)
            params = self._load_params(key, folder, config, None)
            log = self.logs[key] = Log(self, topic, partition, topic_id, create_empty_log(params))
        except OSError as error:
            raise LogDirFailure(self.path, error) from error
        self._clean.add(key)
        return log

    def delete_log(self, log: Log) -> None:
        """Renames the folder, and removes it after `file.delete.delay.ms`."""
        name = f".{uuid.random_uuid().hex()}{DELETED_FOLDER}"
        renamed = f"{self.path}/{log.name[: _MAX_NAME_BYTES - len(name)]}{name}"
        log.close_files()
        try:
            os.rename(log.path, renamed)
        except OSError as error:
            raise LogDirFailure(self.path, error) from error
        key = (log.topic, log.partition)
        self.logs.pop(key, None)
        self._clean.discard(key)
        self.checkpoints.remove(key)
        self.cleaner_offsets.remove(key)
        self.schedule_delete([renamed], log.config.delete_delay_ms)

    def schedule_delete(self, paths: Iterable[str], delay_ms: int) -> None:
        """Removes files or folders, which were renamed before, after a delay."""
        self._pending_deletes.add(paths, delay_ms)

    def on_full(self) -> None:
        """The disk is full: files are deleted without a delay until there is space again."""
        self._is_full = True

    def begin_deletes(self, now_ms: int) -> DueDeletes:
        """Returns the deletes that are due, which may run in any thread."""
        if not self._is_full:
            return DueDeletes(self._pending_deletes.take_due(now_ms))
        self._is_full = self._lacks_space()
        return DueDeletes(self._pending_deletes.take_all())

    def _lacks_space(self) -> bool:
        return self.usable_bytes < self.total_bytes * _MIN_FREE_SHARE

    # Recovery and checkpoints

    def unrecovered_partitions(self) -> list[PartitionKey]:
        """Returns the partitions that were not opened since an unclean shutdown."""
        if self.was_clean_shutdown:
            return []
        return [key for key in self.partitions() if key not in self._clean]

    def begin_recovery(
        self,
        config_of: Callable[[str], LogConfig] = lambda topic: DEFAULT_CONFIG,
        progress: RecoveryProgress | None = None,
    ) -> DirectoryRecovery:
        """Returns the recovery of every log that needs it, which may run in any thread."""
        configs: dict[str, LogConfig] = {}
        logs = []
        for key in self.unrecovered_partitions():
            topic = key[0]
            if topic not in configs:
                configs[topic] = config_of(topic)
            logs.append((key, self._load_params(key, self._folder(*key), configs[topic], progress)))
        return DirectoryRecovery(self.path, logs)

    def finish_recovery(self, recovered: Iterable[RecoveredLog]) -> None:
        """These logs were recovered: opening them later needs no scan."""
        for log in recovered:
            self.checkpoints.on_recovered(log)
            self._clean.add(log.key)

    def begin_sync(self, max_logs: int | None = None) -> RecoveredSync:
        """Returns recovered logs that are neither open nor on disk, to sync them in any thread."""
        unsynced = islice(self.checkpoints.unsynced_ends, max_logs)
        recovery_points = self.checkpoints.recovery_points
        return RecoveredSync(self.path, [(key, recovery_points[key]) for key in unsynced])

    def finish_sync(self, sync: RecoveredSync) -> None:
        """These logs are on disk."""
        for key in sync.keys:
            self.checkpoints.on_synced(key)

    def recover_all(
        self, config_of: Callable[[str], LogConfig] = lambda topic: DEFAULT_CONFIG
    ) -> None:
        """Begins, runs and finishes a recovery on the calling thread."""
        self.finish_recovery(self.begin_recovery(config_of).run())

    def on_log_closed(self, log: Log) -> None:
        """Keeps the offsets of a closed log for when it is opened again."""
        key = (log.topic, log.partition)
        self.logs.pop(key, None)
        self.checkpoints.update(log)
        self._clean.add(key)

    def begin_checkpoint(
        self, high_watermarks: Mapping[PartitionKey, int] | None = None
    ) -> Checkpoint:
        """Returns a checkpoint of the current offsets, which may be written in any thread."""
        for log in self.logs.values():
            self.checkpoints.update(log)
        return self.checkpoints.begin_checkpoint(high_watermarks)

    def checkpoint(self, high_watermarks: Mapping[PartitionKey, int] | None = None) -> None:
        """Writes the checkpoint files on the calling thread."""
        self.begin_checkpoint(high_watermarks).write()

    def close(
        self,
        clean: bool = True,
        *,
        broker_epoch: int = -1,
        high_watermarks: Mapping[PartitionKey, int] | None = None,
    ) -> None:
        """Closes the directory; a clean shutdown flushes everything first."""
        try:
            if clean and self.failed is None:
                self._shut_down_cleanly(broker_epoch, high_watermarks)
        finally:
            for log in self.logs.values():
                log.close_files()
            self.logs.clear()
            self._lock.release()

    def _shut_down_cleanly(
        self, broker_epoch: int, high_watermarks: Mapping[PartitionKey, int] | None
    ) -> None:
        logs = list(self.logs.values())
        try:
            for log in logs:
                log.maintenance.seal()
            unflushed = [log for log in logs if log.recovery_point < log.log_end_offset]
            flushes = [log.flusher.begin() for log in unflushed]
            with ThreadPoolExecutor(_SYNC_THREADS) as threads:
                list(threads.map(Flush.sync, flushes))
            for log, flush in zip(unflushed, flushes, strict=True):
                log.flusher.finish(flush)
            sync = self.begin_sync()
            sync.run(_SYNC_THREADS)
            self.finish_sync(sync)
            self.checkpoint(high_watermarks)
            if self.cleaner_offsets.is_changed:
                self.cleaner_offsets.begin_checkpoint().write()
            if self.was_clean_shutdown or not self.unrecovered_partitions():
                write_clean_shutdown(self.path, broker_epoch)
        except LogDirFailure:
            raise
        except OSError as error:
            raise LogDirFailure(self.path, error) from error

    # Details

    def _folder(self, topic: str, partition: int) -> str:
        return f"{self.path}/{topic}-{partition}"

    def _load_params(
        self, key: PartitionKey, folder: str, config: LogConfig, progress: RecoveryProgress | None
    ) -> LogLoadParams:
        return LogLoadParams(
            name=f"{key[0]}-{key[1]}",
            folder=folder,
            config=config,
            files=self.files,
            log_start_offset=self.checkpoints.start_offsets.get(key),
            recovery_point=self.checkpoints.recovery_points.get(key, 0),
            is_clean=key in self._clean,
            is_flushed=key in self._clean and key not in self.checkpoints.unsynced_ends,
            was_compacted=key in self.cleaner_offsets,
            progress=progress,
        )

    def _check_topic_id(self, folder: str, topic_id: bytes) -> None:
        existing = read_partition_metadata(folder)
        if existing is None:
            write_partition_metadata(folder, topic_id)
        elif existing != topic_id:
            raise KafkaError(
                ErrorCode.INCONSISTENT_TOPIC_ID,
                f"{folder} belongs to topic id {uuid.to_text(existing)}, not to "
                f"{uuid.to_text(topic_id)}; its topic was deleted.",
            )
