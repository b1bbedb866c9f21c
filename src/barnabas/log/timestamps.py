"""Offsets by timestamp, for ListOffsets."""

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.log.segments.segment import LogSegment
from barnabas.wire.records.read import read_records


class TimestampOffset(NamedTuple):
    """The timestamp and offset of a record, and the epoch of the leader that wrote it."""

    timestamp: int
    offset: int
    leader_epoch: int


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
    if result is not None or segment.base_offset >= start_offset:
        return result
    # DeleteRecords deleted the record with the largest timestamp, but maybe not the whole segment.
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
