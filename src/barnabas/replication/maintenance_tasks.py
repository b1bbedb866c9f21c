"""What a broker does for its partitions when nobody asks: in small steps between requests.

Each chore is a generator that yields after a bounded piece of work, so that a slice of
housekeeping takes about a millisecond however many partitions there are.
"""

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from barnabas.log import LogDirectory, LogDirFailure
from barnabas.log.background import Background
from barnabas.replication import partition_folders
from barnabas.replication.partition_folders import DELETED, FUTURE
from barnabas.replication.partition import Partition
from barnabas.replication.topic_config import Settings
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.replication.partitions import Partitions

STEPS_A_SLICE = 16
LOOKED_AT_IN_A_STEP = 64
"""Partitions that are only looked at, most of which need nothing."""

FLUSH_CHECK_MS = 1_000
PURGE_CHECK_MS = 5_000
BACKLOG_CHECK_MS = 1_000
ONCE_MS = 1 << 62

_FOLDER = re.compile(r"(.+)-(\d+)")
_LEFTOVER = re.compile(rf"(.+)-(\d+)\.[0-9a-f]{{32}}-({DELETED}|{FUTURE})")

_logger = logging.getLogger(__name__)

Steps = Callable[[int], Iterator[None]]


class Chore:
    """Something to do again and again: when it is due, and how far it is."""

    __slots__ = ("due_ms", "interval_ms", "steps", "under_way")

    def __init__(self, steps: Steps, interval_ms: int) -> None:
        self.steps = steps
        self.interval_ms = interval_ms
        self.due_ms = 0
        self.under_way: Iterator[None] | None = None

    def begin_if_due(self, now_ms: int) -> None:
        if self.under_way is None and self.wait_ms(now_ms) == 0:
            self.under_way = self.steps(now_ms)
            self.due_ms = now_ms + self.interval_ms

    def wait_ms(self, now_ms: int) -> int:
        """How long until it is due: at once if the clock was set back, or it might never be."""
        left_ms = self.due_ms - now_ms
        return left_ms if 0 < left_ms <= self.interval_ms else 0

    def step(self) -> None:
        """Do a bounded piece of it; what fails is tried again when it is next due."""
        assert self.under_way is not None
        try:
            next(self.under_way)
        except StopIteration:
            self.under_way = None
        except (KafkaError, OSError) as failure:
            _logger.error("Housekeeping: %s", failure)
            self.under_way = None


