"""Bringing logs to the disk without stopping the loop: group commit, one flush a log at a time."""

from collections.abc import Callable

from barnabas.log import LogDirectory
from barnabas.replication.background import Background
from barnabas.replication.partition import Partition


class Flushing:
    """The flushes under way. What is appended meanwhile waits for the next one, all together."""

    __slots__ = ("_background", "_lose", "_under_way")

    def __init__(
        self, background: Background, lose: Callable[[LogDirectory, OSError], None]
    ) -> None:
        self._background = background
        self._lose = lose
        self._under_way: dict[Partition, bool] = {}  # whether to flush again afterwards

    def flush(self, partition: Partition) -> None:
        if partition in self._under_way:
            self._under_way[partition] = True
            return
        self._under_way[partition] = False
        log = partition.log
        flush = log.begin_flush()

        def done(failure: BaseException | None) -> None:
            again = self._under_way.pop(partition)
            if failure is not None:
                self._failed(partition, failure)
                return
            log.finish_flush(flush)
            partition.flushed()
            if again:
                self.flush(partition)

        self._background.run(flush.sync, done)

    def _failed(self, partition: Partition, failure: BaseException) -> None:
        if not isinstance(failure, OSError):
            raise failure
        # After a failed fsync nobody knows what the disk has; to try again would be to guess.
        self._lose(partition.directory, failure)
