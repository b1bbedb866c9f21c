"""Moving replicas between the log directories of this broker (AlterReplicaLogDirs, KIP-113).

The records are copied into a future log, slice by slice, while the present one goes on. When the
future log has caught up and is on disk, it takes the other's place between two requests.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from barnabas.log import Log, LogDirectory
from barnabas.log.background import Background
from barnabas.log.directory.future_log import adopt, create_future
from barnabas.replication.partition_folders import DELETED, FUTURE
from barnabas.replication.partition import Partition
from barnabas.wire.errors import KafkaError
from barnabas.wire.records.batch import iterate_batches

COPIED_AT_ONCE_BYTES = 256 * 1024

_logger = logging.getLogger(__name__)


class Move:
    """One replica on its way."""

    __slots__ = ("future", "is_flushing", "is_nearly_safe", "partition", "target")

    def __init__(self, partition: Partition, target: LogDirectory) -> None:
        log = partition.log
        self.partition = partition
        self.target = target
        self.future = create_future(
            target,
            log.topic,
            log.partition,
            log.topic_id,
            log.config,
            start_offset=log.start_offset,
        )
        self.is_flushing = False
        self.is_nearly_safe = False
        """The disk has all but what was appended while it was being written to."""

    @property
    def lag(self) -> int:
        """How many offsets the future log is behind."""
        return max(self.partition.log.end_offset - self.future.end_offset, 0)

    def copy(self, now_ms: int) -> bool:
        """Copy the next slice; False if there is none."""
        log, future = self.partition.log, self.future
        if future.end_offset < log.start_offset:
            future.truncate_fully_and_start_at(log.start_offset)
        records = log.read(future.end_offset, COPIED_AT_ONCE_BYTES, upto=log.end_offset)
        if records is None:
            return False
        batches = records.read()
        _, first = next(iterate_batches(batches))
        if first.base_offset < future.start_offset == future.end_offset:
            # DeleteRecords may have left the start of the log within a batch.
            future.truncate_fully_and_start_at(first.base_offset)
        future.append_as_follower(batches, now_ms)
        self.follow_start()
        return True

    def follow_start(self) -> None:
        """Records that were deleted meanwhile must not come back with the move."""
        self.future.advance_start(min(self.partition.log.start_offset, self.future.end_offset))

    def follow_end(self) -> None:
        """What was cut off the present log is not to be had from the future one either."""
        self.future.truncate_to(self.partition.log.end_offset)
        self.is_nearly_safe = False

    def give_up(self) -> None:
        self.future.abandon()
        folder = Path(self.future.path)
        # Renamed, so that a restart does not take the move up again.
        renamed = folder.with_name(f"{folder.name.removesuffix(FUTURE)}{DELETED}")
        with suppress(OSError):
            folder.rename(renamed)
            self.target.doom([str(renamed)], delay_ms=0)


class Moves:
    """All replicas on their way. `swapped` is told of each that has arrived, with its old log."""

    __slots__ = ("_background", "_lose", "_swapped", "under_way")

    def __init__(
        self,
        background: Background,
        lose: Callable[[LogDirectory, OSError], None],
        swapped: Callable[[Partition, Log], None],
    ) -> None:
        self.under_way: dict[Partition, Move] = {}
        self._background = background
        self._lose = lose
        self._swapped = swapped

    def begin(self, partition: Partition, target: LogDirectory) -> None:
        """Move the replica there, whatever move of it was under way before."""
        move = self.under_way.get(partition)
        if move is not None:
            if move.target is target:
                return
            self.cancel(partition)
        if partition.directory is not target:
            self.under_way[partition] = Move(partition, target)

    def cancel(self, partition: Partition) -> None:
        move = self.under_way.pop(partition, None)
        if move is not None:
            move.give_up()

    def truncated(self, partition: Partition) -> None:
        """The replica's log was cut to be like its leader's."""
        move = self.under_way.get(partition)
        if move is None:
            return
        try:
            move.follow_end()
        except OSError as failure:
            self._fail(move, failure)

    def is_filling(self, path: str) -> bool:
        """Whether a future log is in that folder."""
        return any(move.future.path == path for move in self.under_way.values())

    def steps(self, now_ms: int) -> Iterator[None]:
        """Advance every move; each step is a slice of one."""
        for move in list(self.under_way.values()):
            while self.under_way.get(move.partition) is move and not move.is_flushing:
                try:
                    if not move.copy(now_ms):
                        self._arrive(move)
                except (KafkaError, OSError) as failure:
                    self._fail(move, failure)
                yield

    def _arrive(self, move: Move) -> None:
        if not move.is_nearly_safe:
            self._flush(move)
            return
        partition, old = move.partition, move.partition.log
        del self.under_way[partition]
        move.follow_start()
        partition.move_to(adopt(move.future))
        _logger.info("%s-%d now lives in %s", old.topic, old.partition, move.target.path)
        self._swapped(partition, old)

    def _flush(self, move: Move) -> None:
        """The copy must be as safe as the original before the original goes."""
        flush = move.future.begin_flush()

        def done(failure: BaseException | None) -> None:
            move.is_flushing = False
            if failure is None:
                move.future.finish_flush(flush)
                move.is_nearly_safe = True
            elif isinstance(failure, OSError):
                self._fail(move, failure)
            else:
                raise failure

        move.is_flushing = True
        self._background.run(flush.sync, done)

    def _fail(self, move: Move, failure: KafkaError | OSError) -> None:
        partition = move.partition
        _logger.error("%r stays in %s: %s", partition, partition.directory.path, failure)
        self.cancel(partition)
        if isinstance(failure, OSError):
            where = getattr(failure, "directory", move.target.path)
            is_source = where == partition.directory.path
            self._lose(partition.directory if is_source else move.target, failure)
