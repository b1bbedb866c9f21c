"""The periodic tasks of a broker's partitions, in small steps between requests.

Each task is a generator that yields after a bounded piece of work, so that a slice takes about a
millisecond however many partitions there are.
"""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from barnabas.log import LogDirectory, LogDirFailure
from barnabas.log.flush import BackgroundExecutor
from barnabas.replication import partition_folders
from barnabas.replication.log_dirs import OUT_OF_FILES
from barnabas.replication.partition import Partition
from barnabas.replication.partition_folders import FUTURE
from barnabas.replication.topic_config import ConfigProvider
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.replication.partitions import Partitions

STEPS_PER_SLICE = 16
CHECKED_PER_STEP = 64
"""How many partitions one step checks, most of which need nothing."""

FLUSH_CHECK_MS = 1_000
DELETE_CHECK_MS = 1_000
CACHED_INDEX_MS = 60_000
"""How long an index is assumed to stay in the page cache after it was read."""

BACKLOG_CHECK_MS = 1_000
CLEANER_CHECK_MS = 1_000
ONCE_MS = 1 << 62

_FOLDER = re.compile(r"(.+)-(\d+)")
_INTERRUPTED_MOVE = re.compile(rf"(.+)-(\d+)\.[0-9a-f]{{32}}-{FUTURE}")


MAX_CONCURRENT_FLUSHES = 16
"""Each flush keeps its files open until they are on disk."""


_logger = logging.getLogger(__name__)

Steps = Callable[[int], Iterator[None]]


class MaintenanceTask:
    """A periodic task: when it is due, and the rest of its current run."""

    __slots__ = ("due_ms", "interval_ms", "steps", "steps_left")

    def __init__(self, steps: Steps, interval_ms: int) -> None:
        self.steps = steps
        self.interval_ms = interval_ms
        self.due_ms = 0
        self.steps_left: Iterator[None] | None = None

    def start_if_due(self, now_ms: int) -> None:
        if self.steps_left is None and self.wait_ms(now_ms) == 0:
            self.steps_left = self.steps(now_ms)
            self.due_ms = now_ms + self.interval_ms

    def wait_ms(self, now_ms: int) -> int:
        """Returns the time until it is due; 0 if the clock was set back, or it might never run."""
        left_ms = self.due_ms - now_ms
        return left_ms if 0 < left_ms <= self.interval_ms else 0

    def step(self) -> None:
        """Runs one step; a task that fails runs again when it is next due."""
        assert self.steps_left is not None
        try:
            next(self.steps_left)
        except StopIteration:
            self.steps_left = None
        except (KafkaError, OSError) as failure:
            _logger.error("A maintenance task failed: %s", failure)
            self.steps_left = None


