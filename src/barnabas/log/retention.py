"""Retention: which segments a log deletes by `retention.ms` and `retention.bytes`."""

import os
from collections.abc import Callable, Iterator, Sequence

from barnabas.log.config import LogConfig
from barnabas.log.segments.segment import LogSegment


def deletable_segments(
    segments: Sequence[LogSegment],
    config: LogConfig,
    *,
    now_ms: int,
    log_start_offset: int,
    high_watermark: int,
) -> list[LogSegment]:
    """Returns the oldest segments that retention does not keep, all below the high watermark.

    The last of them may be the active one; the log rolls first then.
    """
    active = segments[-1]
    count = _leading(segments[:-1], lambda segment: segment.next_offset <= log_start_offset)
    if config.delete:
        candidates = segments if active.size_bytes else segments[:-1]
        if config.retention_bytes >= 0:
            count = max(count, _oversized(candidates, config.retention_bytes))
        if config.retention_ms >= 0:
            expired_ms = now_ms - config.retention_ms
            count = max(
                count, _leading(candidates, lambda segment: _last_modified_ms(segment) < expired_ms)
            )
    return list(_replicated(segments[:count], high_watermark))


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


def _last_modified_ms(segment: LogSegment) -> int:
    """Returns the largest timestamp, or the time of the last write if records have none."""
    timestamp, _ = segment.max_timestamp_and_offset()
    return timestamp if timestamp >= 0 else int(os.stat(segment.path()).st_mtime * 1000)


def _replicated(segments: Sequence[LogSegment], high_watermark: int) -> Iterator[LogSegment]:
    for segment in segments:
        if segment.next_offset > high_watermark:
            return
        yield segment
