"""Which part of a log can be cleaned, and whether it should be.

A log has a clean part, which an earlier cleaning has reached, and a dirty part. The cleaner never
touches the active segment, nor records that are not committed or whose transaction is open.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import NamedTuple

from barnabas.log.config import LogConfig
from barnabas.log.log import Log
from barnabas.log.segments.segment import LogSegment

MAX_QUIET_MS = 600_000
"""How long the cleaner does not look at a log that does not change."""


@dataclass(slots=True, frozen=True)
class CleanableRange:
    """The dirty offsets of a log that may be cleaned now."""

    first_dirty_offset: int
    end_offset: int
    """The first offset that may not be cleaned yet; a segment begins there."""
    clean_bytes: int
    cleanable_bytes: int
    overdue_ms: int
    """By how much the oldest dirty record has passed max.compaction.lag.ms; 0 if it has not."""

    @property
    def dirty_ratio(self) -> float:
        """The share of dirty bytes among those that may be cleaned."""
        total_bytes = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total_bytes if total_bytes else 0.0

    @property
    def must_clean(self) -> bool:
        return self.overdue_ms > 0 and self.cleanable_bytes > 0


def find_cleanable_range(
    log: Log, first_dirty_offset: int, *, last_stable_offset: int, now_ms: int
) -> CleanableRange:
    """Returns what a cleaning of the log would look at. It is empty if nothing may be cleaned."""
    segments = log.segments.ordered
    dirty = log.segments.since(log.segments.floor(first_dirty_offset)[1])[:-1]
    end_offset = min(last_stable_offset, log.segments.active.base_offset)
    end_offset = min(end_offset, _min_lag_offset(log, dirty, now_ms))
    end_offset = max(end_offset, first_dirty_offset)
    end_offset = log.segments.floor(end_offset)[0].base_offset
    cleanable = [segment for segment in dirty if segment.base_offset < end_offset]
    return CleanableRange(
        first_dirty_offset,
        end_offset,
        clean_bytes=sum(
            segment.size_bytes
            for segment in takewhile(lambda s: s.base_offset < first_dirty_offset, segments)
        ),
        cleanable_bytes=sum(segment.size_bytes for segment in cleanable),
        overdue_ms=_overdue_ms(log, dirty, now_ms),
    )


class LogMarks(NamedTuple):
    """What tells whether a log has changed since the cleaner last looked at it."""

    log_start_offset: int
    active_base_offset: int
    last_stable_offset: int
    log_end_offset: int
    config: LogConfig

    @classmethod
    def of(cls, log: Log, last_stable_offset: int) -> "LogMarks":
        active = log.segments.active
        return cls(
            log.log_start_offset,
            active.base_offset,
            last_stable_offset,
            log.log_end_offset,
            log.config,
        )


def next_look_ms(log: Log, first_dirty_offset: int, now_ms: int) -> int:
    """Returns when a log that is not dirty enough now may be so, although it does not change."""
    config, active = log.config, log.segments.active
    dirty = log.segments.since(log.segments.floor(first_dirty_offset)[1])[:-1]
    looks_ms = [now_ms + MAX_QUIET_MS]
    if active.size_bytes:
        looks_ms.append(active.written_ms() + config.segment_ms)
    if config.min_compaction_lag_ms > 0:
        lag_ms = config.min_compaction_lag_ms
        looks_ms += [segment.last_modified_ms() + lag_ms for segment in dirty]
    if config.max_compaction_lag_ms < now_ms:
        lag_ms = config.max_compaction_lag_ms
        with_records = [segment for segment in (*dirty, active) if segment.size_bytes]
        looks_ms += [segment.first_batch_timestamp() + lag_ms for segment in with_records]
    return min(look_ms for look_ms in looks_ms if look_ms >= now_ms)


def is_idle(log: Log, now_ms: int) -> bool:
    """Returns whether the active segment should be rolled, though nothing is appended to it.

    Only closed segments are cleaned. Kafka rolls a segment when the next record arrives; without
    one, the last records of a quiet topic would never be cleaned.
    """
    active = log.segments.active
    if not active.size_bytes:
        return False
    if _is_older(active.first_batch_timestamp(), now_ms - log.config.max_compaction_lag_ms):
        return True
    return active.written_ms() < now_ms - log.config.segment_ms


def _min_lag_offset(log: Log, dirty: Sequence[LogSegment], now_ms: int) -> int:
    """Returns where the first segment begins that min.compaction.lag.ms protects."""
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in dirty:
            if segment.last_modified_ms() > now_ms - lag_ms:
                return segment.base_offset
    return log.segments.active.base_offset


def _overdue_ms(log: Log, dirty: Sequence[LogSegment], now_ms: int) -> int:
    deadline_ms = now_ms - log.config.max_compaction_lag_ms
    if deadline_ms <= 0:
        return 0
    timestamps = [segment.first_batch_timestamp() for segment in dirty if segment.size_bytes]
    earliest = min((timestamp for timestamp in timestamps if timestamp > 0), default=deadline_ms)
    return max(deadline_ms - earliest, 0)


def _is_older(timestamp: int, deadline_ms: int) -> bool:
    return 0 < timestamp < deadline_ms
