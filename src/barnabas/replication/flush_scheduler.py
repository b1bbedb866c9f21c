"""Flushing logs in the background: group commit, and one flush at a time for each log."""

from collections.abc import Callable

from barnabas.log import LogDirectory, LogDirFailure
from barnabas.log.flush import BackgroundExecutor
from barnabas.replication.log_dirs import OUT_OF_FILES
from barnabas.replication.partition import Partition

MAX_CONCURRENT_FLUSHES = 16
"""Each flush keeps its files open until they are on disk."""


class FlushScheduler:
    """The flushes in progress. What is appended meanwhile is flushed together by the next one."""

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
