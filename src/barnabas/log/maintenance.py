"""The upkeep of a log's segments: rolling, retention, producer snapshots.

Every change of the list of segments goes through here or through `Log.truncate_to`, on the thread
that owns the log.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from barnabas.log.config import LogConfig
from barnabas.log.errors import raises_log_dir_failure
from barnabas.log.producers import replay, snapshots
from barnabas.log.segments.log_files import INDEX, TIME_INDEX, TRANSACTION_INDEX, list_log_files
from barnabas.log.segments.segment import LogSegment

if TYPE_CHECKING:
    from barnabas.log.log import Log

_MAX_RELATIVE_OFFSET = 0x7FFFFFFF


class LogMaintenance:
    """Rolls and deletes the segments of one log."""

    __slots__ = ("_log", "directory", "snapshot_offset")

    def __init__(self, log: "Log", snapshot_offset: int) -> None:
        self._log = log
        self.directory = log.directory
        self.snapshot_offset = snapshot_offset
        """The offset of the newest producer snapshot."""

    def roll_at(self, base_offset: int) -> LogSegment:
        """Makes the segment that begins at `base_offset` the active one, and returns it."""
        log = self._log
        active = log.segments.active
        if active.size_bytes:
            active.seal()
            active.next_offset = base_offset
            self._take_snapshot(base_offset)
            for suffix in (INDEX, TIME_INDEX, TRANSACTION_INDEX):
                log.flusher.sync_later(active.path(suffix))
        elif active.base_offset == base_offset:
            return active
        else:
            self.schedule_delete(log.segments.remove([active]))
        log.flusher.sync_later(log.path)
        return log.segments.add_active(base_offset, log.config)

    @raises_log_dir_failure
    def delete_old_segments(self, now_ms: int, high_watermark: int) -> int:
        """Deletes the segments that retention no longer keeps; returns how many."""
        log = self._log
        deletable = deletable_segments(
            log.segments.ordered,
            log.config,
            now_ms=now_ms,
            log_start_offset=log.log_start_offset,
            high_watermark=high_watermark,
        )
        if not deletable:
            return 0
        if len(deletable) == len(log.segments):
            self.roll_at(log.log_end_offset)
        self.schedule_delete(log.segments.remove(deletable))
        log.advance_log_start_offset(log.segments.base_offset)
        return len(deletable)

    def replace_all_segments(self, base_offset: int) -> None:
        """Deletes every segment and begins an empty one."""
        log = self._log
        self.schedule_delete(log.segments.remove(log.segments.ordered))
        log.segments.add_active(base_offset, log.config)
        log.flusher.sync_later(log.path)

    def schedule_delete(self, paths: list[str]) -> None:
        """Removes renamed files after `file.delete.delay.ms`."""
        self.directory.schedule_delete(paths, self._log.config.delete_delay_ms)

    @raises_log_dir_failure
    def seal(self) -> None:
        """Writes what opening the log again needs; a flush is still due."""
        log = self._log
        log.segments.active.seal()
        self._take_snapshot(log.log_end_offset)
        log.leader_epochs.save()

    def reload_producers(self) -> None:
        """Rebuilds the state of producers from the newest snapshot and the batches after it."""
        log = self._log
        segments = log.segments.ordered
        existing = list_log_files(log.path).snapshots
        log.producers, self.snapshot_offset = replay.load_producer_state(
            log.name, log.path, segments, existing, log.log_end_offset
        )
        kept = [self.snapshot_offset, *(segment.base_offset for segment in segments)]
        snapshots.remove_stray(log.path, existing, kept)

    def _take_snapshot(self, offset: int) -> None:
        """Writes the state of producers as it is at `offset`, unless a snapshot has it."""
        log = self._log
        if offset > self.snapshot_offset:
            log.flusher.sync_later(snapshots.write(log.path, offset, log.producers))
            self.snapshot_offset = offset


def should_roll(
    active: LogSegment,
    config: LogConfig,
    name: str,
    size_bytes: int,
    last_offset: int,
    max_timestamp: int,
    now_ms: int,
) -> bool:
    """Returns whether batches up to `last_offset` need a new segment."""
    if active.size_bytes > config.segment_bytes - size_bytes:
        return True
    if last_offset - active.base_offset > _MAX_RELATIVE_OFFSET:
        return True
    if active.has_full_index(config.segment_index_bytes):
        return True
    if not active.size_bytes:
        return False
    roll_ms = config.segment_ms
    if config.segment_jitter_ms:
        roll_ms -= _jitter_ms(active, config, name)
    return active.age_ms(max_timestamp, now_ms) > roll_ms


def _jitter_ms(active: LogSegment, config: LogConfig, name: str) -> int:
    """Returns how much earlier this segment rolls, so that not all partitions roll at once."""
    span_ms = min(config.segment_jitter_ms, config.segment_ms)
    return crc32(f"{name}:{active.base_offset}".encode()) % span_ms


def deletable_segments(
    segments: Sequence[LogSegment],
    config: LogConfig,
    *,
    now_ms: int,
    log_start_offset: int,
    high_watermark: int,
) -> list[LogSegment]:
    """Returns the oldest segments that `retention.ms` and `retention.bytes` do not keep.

    All are below the high watermark. The last may be the active one: the log rolls first then.
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