class MaintenanceTasks:
    """The periodic tasks of a broker's partitions."""

    __slots__ = ("_background", "_checkpointed", "_partitions", "_tasks")

    def __init__(
        self, partitions: "Partitions", settings: ConfigProvider, background: BackgroundExecutor
    ) -> None:
        self._partitions = partitions
        self._background = background
        self._checkpointed: dict[LogDirectory, object] = {}  # the offsets last checkpointed
        setting = settings.broker
        self._tasks = [
            MaintenanceTask(partitions.create_and_delete_folders, BACKLOG_CHECK_MS),
            MaintenanceTask(partitions.replica_moves.run, BACKLOG_CHECK_MS),
            MaintenanceTask(partitions.shrink_isrs, max(partitions.replica_lag_max_ms // 2, 1)),
            MaintenanceTask(self._clean_up_folders, ONCE_MS),
            MaintenanceTask(
                self._flush, min(setting("log.flush.scheduler.interval.ms"), FLUSH_CHECK_MS)
            ),
            MaintenanceTask(
                self._checkpoint, setting("replica.high.watermark.checkpoint.interval.ms")
            ),
            MaintenanceTask(
                self._expire_producers, setting("producer.id.expiration.check.interval.ms")
            ),
            MaintenanceTask(self._apply_retention, setting("log.retention.check.interval.ms")),
            MaintenanceTask(partitions.cleaner.run, CLEANER_CHECK_MS),
            MaintenanceTask(self._delete_files, DELETE_CHECK_MS),
            MaintenanceTask(self._expire_cached_indexes, CACHED_INDEX_MS),
        ]

    def run(self, now_ms: int) -> int:
        """Runs one slice of the tasks that are due; returns in how many ms to call again."""
        budget = STEPS_PER_SLICE
        for task in self._tasks:
            task.start_if_due(now_ms)
            while task.steps_left is not None and budget:
                task.step()
                budget -= 1
        if any(task.steps_left is not None for task in self._tasks):
            return 0
        return min(task.wait_ms(now_ms) for task in self._tasks)

    def _flush(self, now_ms: int) -> Iterator[None]:
        """Flushes the logs that are due by time, and rolled segments."""
        for number, partition in enumerate(self._partitions.opened()):
            if partition.log.flusher.is_due(now_ms):
                self._partitions.request_flush(partition)
            if number % CHECKED_PER_STEP == 0:
                yield

    def _expire_producers(self, now_ms: int) -> Iterator[None]:
        for partition in self._partitions.opened():
            partition.log.remove_expired_producers(now_ms)
            yield

    def _apply_retention(self, now_ms: int) -> Iterator[None]:
        """Deletes the segments that retention does not keep."""
        for partition in self._partitions.opened():
            self._delete_old_segments(partition, now_ms)
            yield
        for directory in self._partitions.log_dirs.online():
            for topic, index in directory.partitions():
                if self._may_have_expired(directory, topic, index, now_ms):
                    with suppress(KafkaError):  # corrupt: requests for it get the error
                        partition = self._partitions.get_by_name(topic, index)
                        self._delete_old_segments(partition, now_ms)
                yield

    def _delete_old_segments(self, partition: Partition, now_ms: int) -> None:
        if partition.error_code is not None:
            return
        try:
            deleted = partition.log.maintenance.delete_old_segments(
                now_ms, partition.high_watermark
            )
        except LogDirFailure as failure:
            self._partitions.handle_log_dir_failure(partition.directory, failure)
        else:
            if deleted:
                partition.notify_all()

    def _may_have_expired(
        self, directory: LogDirectory, topic: str, index: int, now_ms: int
    ) -> bool:
        """Returns whether a partition that was never opened has segments to delete by age.

        Nothing was appended to it since the broker started, so its size has not changed.
        """
        partitions = self._partitions
        if partitions.find_opened(topic, index) is not None:
            return False
        if partitions.image.topics.by_name(topic) is None:
            return False
        config = partitions.config_of(topic).log
        if not config.delete or config.retention_ms < 0:
            return False
        written_ms = partition_folders.oldest_write_ms(directory, topic, index)
        return written_ms is not None and written_ms < now_ms - config.retention_ms

    def _expire_cached_indexes(self, _: int) -> Iterator[None]:
        """Has every index loaded again before it is next searched."""
        for directory in self._partitions.log_dirs.online():
            directory.files.generation += 1
            yield

    def _checkpoint(self, _: int) -> Iterator[None]:
        """Checkpoints high watermarks, log start offsets and recovery points that have changed."""
        for directory in self._partitions.log_dirs.online():
            high_watermarks = self._partitions.high_watermarks_in(directory)
            logs = directory.logs.values()
            offsets = (
                high_watermarks,
                [(log.log_start_offset, log.recovery_point) for log in logs],
            )
            if offsets != self._checkpointed.get(directory):
                self._checkpointed[directory] = offsets
                checkpoint = directory.begin_checkpoint(high_watermarks)
                self._background.run(checkpoint.write, partial(self._on_background_done, directory))
            yield

    def _on_background_done(self, directory: LogDirectory, failure: BaseException | None) -> None:
        """A task in the background has ended."""
        if isinstance(failure, OSError):
            self._partitions.handle_log_dir_failure(directory, failure)
        elif failure is not None:
            raise failure
        else:
            self._partitions.log_dirs.on_write_succeeded(directory)

    def _delete_files(self, now_ms: int) -> Iterator[None]:
        for directory in self._partitions.log_dirs.online():
            deletes = directory.begin_deletes(now_ms)
            if deletes:
                self._background.run(deletes.run, partial(self._on_background_done, directory))
            yield

    def _clean_up_folders(self, _: int) -> Iterator[None]:
        """Runs once: starts interrupted moves again, marks stray folders."""
        for directory in self._partitions.log_dirs.online():
            for number, name in enumerate(partition_folders.list_names(directory)):
                if (interrupted := _INTERRUPTED_MOVE.fullmatch(name)) is not None:
                    self._restart_move(directory, interrupted)
                elif (folder := _FOLDER.fullmatch(name)) is not None:
                    self._partitions.mark_if_stray(directory, folder[1], int(folder[2]))
                if number % CHECKED_PER_STEP == 0:
                    yield

    def _restart_move(self, directory: LogDirectory, interrupted: re.Match[str]) -> None:
        """Starts a move again with an empty log: the copy may not be on disk."""
        path = f"{directory.path}/{interrupted[0]}"
        if self._partitions.replica_moves.has_future_log_in(path):
            return
        directory.schedule_delete([path], delay_ms=0)
        with suppress(KafkaError):
            self._partitions.move_to_log_dir(interrupted[1], int(interrupted[2]), directory.path)


class FlushScheduler:
    """Flushes logs in the background, one flush at a time for each log (group commit).

    What is appended meanwhile is flushed together by the next one.
    """

    __slots__ = ("_background", "_in_progress", "_on_log_dir_failure", "_queued")

    def __init__(
        self,
        background: BackgroundExecutor,
        on_log_dir_failure: Callable[[LogDirectory, OSError], None],
    ) -> None:
        self._background = background
        self._on_log_dir_failure = on_log_dir_failure
        self._queued: dict[Partition, None] = {}
        self._in_progress: dict[Partition, bool] = {}  # whether to flush again afterwards

    def request(self, partition: Partition) -> None:
        if partition in self._in_progress:
            self._in_progress[partition] = True
        elif len(self._in_progress) >= MAX_CONCURRENT_FLUSHES:
            self._queued[partition] = None
        elif partition.error_code is None:
            self._begin(partition)

    def _begin(self, partition: Partition) -> None:
        log = partition.log
        try:
            flush = log.flusher.begin()
        except LogDirFailure as failure:
            self._on_log_dir_failure(partition.directory, failure)
            return
        self._in_progress[partition] = False

        def done(failure: BaseException | None) -> None:
            again = self._in_progress.pop(partition)
            if again:
                self._queued[partition] = None
            if failure is None:
                log.flusher.finish(flush)
                partition.on_flushed()
            elif isinstance(failure, LogDirFailure) and failure.errno in OUT_OF_FILES:
                log.flusher.retry(flush)
                self._on_log_dir_failure(partition.directory, failure)
            else:
                self._failed(partition, failure)
            if self._queued:
                queued = next(iter(self._queued))
                del self._queued[queued]
                self.request(queued)

        self._background.run(flush.sync, done)

    def _failed(self, partition: Partition, failure: BaseException) -> None:
        if not isinstance(failure, LogDirFailure):
            raise failure
        # After a failed fsync the content of the disk is unknown, even if the disk was only full:
        # a retry could succeed without the data.
        partition.directory.failed = failure
        self._on_log_dir_failure(partition.directory, failure)
