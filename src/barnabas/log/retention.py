"""Which segments a log may drop: the oldest, as far as its settings say."""

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
    """The oldest segments that are no longer wanted, none of which reaches the high watermark.

    The last of them may be the active one; the log then begins a new segment first.
    """
    active = segments[-1]
    count = _leading(segments[:-1], lambda segment: segment.next_offset <= log_start_offset)
    if config.delete:
        candidates = segments if active.size_bytes else segments[:-1]
        if config.retention_bytes >= 0:
            count = max(count, _oversized(candidates, config.retention_bytes))
        if config.retention_ms >= 0:
            expired_ms = now_ms - config.retention_ms
            count = max(count, _leading(candidates, lambda segment: _age(segment) < expired_ms))
    return list(_replicated(segments[:count], high_watermark))


def _leading(segments: Sequence[LogSegment], is_unwanted: Callable[[LogSegment], bool]) -> int:
    """How many segments from the oldest on are unwanted."""
    for number, segment in enumerate(segments):
        if not is_unwanted(segment):
            return number
    return len(segments)


def _oversized(segments: Sequence[LogSegment], retention_bytes: int) -> int:
    """How many of the oldest can go while at least `retention_bytes` stay."""
    excess_bytes = sum(segment.size_bytes for segment in segments) - retention_bytes
    for number, segment in enumerate(segments):
        excess_bytes -= segment.size_bytes
        if excess_bytes < 0:
            return number
    return len(segments)


def _age(segment: LogSegment) -> int:
    """The time of the newest record, or of the last write where records have no time."""
    timestamp, _ = segment.max_timestamp_and_offset()
    return timestamp if timestamp >= 0 else int(os.stat(segment.path()).st_mtime * 1000)


def _replicated(segments: Sequence[LogSegment], high_watermark: int) -> Iterator[LogSegment]:
    for segment in segments:
        if segment.next_offset > high_watermark:
            return
        yield segment
