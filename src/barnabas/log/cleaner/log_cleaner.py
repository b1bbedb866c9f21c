"""Chooses the logs to clean, and runs their cleanings.

Everything here runs on the event loop; only the steps of a cleaning run in threads. While a step
runs, the log may change: segments are deleted or truncated, the policy becomes another one, the
partition is deleted or moves to another directory. A group of segments is put in place only if the
log still has all segments that the cleaning has read. Otherwise it ends, and the log stays as it
was.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol

from barnabas.log.cleaner.cleanable import (
    CleanableRange,
    LogMarks,
    find_cleanable_range,
    is_idle,
    next_look_ms,
)
from barnabas.log.cleaner.cleaner_stats import CleanerStats, describe_cleaning
from barnabas.log.cleaner.cleaning import CleanerLimits, Cleaning, FinishedGroup
from barnabas.log.cleaner.compaction_state import (
    NO_HORIZON_MS,
    UNKNOWN_HORIZON_MS,
    QuietLook,
)
from barnabas.log.cleaner.horizon_scan import HorizonScan
from barnabas.log.cleaner.throttler import CleanerThrottler
from barnabas.log.directory.log_directory import LogDirectory
from barnabas.log.errors import DISK_FULL, LogDirFailure
from barnabas.log.flush import BackgroundExecutor
from barnabas.log.log import Log
from barnabas.wire.errors import KafkaError

CHECKED_PER_STEP = 16
"""How many logs one step of a round looks at."""

CHECKPOINT_INTERVAL_MS = 1_000
"""How often the offsets of cleaned logs are written, while more logs are cleaned."""

_MAX_MAP_BYTES = (1 << 31) - 1

_logger = logging.getLogger(__name__)


class CompactedLog(NamedTuple):
    """A log with `compact` in its cleanup.policy, and the offset up to which it is decided."""

    log: Log
    last_stable_offset: int


class CleanerHost(Protocol):
    """The partitions whose logs are cleaned."""

    def compacted_logs(self) -> Iterable[CompactedLog]:
        """Returns the logs that may be cleaned now."""

    def open_compacted_logs(self) -> None:
        """Opens the compacted logs that nobody has used since the start."""

    def open_dirty_logs(self) -> Iterator[None]:
        """Opens those of them that may be dirty, some per step."""

    def find_compacted_log(self, log: Log) -> CompactedLog | None:
        """Returns the log with its present offset; None if it must not be cleaned any more."""

    def handle_log_dir_failure(self, directory: LogDirectory, failure: OSError) -> None:
        """A disk has failed, or is full."""


class DirtyLog(NamedTuple):
    """A log that is waiting for its cleaning. Those that must be cleaned come first."""

    must_clean: bool
    dirty_ratio: float
    log: Log


Job = Cleaning | HorizonScan


class LogCleaner:
    """Cleans the compacted logs of a broker, the dirtiest first."""

    def __init__(
        self,
        host: CleanerHost,
        setting: Callable[[str], Any],
        background: BackgroundExecutor,
        clock: Callable[[], int],
    ) -> None:
        self.stats = CleanerStats(clock())
        self._host = host
        self._setting = setting
        self._background = background
        self._clock = clock
        self.throttler = CleanerThrottler(lambda: setting("log.cleaner.io.max.bytes.per.second"))
        self._waiting: deque[DirtyLog] = deque()
        self._jobs: set[Job] = set()
        self._next_round_ms = 0
        self._unwritten: dict[LogDirectory, None] = {}  # whose checkpoints lack a cleaned log
        self._checkpointed_ms = 0
        self._is_closed = False
        self._when_idle: list[Callable[[], None]] = []

    # Rounds

    def run(self, now_ms: int) -> Iterator[None]:
        """Looks at every compacted log if a round is due, and begins to clean the dirty ones."""
        backoff_ms = self._setting("log.cleaner.backoff.ms")
        is_waiting = 0 < self._next_round_ms - now_ms <= backoff_ms
        is_busy = len(self._jobs) >= self._setting("log.cleaner.threads")
        if is_waiting or is_busy or self._waiting or self._when_idle or self._is_closed:
            return
        if not self._setting("log.cleaner.enable"):
            return
        self._next_round_ms = now_ms + backoff_ms
        yield from self._host.open_dirty_logs()
        self.stats.begin_round(now_ms)
        dirty: list[DirtyLog] = []
        for number, (log, last_stable_offset) in enumerate(self._host.compacted_logs()):
            candidate = self._assess(log, last_stable_offset, now_ms)
            if candidate is not None:
                dirty.append(candidate)
            if number % CHECKED_PER_STEP == 0:
                yield
        self.stats.end_round()
        dirty.sort(key=lambda candidate: candidate[:2], reverse=True)
        self._waiting.extend(dirty)
        self._start_jobs()
        self._write_checkpoints()

    def clean_now(self, when_done: Callable[[], None]) -> None:
        """Cleans every compacted log whatever its dirty ratio, the active segment too."""
        if self._jobs:  # they do not see the latest records
            self._when_idle.append(partial(self.clean_now, when_done))
            return
        self._host.open_compacted_logs()
        for log, _ in self._host.compacted_logs():
            self._roll(log)
            self._waiting.append(DirtyLog(True, 1.0, log))
        self._when_idle.append(when_done)
        self._start_jobs()

    def close(self) -> None:
        """Ends the cleanings. The next start removes the files that they leave."""
        self._is_closed = True
        self._waiting.clear()
        self.throttler.stop()

    def cleanable_range(self, log: Log, last_stable_offset: int) -> CleanableRange:
        """Returns what a cleaning of the log would look at now."""
        return find_cleanable_range(
            log,
            self._first_dirty_offset(log),
            last_stable_offset=last_stable_offset,
            now_ms=self._clock(),
        )

    def _assess(self, log: Log, last_stable_offset: int, now_ms: int) -> DirtyLog | None:
        """Returns the log if it should be cleaned."""
        state = log.compaction_state()
        if state.is_busy or state.uncleanable_reason:
            return None
        if state.last_look and state.is_quiet(LogMarks.of(log, last_stable_offset), now_ms):
            self.stats.on_assessed(state.last_look.dirty_ratio, 0)
            return None
        try:
            if is_idle(log, now_ms):
                self._roll(log)
            cleanable = self.cleanable_range(log, last_stable_offset)
            state.last_look = _quiet_look(log, last_stable_offset, cleanable, now_ms)
        except OSError as failure:
            self._host.handle_log_dir_failure(log.directory, failure)
            return None
        except KafkaError as error:
            self._mark_uncleanable(log, error)
            return None
        self.stats.on_assessed(cleanable.dirty_ratio, cleanable.overdue_ms)
        if _is_dirty(log, cleanable) or state.has_expired_horizon(now_ms):
            return DirtyLog(cleanable.must_clean, cleanable.dirty_ratio, log)
        if state.earliest_horizon_ms == UNKNOWN_HORIZON_MS:
            return DirtyLog(False, -1.0, log)
        return None

    def _roll(self, log: Log) -> None:
        if log.segments.active.size_bytes:
            log.maintenance.roll()

    def _first_dirty_offset(self, log: Log) -> int:
        key, offsets = (log.topic, log.partition), log.directory.cleaner_offsets
        offset = offsets.get(key)
        if offset is None:
            return log.log_start_offset
        if log.log_start_offset <= offset <= log.log_end_offset:
            return offset
        if offset > log.log_end_offset or not log.config.delete:
            _logger.warning(
                "%s: resetting first dirty offset to log start offset %d since the checkpointed "
                "offset %d is invalid",
                log.name,
                log.log_start_offset,
                offset,
            )
        self._checkpoint(log, log.log_start_offset)
        return log.log_start_offset

    # Jobs

    def _start_jobs(self) -> None:
        while self._waiting and len(self._jobs) < self._setting("log.cleaner.threads"):
            candidate = self._waiting.popleft()
            job = self._new_job(candidate)
            if job is not None:
                candidate.log.compaction_state().is_busy = True
                self._jobs.add(job)
                self._advance(job)
        if not self._waiting and not self._jobs:
            callbacks, self._when_idle = self._when_idle, []
            for callback in callbacks:
                callback()

    def _new_job(self, candidate: DirtyLog) -> Job | None:
        compacted = self._host.find_compacted_log(candidate.log)
        if compacted is None or compacted.log.compaction_state().is_busy:
            return None
        log, last_stable_offset = compacted
        now_ms = self._clock()
        try:
            if candidate.dirty_ratio < 0:
                return HorizonScan(log, self._first_dirty_offset(log), self.throttler, now_ms)
            self._put_first_offsets(log)
            cleanable = self.cleanable_range(log, last_stable_offset)
            return Cleaning(log, cleanable, self._limits(), self.throttler, now_ms)
        except OSError as failure:
            self._host.handle_log_dir_failure(log.directory, failure)
        except KafkaError as error:
            self._mark_uncleanable(log, error)
        return None

    def _put_first_offsets(self, log: Log) -> None:
        """Adds a log that was never cleaned to the checkpoint, and those that wait behind it.

        A log must be in the file before its segments are replaced: one write serves all of them.
        """
        if (log.topic, log.partition) in log.directory.cleaner_offsets:
            return
        waiting = (candidate.log for candidate in self._waiting if candidate.dirty_ratio >= 0)
        for other in (log, *waiting):
            key, offsets = (other.topic, other.partition), other.directory.cleaner_offsets
            if key not in offsets:
                offsets.put(key, other.log_start_offset)

    def _limits(self) -> CleanerLimits:
        threads = max(self._setting("log.cleaner.threads"), 1)
        map_bytes = self._setting("log.cleaner.dedupe.buffer.size") // threads
        return CleanerLimits(
            map_bytes=min(map_bytes, _MAX_MAP_BYTES),
            load_factor=self._setting("log.cleaner.io.buffer.load.factor"),
            buffer_bytes=self._setting("log.cleaner.io.buffer.size") // threads // 2,
        )

    def _advance(self, job: Job) -> None:
        self._background.run(job.step, partial(self._on_step, job))

    def _on_step(self, job: Job, failure: BaseException | None) -> None:
        """A step has ended; the log may have changed meanwhile."""
        if self._is_closed:
            self._end(job)
        elif self._host.find_compacted_log(job.log) is None:
            self._abandon(job, "the log may not be cleaned any more")
        elif not job.sources.are_unchanged():
            self._abandon(job, "its segments have changed")
        elif failure is not None:
            self._fail(job, failure)
        elif job.finished_group is not None and not self._put_in_place(job.log, job.finished_group):
            self._end(job)  # the next start needs the files as they are
        elif job.is_done:
            self._finish(job)
        else:
            self._advance(job)

    def _put_in_place(self, log: Log, group: FinishedGroup) -> bool:
        """Replaces the segments of a group; returns False if the disk has failed."""
        segments = [source.segment for source in group.sources]
        try:
            log.maintenance.put_in_place(segments, group.cleaned)
        except LogDirFailure as failure:
            self._host.handle_log_dir_failure(log.directory, failure)
            return False
        return True

    def _finish(self, job: Job) -> None:
        log, state = job.log, job.log.compaction_state()
        state.earliest_horizon_ms = job.earliest_horizon_ms
        if isinstance(job, Cleaning):
            state.lacks_space = False
            state.last_cleaned_ms = self._clock()
            self._checkpoint(log, job.first_dirty_offset)
            self.stats.on_cleaned(job.stats, self._setting("log.cleaner.threads"))
            _logger.info("%s: %s", log.name, describe_cleaning(job))
            if job.stats.invalid_records:
                _logger.warning(
                    "%s: removed %d records without a key, which a compacted log cannot keep",
                    log.name,
                    job.stats.invalid_records,
                )
            if not job.has_reached_end:
                cleanable = job.cleanable
                self._waiting.append(DirtyLog(cleanable.must_clean, cleanable.dirty_ratio, log))
        # What was cleaned may have made another log the dirtiest: look again at once.
        self._next_round_ms = 0
        self._end(job)

    def _fail(self, job: Job, failure: BaseException) -> None:
        if not isinstance(failure, Exception):
            raise failure
        if isinstance(failure, OSError):
            self._host.handle_log_dir_failure(job.log.directory, failure)
            if failure.errno in DISK_FULL:
                self._warn_of_full_disk(job.log)
        else:
            self._mark_uncleanable(job.log, failure)
        self._abandon(job, str(failure))

    def _warn_of_full_disk(self, log: Log) -> None:
        """Logs it once: the cleaner tries again every few seconds."""
        state = log.compaction_state()
        if not state.lacks_space:
            state.lacks_space = True
            _logger.warning(
                "%s cannot be compacted, because the disk is full. Free up to segment.bytes (%d "
                "bytes): the old segments are deleted when the new ones are complete. The log is "
                "as it was, and the cleaner tries again.",
                log.name,
                log.config.segment_bytes,
            )

    def _mark_uncleanable(self, log: Log, error: Exception) -> None:
        message = error.message if isinstance(error, KafkaError) else repr(error)
        log.compaction_state().uncleanable_reason = message
        _logger.error(
            "%s is not compacted any more, until the next start of the broker: %s The log is as it "
            "was and is served on. Check its disk, then restore the partition from another "
            "replica or delete its topic.",
            log.name,
            message,
            exc_info=None if isinstance(error, KafkaError) else error,
        )

    def _abandon(self, job: Job, reason: str) -> None:
        """Ends a job whose result is not needed, and removes its files."""
        _logger.info("%s: the cleaning was aborted: %s", job.log.name, reason)
        self._background.run(job.discard, lambda _: self._end(job))

    def _end(self, job: Job) -> None:
        job.close()
        job.log.compaction_state().is_busy = False
        job.log.compaction_state().last_look = None
        self._jobs.discard(job)
        if not self._is_closed:
            self._start_jobs()
            self._write_checkpoints()

    def _checkpoint(self, log: Log, first_dirty_offset: int) -> None:
        log.directory.cleaner_offsets.put((log.topic, log.partition), first_dirty_offset)
        self._unwritten[log.directory] = None

    def _write_checkpoints(self) -> None:
        """Writes the offsets of cleaned logs, once for many logs: a file has those of all logs."""
        now_ms = self._clock()
        is_recent = 0 <= now_ms - self._checkpointed_ms < CHECKPOINT_INTERVAL_MS
        if not self._unwritten or (self._jobs and is_recent):
            return
        self._checkpointed_ms = now_ms
        directories, self._unwritten = self._unwritten, {}
        for directory in directories:
            checkpoint = directory.cleaner_offsets.begin_checkpoint()
            self._background.run(checkpoint.write, partial(self._on_checkpoint, directory))

    def _on_checkpoint(self, directory: LogDirectory, failure: BaseException | None) -> None:
        if isinstance(failure, OSError):
            self._host.handle_log_dir_failure(directory, failure)
        elif failure is not None:
            raise failure


def _quiet_look(
    log: Log, last_stable_offset: int, cleanable: CleanableRange, now_ms: int
) -> QuietLook | None:
    """Returns the look at a log that need not be cleaned until it changes; None if it must be."""
    horizon_ms = log.compaction_state().earliest_horizon_ms
    if _is_dirty(log, cleanable) or cleanable.overdue_ms or horizon_ms == UNKNOWN_HORIZON_MS:
        return None
    next_ms = next_look_ms(log, cleanable.first_dirty_offset, now_ms)
    if horizon_ms != NO_HORIZON_MS:
        next_ms = min(next_ms, horizon_ms)
    marks = LogMarks.of(log, last_stable_offset)
    return QuietLook(now_ms, next_ms, marks, cleanable.dirty_ratio)


def _is_dirty(log: Log, cleanable: CleanableRange) -> bool:
    if not cleanable.cleanable_bytes:
        return False
    return cleanable.must_clean or cleanable.dirty_ratio > log.config.min_cleanable_dirty_ratio
