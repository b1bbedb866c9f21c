"""The logs of this broker that the cleaner may clean."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from barnabas.log import Log, LogDirectory
from barnabas.log.cleaner.log_cleaner import CompactedLog
from barnabas.replication import partition_folders
from barnabas.replication.partition import Partition
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.replication.partitions import Partitions

UNOPENED_CHECK_MS = 600_000
"""How often to look for dirty logs among the partitions that nobody has used since the start."""

CHECKED_PER_STEP = 4
"""How many partitions one step checks. For each it may read a folder, or open a log."""


class CompactedPartitions:
    """The partitions whose topic has `compact` in its cleanup.policy (a CleanerHost)."""

    __slots__ = ("_clock", "_next_check_ms", "_partitions")

    def __init__(self, partitions: "Partitions", clock: Callable[[], int]) -> None:
        self._partitions = partitions
        self._clock = clock
        self._next_check_ms = 0

    def compacted_logs(self) -> Iterator[CompactedLog]:
        """Yields the logs that may be cleaned now."""
        for partition in self._partitions.opened():
            if self._may_be_cleaned(partition):
                yield CompactedLog(partition.log, partition.last_stable_offset)

    def open_compacted_logs(self) -> None:
        """Opens the compacted logs that nobody has used since the start."""
        for directory in self._partitions.log_dirs.online():
            for topic, index in directory.partitions():
                if self._is_unopened(topic, index):
                    self._open(topic, index)

    def open_dirty_logs(self) -> Iterator[None]:
        """Opens the compacted logs that may be dirty, though nobody has used them since the start.

        Does so every UNOPENED_CHECK_MS, with some partitions per step.
        """
        now_ms = self._clock()
        if 0 < self._next_check_ms - now_ms <= UNOPENED_CHECK_MS:
            return
        self._next_check_ms = now_ms + UNOPENED_CHECK_MS
        for directory in self._partitions.log_dirs.online():
            for number, (topic, index) in enumerate(directory.partitions()):
                if number % CHECKED_PER_STEP == 0:
                    yield
                if self._is_unopened(topic, index):
                    with suppress(FileNotFoundError):  # deleted meanwhile
                        if self._may_be_dirty(directory, topic, index, now_ms):
                            self._open(topic, index)

    def find_compacted_log(self, log: Log) -> CompactedLog | None:
        """Returns the log with its present offset; None if it must not be cleaned any more."""
        partition = self._partitions.find_opened(log.topic, log.partition)
        if partition is None or partition.log is not log or not self._may_be_cleaned(partition):
            return None
        return CompactedLog(log, partition.last_stable_offset)

    def handle_log_dir_failure(self, directory: LogDirectory, failure: OSError) -> None:
        self._partitions.handle_log_dir_failure(directory, failure)

    def _may_be_cleaned(self, partition: Partition) -> bool:
        """A log that moves to another directory is not changed until it is there."""
        return (
            partition.log.config.compact
            and partition.error_code is None
            and partition not in self._partitions.replica_moves.in_progress
        )

    def _is_unopened(self, topic: str, index: int) -> bool:
        """Whether it is a compacted partition that nobody has used since the start."""
        partitions = self._partitions
        return (
            partitions.find_opened(topic, index) is None
            and partitions.image.topics.by_name(topic) is not None
            and partitions.config_of(topic).log.compact
        )

    def _open(self, topic: str, index: int) -> None:
        with suppress(KafkaError):  # corrupt, or not a replica of this broker
            self._partitions.get_by_name(topic, index)

    def _may_be_dirty(self, directory: LogDirectory, topic: str, index: int, now_ms: int) -> bool:
        if (topic, index) in directory.cleaner_offsets:
            return True  # it may have tombstones that can be removed
        roll_ms = self._partitions.config_of(topic).log.roll_ms
        count, written_ms = partition_folders.segments_with_records(directory, topic, index)
        return count > 1 or (count == 1 and written_ms < now_ms - roll_ms)
