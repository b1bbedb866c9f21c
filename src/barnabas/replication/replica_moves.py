"""Moving replicas between the log directories of this broker (AlterReplicaLogDirs, KIP-113).

The records are copied into a future log, slice by slice, while the current log serves requests.
When the future log has caught up and is on disk, it replaces the current log between two requests.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from barnabas.log import Log, LogDirectory
from barnabas.log.directory.future_log import create_future_log, promote_future_log
from barnabas.log.flush import BackgroundExecutor
from barnabas.replication.partition import Partition
from barnabas.replication.partition_folders import DELETED, FUTURE
from barnabas.wire.errors import KafkaError
from barnabas.wire.records.batch import iterate_batches

SLICE_BYTES = 256 * 1024

_logger = logging.getLogger(__name__)


class ReplicaMove:
    """The move of one replica to another log directory."""

    __slots__ = ("future", "is_flushed", "is_flushing", "partition", "target")

    def __init__(self, partition: Partition, target: LogDirectory) -> None:
        log = partition.log
        self.partition = partition
        self.target = target
        self.future = create_future_log(
            target,
            log.topic,
            log.partition,
            log.topic_id,
            log.config,
            start_offset=log.log_start_offset,
        )
        self.is_flushing = False
        self.is_flushed = False
        """Everything is on disk, except what was appended during the last flush."""

    @property
    def lag(self) -> int:
        """By how many offsets the future log is behind."""
        return max(self.partition.log.log_end_offset - self.future.log_end_offset, 0)

    def copy_next_slice(self, now_ms: int) -> bool:
        """Copies the next slice; returns False if there is none."""
        log, future = self.partition.log, self.future
        if future.log_end_offset < log.log_start_offset:
            future.truncate_fully_and_start_at(log.log_start_offset)
        records = log.read(future.log_end_offset, SLICE_BYTES, upto=log.log_end_offset)
        if records is None:
            return False
        batches = records.read()
        _, first = next(iterate_batches(batches))
        if first.base_offset < future.log_start_offset == future.log_end_offset:
            # DeleteRecords may have left the start of the log within a batch.
            future.truncate_fully_and_start_at(first.base_offset)
        future.append_as_follower(batches, now_ms)
        self.follow_log_start_offset()
        return True

    def follow_log_start_offset(self) -> None:
        """Deletes from the future log what was deleted from the current one."""
        self.future.advance_log_start_offset(
            min(self.partition.log.log_start_offset, self.future.log_end_offset)
        )

    def follow_truncation(self) -> None:
        """Truncates the future log as the current one was truncated."""
        self.future.truncate_to(self.partition.log.log_end_offset)
        self.is_flushed = False

    def cancel(self) -> None:
        self.future.close_files()
        folder = Path(self.future.path)
        # Renamed, so that a restart does not resume the move.
        renamed = folder.with_name(f"{folder.name.removesuffix(FUTURE)}{DELETED}")
        with suppress(OSError):
            folder.rename(renamed)
            self.target.schedule_delete([str(renamed)], delay_ms=0)


class ReplicaMoves:
    """All moves in progress. `on_moved` is called after each, with the old log."""

    __slots__ = ("_background", "_on_log_dir_failure", "_on_moved", "in_progress")

    def __init__(
        self,
        background: BackgroundExecutor,
        on_log_dir_failure: Callable[[LogDirectory, OSError], None],
        on_moved: Callable[[Partition, Log], None],
    ) -> None:
        self.in_progress: dict[Partition, ReplicaMove] = {}
        self._background = background
        self._on_log_dir_failure = on_log_dir_failure
        self._on_moved = on_moved

    def start(self, partition: Partition, target: LogDirectory) -> None:
        """Starts a move, and cancels a move of the replica to another directory."""
        move = self.in_progress.get(partition)
        if move is not None:
            if move.target is target:
                return
            self.cancel(partition)
        if partition.directory is not target:
            self.in_progress[partition] = ReplicaMove(partition, target)

    def cancel(self, partition: Partition) -> None:
        move = self.in_progress.pop(partition, None)
        if move is not None:
            move.cancel()

    def on_truncated(self, partition: Partition) -> None:
        """The replica's log was truncated to be like its leader's."""
        move = self.in_progress.get(partition)
        if move is None:
            return
        try:
            move.follow_truncation()
        except OSError as failure:
            self._fail(move, failure)

    def has_future_log_in(self, path: str) -> bool:
        """Returns whether the folder has the future log of a move."""
        return any(move.future.path == path for move in self.in_progress.values())

    def run(self, now_ms: int) -> Iterator[None]:
        """Advances every move; each step copies one slice."""
        for move in list(self.in_progress.values()):
            while self.in_progress.get(move.partition) is move and not move.is_flushing:
                try:
                    if not move.copy_next_slice(now_ms):
                        self._finish_if_flushed(move)
                except (KafkaError, OSError) as failure:
                    self._fail(move, failure)
                yield

    def _finish_if_flushed(self, move: ReplicaMove) -> None:
        if not move.is_flushed:
            self._flush(move)
            return
        partition, old = move.partition, move.partition.log
        del self.in_progress[partition]
        move.follow_log_start_offset()
        partition.replace_log(promote_future_log(move.future))
        _logger.info("%s-%d was moved to %s", old.topic, old.partition, move.target.path)
        self._on_moved(partition, old)

    def _flush(self, move: ReplicaMove) -> None:
        """Flushes the copy, which must be on disk before the original is deleted."""
        flush = move.future.flusher.begin()

        def done(failure: BaseException | None) -> None:
            move.is_flushing = False
            if failure is None:
                move.future.flusher.finish(flush)
                move.is_flushed = True
            elif isinstance(failure, OSError):
                self._fail(move, failure)
            else:
                raise failure

        move.is_flushing = True
        self._background.run(flush.sync, done)

    def _fail(self, move: ReplicaMove, failure: KafkaError | OSError) -> None:
        partition = move.partition
        _logger.error("%r stays in %s: %s", partition, partition.directory.path, failure)
        self.cancel(partition)
        if isinstance(failure, OSError):
            failed_path = getattr(failure, "directory", move.target.path)
            is_source = failed_path == partition.directory.path
            self._on_log_dir_failure(partition.directory if is_source else move.target, failure)
