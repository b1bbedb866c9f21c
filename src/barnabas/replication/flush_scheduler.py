"""Bringing logs to the disk without stopping the loop: group commit, one flush a log at a time."""

from collections.abc import Callable

from barnabas.log import LogDirectory, LogDirFailure
from barnabas.log.background import Background
from barnabas.replication.log_dirs import OUT_OF_FILES
from barnabas.replication.replica import Replica

AT_ONCE = 16
"""How many logs are flushed at once: each keeps its files open until the disk has them."""


class Flushing:
    """The flushes under way. What is appended meanwhile waits for the next one, all together."""

    __slots__ = ("_background", "_lose", "_queued", "_under_way")

    def __init__(
        self, background: Background, lose: Callable[[LogDirectory, OSError], None]
    ) -> None:
        self._background = background
        self._lose = lose
        self._queued: dict[Replica, None] = {}
        self._under_way: dict[Replica, bool] = {}  # whether to flush again afterwards

    def flush(self, partition: Replica) -> None:
        if partition in self._under_way:
            self._under_way[partition] = True
        elif len(self._under_way) >= AT_ONCE:
            self._queued[partition] = None
        elif partition.failure is None:
            self._begin(partition)

    def _begin(self, partition: Replica) -> None:
        log = partition.log
        try:
            flush = log.begin_flush()
        except LogDirFailure as failure:
            self._lose(partition.directory, failure)
            return
        self._under_way[partition] = False

        def done(failure: BaseException | None) -> None:
            again = self._under_way.pop(partition)
            if again:
                self._queued[partition] = None
            if failure is None:
                log.finish_flush(flush)
                partition.flushed()
            elif isinstance(failure, LogDirFailure) and failure.errno in OUT_OF_FILES:
                log.take_back(flush)
                self._lose(partition.directory, failure)
            else:
                self._failed(partition, failure)
            if self._queued:
                following = next(iter(self._queued))
                del self._queued[following]
                self.flush(following)

        self._background.run(flush.sync, done)

    def _failed(self, partition: Replica, failure: BaseException) -> None:
        if not isinstance(failure, LogDirFailure):
            raise failure
        # After a failed fsync nobody knows what the disk has; to try again would be to guess,
        # even where the disk was only full.
        partition.directory.failed = failure
        self._lose(partition.directory, failure)
