"""Offsets by timestamp, for ListOffsets.

A search reads the ends of many indexes, then batches anywhere in the log. `TimestampSearch` does it
in a thread.
"""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.log.segments.segment import LogSegment
from barnabas.log.segments.segment_snapshot import ReadOnlyFiles, SegmentSnapshot
from barnabas.wire.records.batch import NO_TIMESTAMP
from barnabas.wire.records.read import read_records


class TimestampOffset(NamedTuple):
    """The timestamp and offset of a record, and the epoch of the leader that wrote it."""

    timestamp: int
    offset: int
    leader_epoch: int


class TimestampSearch:
    """A search in the log as it is now. Build and finish it on the event loop."""

    __slots__ = ("_segments", "_snapshots", "_start_offset")

    def __init__(self, segments: Sequence[LogSegment], start_offset: int) -> None:
        files = ReadOnlyFiles()
        self._segments = tuple(segments)
        self._snapshots = [SegmentSnapshot(segment, files) for segment in segments]
        self._start_offset = start_offset

    def offset_for_timestamp(self, timestamp: int) -> TimestampOffset | None:
        """See `Log.offset_for_timestamp`."""
        return find_first(self._snapshots, timestamp, self._start_offset)

    def offset_of_max_timestamp(self) -> TimestampOffset | None:
        """See `Log.offset_of_max_timestamp`."""
        return find_max(self._snapshots, self._start_offset)

    def finish(self) -> None:
        """Keeps the largest timestamps of the segments, so that the next search knows them."""
        for segment, snapshot in zip(self._segments, self._snapshots, strict=True):
            if segment.max_timestamp < NO_TIMESTAMP:
                segment.max_timestamp = snapshot.max_timestamp
                segment.offset_of_max_timestamp = snapshot.offset_of_max_timestamp


def find_first(
    segments: Sequence[LogSegment], timestamp: int, start_offset: int
) -> TimestampOffset | None:
    """Returns the first record from `start_offset` on whose timestamp is at least `timestamp`."""
    for segment in segments:
        if segment.max_timestamp_and_offset()[0] >= timestamp:
            result = _first_in(segment, timestamp, start_offset)
            if result is not None:
                return result
    return None


def find_max(segments: Sequence[LogSegment], start_offset: int) -> TimestampOffset | None:
    """Returns the first record from `start_offset` on with the largest timestamp."""
    result: TimestampOffset | None = None
    for segment in sorted(segments, key=lambda segment: -segment.max_timestamp_and_offset()[0]):
        timestamp, _ = segment.max_timestamp_and_offset()
        if timestamp < 0 or (result is not None and result.timestamp >= timestamp):
            break
        best = _latest_in(segment, start_offset)
        if best is not None and (result is None or best.timestamp > result.timestamp):
            result = best
    return result


def _latest_in(segment: LogSegment, start_offset: int) -> TimestampOffset | None:
    timestamp, last_offset = segment.max_timestamp_and_offset()
    result = _first_in(segment, timestamp, start_offset, at_least=last_offset)
    if result is not None:
        return result
    # DeleteRecords or compaction removed the record with the largest timestamp, but maybe not all.
    largest = -1
    for at, header in segment.batch_headers(segment.position_of(start_offset)):
        if header.max_timestamp <= largest:
            continue
        for record in read_records(segment.read_batch(at, header)):
            if record.timestamp > largest and record.offset >= start_offset:
                largest = record.timestamp
                result = TimestampOffset(largest, record.offset, header.leader_epoch)
    return result


def _first_in(
    segment: LogSegment, timestamp: int, start_offset: int, at_least: int = 0
) -> TimestampOffset | None:
    entry = segment.time_index.lookup(timestamp)
    offset = max(entry[1] if entry else segment.base_offset, start_offset, at_least)
    position = segment.position_of(offset)
    for at, header in segment.batch_headers(position):
        if header.max_timestamp >= timestamp:
            for record in read_records(segment.read_batch(at, header)):
                if record.timestamp >= timestamp and record.offset >= start_offset:
                    return TimestampOffset(record.timestamp, record.offset, header.leader_epoch)
    return None
