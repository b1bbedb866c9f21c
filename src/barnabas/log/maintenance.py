"""The upkeep of a log's segments: rolling, retention, producer snapshots.

Every change of the list of segments goes through here or through `Log.truncate_to`, on the thread
that owns the log.
"""

import logging
import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING
from zlib import crc32

from barnabas.log.config import LogConfig
from barnabas.log.errors import TornWrite, raises_log_dir_failure
from barnabas.log.producers import replay, snapshots
from barnabas.log.retention import find_deletable
from barnabas.log.segments.log_files import (
    CLEANED,
    INDEX,
    SEGMENT_SUFFIXES,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TRANSACTION_INDEX,
    list_log_files,
    segment_path,
)
from barnabas.log.segments.log_segments import mark_deleted
from barnabas.log.segments.segment import LogSegment

if TYPE_CHECKING:
    from barnabas.log.cleaner.segment_writer import CleanedSegment
    from barnabas.log.log import Log

_logger = logging.getLogger(__name__)

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
    def roll(self) -> None:
        """Closes the active segment, so that it can be cleaned."""
        self.roll_at(self._log.log_end_offset)

    @raises_log_dir_failure
    def delete_old_segments(self, now_ms: int, high_watermark: int) -> int:
        """Deletes the segments that retention no longer keeps; returns how many."""
        log = self._log
        deletable = find_deletable(
            log.segments.ordered,
            log.config,
            now_ms=now_ms,
            log_start_offset=log.log_start_offset,
            high_watermark=high_watermark,
        )
        if deletable is None:
            return 0
        segments = deletable.segments
        if len(segments) == len(log.segments):
            self.roll_at(log.log_end_offset)
        self.schedule_delete(log.segments.remove(segments))
        log.advance_log_start_offset(log.segments.base_offset)
        _logger.log(
            deletable.level,
            "%s: deleting %s %s. The log starts at offset %d.",
            log.name,
            deletable.names(),
            deletable.reason,
            log.log_start_offset,
        )
        return len(segments)

    def lower_first_dirty_offset(self, offset: int) -> None:
        """What is written again from `offset` on is dirty."""
        log = self._log
        key, offsets = (log.topic, log.partition), self.directory.cleaner_offsets
        first_dirty_offset = offsets.get(key)
        if first_dirty_offset is not None and offset < first_dirty_offset:
            offsets.put(key, offset)
            offsets.begin_checkpoint().write()

    def replace_all_segments(self, base_offset: int) -> None:
        """Deletes every segment and begins an empty one."""
        log = self._log
        self.schedule_delete(log.segments.remove(log.segments.ordered))
        log.segments.add_active(base_offset, log.config)
        log.flusher.sync_later(log.path)

    @raises_log_dir_failure
    def put_in_place(
        self, replaced: Sequence[LogSegment], cleaned: Sequence["CleanedSegment"]
    ) -> None:
        """Replaces segments by the cleaned ones that were made from them.

        After a crash, recovery ends up with either the old or the new segments. The names change in
        this order: `.cleaned` files become `.swap`, from the highest offset to the lowest, then the
        old files become `.deleted`, then `.swap` files get their final names.
        """
        log = self._log
        paths = [
            segment_path(log.path, segment.base_offset, suffix)
            for segment in cleaned
            for suffix in segment.suffixes
        ]
        try:
            for path in reversed(paths):
                os.rename(path + CLEANED, path + SWAP)
            renamed = self._mark_replaced(replaced, {segment.base_offset for segment in cleaned})
            for path in paths:
                os.rename(path + SWAP, path)
        except OSError as error:
            # Only recovery, at the next start, can tell which segments are complete.
            raise TornWrite(error.errno, f"{error.strerror}: {error.filename}") from error
        interval_bytes = log.config.index_interval_bytes
        replacements = [
            LogSegment(
                log.path,
                segment.base_offset,
                log.directory.files,
                interval_bytes,
                segment.size_bytes,
            )
            for segment in cleaned
        ]
        log.segments.replace(replaced, replacements)
        log.flusher.sync_later(log.path)
        self.schedule_delete(renamed)

    def _mark_replaced(self, replaced: Sequence[LogSegment], bases: Collection[int]) -> list[str]:
        """Renames the files of segments; a new one at the same base offset keeps the snapshot."""
        renamed: list[str] = []
        for segment in replaced:
            snapshot = () if segment.base_offset in bases else (SNAPSHOT,)
            renamed += mark_deleted(segment, (*SEGMENT_SUFFIXES, *snapshot))
        return renamed

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
    if (
        active.size_bytes > config.segment_bytes - size_bytes
        or last_offset - active.base_offset > _MAX_RELATIVE_OFFSET
        or active.has_full_index(config.max_offset_entries, config.max_time_entries)
    ):
        return True
    if not active.size_bytes:
        return False
    roll_ms = config.roll_ms
    if config.segment_jitter_ms:
        roll_ms -= _jitter_ms(active, config, name)
    first_timestamp = active.first_timestamp
    if first_timestamp >= 0:  # the usual case, without a call
        return max_timestamp - first_timestamp > roll_ms
    return active.age_ms(max_timestamp, now_ms) > roll_ms


def follower_base_offset(log_end_offset: int, first_offset: int, last_offset: int) -> int:
    """Returns where the segment begins to which a follower appends such batches.

    The leader's log may have a gap before them. The segment begins before the gap, if its relative
    offsets allow it: recovery takes a gap between segments for records that were lost.
    """
    return min(max(log_end_offset, last_offset - _MAX_RELATIVE_OFFSET), first_offset)


def _jitter_ms(active: LogSegment, config: LogConfig, name: str) -> int:
    """Returns how much earlier this segment rolls, so that not all partitions roll at once."""
    span_ms = min(config.segment_jitter_ms, config.roll_ms)
    return crc32(f"{name}:{active.base_offset}".encode()) % span_ms