class Housekeeping:
    """The chores of a broker's partitions."""

    __slots__ = ("_background", "_chores", "_partitions", "_setting", "_written")

    def __init__(
        self, partitions: "Partitions", settings: Settings, background: Background
    ) -> None:
        self._partitions = partitions
        self._background = background
        self._written: dict[LogDirectory, object] = {}  # the offsets last checkpointed
        self._setting = setting = settings.broker
        self._chores = [
            Chore(partitions.catch_up, BACKLOG_CHECK_MS),
            Chore(partitions.moves.steps, BACKLOG_CHECK_MS),
            Chore(partitions.shrink, max(partitions.replica_lag_max_ms // 2, 1)),
            Chore(self._sort_folders, ONCE_MS),
            Chore(self._flush, min(setting("log.flush.scheduler.interval.ms"), FLUSH_CHECK_MS)),
            Chore(self._checkpoint, setting("replica.high.watermark.checkpoint.interval.ms")),
            Chore(self._expire_producers, setting("producer.id.expiration.check.interval.ms")),
            Chore(self._retain, setting("log.retention.check.interval.ms")),
            Chore(self._purge, PURGE_CHECK_MS),
        ]

    def run(self, now_ms: int) -> int:
        """One slice of what is due; in how many ms there will be more to do."""
        steps_left = STEPS_A_SLICE
        for chore in self._chores:
            chore.begin_if_due(now_ms)
            while chore.under_way is not None and steps_left:
                chore.step()
                steps_left -= 1
        if any(chore.under_way is not None for chore in self._chores):
            return 0
        return min(chore.wait_ms(now_ms) for chore in self._chores)

    def _flush(self, now_ms: int) -> Iterator[None]:
        """Flush what is due by time, and segments that were rolled."""
        for number, partition in enumerate(self._partitions.live()):
            if partition.log.flush_due(now_ms):
                self._partitions.flush(partition)
            if number % LOOKED_AT_IN_A_STEP == 0:
                yield

    def _expire_producers(self, now_ms: int) -> Iterator[None]:
        for partition in self._partitions.live():
            partition.log.expire_producers(now_ms)
            yield

    def _retain(self, now_ms: int) -> Iterator[None]:
        """Delete the segments that retention no longer wants."""
        for partition in self._partitions.live():
            self._delete_old_segments(partition, now_ms)
            yield
        for directory in self._partitions.disks.working():
            for topic, index in directory.partitions():
                if self._may_have_expired(directory, topic, index, now_ms):
                    with suppress(KafkaError):  # damaged: who asks for it is told
                        partition = self._partitions.by_name(topic, index)
                        self._delete_old_segments(partition, now_ms)
                yield

    def _delete_old_segments(self, partition: Partition, now_ms: int) -> None:
        if partition.failure is not None:
            return
        try:
            deleted = partition.log.delete_old_segments(now_ms, partition.high_watermark)
        except LogDirFailure as failure:
            self._partitions.lose(partition.directory, failure)
        else:
            if deleted:
                partition.let_all_look()

    def _may_have_expired(
        self, directory: LogDirectory, topic: str, index: int, now_ms: int
    ) -> bool:
        """Whether a partition nobody has opened has segments so old that it must be opened.

        Nothing was appended to it since the broker started, so its size needs no look.
        """
        partitions = self._partitions
        if partitions.find_live(topic, index) is not None:
            return False
        if partitions.image.topics.by_name(topic) is None:
            return False
        config = partitions.rules_of(topic).log
        if not config.delete or config.retention_ms < 0:
            return False
        written_ms = partition_folders.oldest_write_ms(directory, topic, index)
        return written_ms is not None and written_ms < now_ms - config.retention_ms

    def _checkpoint(self, _: int) -> Iterator[None]:
        """Write down high watermarks, start offsets and recovery points, where they have moved."""
        for directory in self._partitions.disks.working():
            high_watermarks = self._partitions.high_watermarks_in(directory)
            logs = directory.logs.values()
            offsets = (high_watermarks, [(log.start_offset, log.recovery_point) for log in logs])
            if offsets != self._written.get(directory):
                self._written[directory] = offsets
                checkpoint = directory.begin_checkpoint(high_watermarks)
                self._background.run(checkpoint.write, partial(self._written_to, directory))
            yield

    def _written_to(self, directory: LogDirectory, failure: BaseException | None) -> None:
        """Work in the background has ended."""
        if isinstance(failure, OSError):
            self._partitions.lose(directory, failure)
        elif failure is not None:
            raise failure
        else:
            self._partitions.disks.has_space(directory)

    def _purge(self, now_ms: int) -> Iterator[None]:
        for directory in self._partitions.disks.working():
            purge = directory.begin_purge(now_ms)
            if purge:
                self._background.run(purge.remove, partial(self._written_to, directory))
            yield

    def _sort_folders(self, _: int) -> Iterator[None]:
        """Once after the start: what deletions and moves left unfinished, and what is nobody's."""
        for directory in self._partitions.disks.working():
            for number, name in enumerate(partition_folders.names_in(directory)):
                if (leftover := _LEFTOVER.fullmatch(name)) is not None:
                    self._finish(directory, leftover)
                elif (folder := _FOLDER.fullmatch(name)) is not None:
                    self._partitions.disown_if_stray(directory, folder[1], int(folder[2]))
                if number % LOOKED_AT_IN_A_STEP == 0:
                    yield

    def _finish(self, directory: LogDirectory, leftover: re.Match[str]) -> None:
        topic, index, why = leftover[1], int(leftover[2]), leftover[3]
        path = f"{directory.path}/{leftover[0]}"
        if why == DELETED:
            directory.doom([path], self._setting("log.segment.delete.delay.ms"))
        elif not self._partitions.moves.is_filling(path):
            # The move starts again from nothing: what was copied is not known to be on disk.
            directory.doom([path], delay_ms=0)
            with suppress(KafkaError):
                self._partitions.move(topic, index, directory.path)
