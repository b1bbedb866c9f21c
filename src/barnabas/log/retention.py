"""Which segments of a log retention does not keep, and why.

The reasons have the words of Kafka's log lines, so that operators find them.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from barnabas.log.config import LogConfig
from barnabas.log.segments.segment import LogSegment


@dataclass(slots=True, frozen=True)
class DeletableSegments:
    """The oldest segments of a log, which are deleted for one reason."""

    segments: list[LogSegment]
    reason: str
    level: int = logging.INFO

    def names(self) -> str:
        """Returns the segments as a log line names them, however many they are."""
        first, last = self.segments[0].base_offset, self.segments[-1].base_offset
        if first == last:
            return f"the segment with base offset {first}"
        return f"{len(self.segments)} segments with base offsets from {first} to {last}"


def find_deletable(
    segments: Sequence[LogSegment],
    config: LogConfig,
    *,
    now_ms: int,
    log_start_offset: int,
    high_watermark: int,
) -> DeletableSegments | None:
    """Returns the oldest segments that `retention.ms` and `retention.bytes` do not keep.

    All are below the high watermark. The last may be the active one: the log rolls first then.
    """
    before_start = _leading(segments[:-1], lambda segment: segment.next_offset <= log_start_offset)
    expired = oversized = 0
    if config.delete:
        candidates = segments if segments[-1].size_bytes else segments[:-1]
        if config.retention_ms >= 0:
            expired_ms = now_ms - config.retention_ms
            expired = _leading(candidates, lambda segment: segment.last_modified_ms() < expired_ms)
        if config.retention_bytes >= 0:
            oversized = _oversized(candidates, config.retention_bytes)
    count = max(before_start, expired, oversized)
    deletable = list(_replicated(segments[:count], high_watermark))
    if not deletable:
        return None
    if before_start == count:
        return DeletableSegments(deletable, f"due to log start offset {log_start_offset} breach")
    if expired == count:
        return _expired(deletable, config.retention_ms)
    size_bytes = sum(segment.size_bytes for segment in segments[len(deletable) :])
    return DeletableSegments(
        deletable,
        f"due to log retention size {config.retention_bytes} breach. "
        f"Log size after deletion will be {size_bytes}",
    )


def _expired(segments: list[LogSegment], retention_ms: int) -> DeletableSegments:
    reason = f"due to log retention time {retention_ms}ms breach based on"
    timestamp, _ = segments[-1].max_timestamp_and_offset()
    if timestamp < 0:
        return DeletableSegments(segments, f"{reason} the last modified time of the segment")
    when = datetime.fromtimestamp(timestamp / 1000, UTC).isoformat(" ", "seconds")
    reason += f" the largest record timestamp in the segment ({when})"
    if timestamp + retention_ms >= segments[-1].written_ms():
        return DeletableSegments(segments, reason)
    return DeletableSegments(
        segments,
        f"{reason}. Its records were older than that when they were written: to keep such records, "
        "raise retention.ms or set message.timestamp.type=LogAppendTime",
        logging.WARNING,
    )


def _leading(segments: Sequence[LogSegment], is_deletable: Callable[[LogSegment], bool]) -> int:
    """Returns how many segments from the oldest on may be deleted."""
    for number, segment in enumerate(segments):
        if not is_deletable(segment):
            return number
    return len(segments)


def _oversized(segments: Sequence[LogSegment], retention_bytes: int) -> int:
    """Returns how many of the oldest can be deleted so that at least `retention_bytes` stay."""
    excess_bytes = sum(segment.size_bytes for segment in segments) - retention_bytes
    for number, segment in enumerate(segments):
        excess_bytes -= segment.size_bytes
        if excess_bytes < 0:
            return number
    return len(segments)


def _replicated(segments: Sequence[LogSegment], high_watermark: int) -> Iterator[LogSegment]:
    for segment in segments:
        if segment.next_offset > high_watermark:
            return
        yield segment
