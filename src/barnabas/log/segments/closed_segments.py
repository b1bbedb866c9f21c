"""Checking that closed segments are whole and that none is missing between them.

Each file must end after a whole batch. In a log that was never compacted, the next segment begins
at the offset after that batch. The last entry of the offset index is near the end of the file, so
that a segment takes a few small reads.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise

from barnabas.log.errors import CorruptLog, DamagedBatch, IndexMismatch
from barnabas.log.segments import _search
from barnabas.log.segments.index import OffsetIndex
from barnabas.log.segments.log_files import INDEX
from barnabas.log.segments.segment import LogSegment
from barnabas.wire.records.batch import crc_is_valid


def check_closed(segments: Sequence[LogSegment], *, may_have_gaps: bool) -> None:
    """Raises CorruptLog if a segment but the last is cut, or if there is a gap after it."""
    for segment, successor in pairwise(segments):
        end_offset = _end_offset(segment)
        if end_offset >= successor.base_offset or may_have_gaps:
            continue
        if not is_gap_of_compaction(segment, successor):
            raise CorruptLog(
                segment.path(),
                segment.size_bytes,
                f"the records from offset {end_offset} to {successor.base_offset - 1} are missing, "
                "because the file was cut or the segment after it was lost",
            )


def is_gap_of_compaction(before: LogSegment, after: LogSegment) -> bool:
    """Returns whether one of two segments has signs of compaction: offsets without records.

    A log that is no longer compacted keeps its gaps, and so does a new replica of it.
    """
    return any(_has_gaps(segment) for segment in (before, after))


def _has_gaps(segment: LogSegment) -> bool:
    """Bytes that a power loss has damaged are no sign: only whole batches before them are."""
    next_offset = segment.base_offset
    with suppress(CorruptLog):
        for position, header in segment.batch_headers():
            if not crc_is_valid(segment.read_batch(position, header), 0, header):
                return False
            if header.base_offset != next_offset:
                return True
            if header.record_count != header.last_offset_delta + 1:
                return True
            next_offset = header.next_offset
    return False


def _end_offset(segment: LogSegment) -> int:
    """Returns the offset after the last batch. Raises CorruptLog unless the file ends there."""
    if segment.size_bytes == 0:
        return segment.base_offset
    try:
        entry = _last_index_entry(segment)
        if entry is not None:
            last_offset, position = entry
            with suppress(DamagedBatch, IndexMismatch):
                return _walk_to_end(segment, position, last_offset)
        end_offset = _walk_to_end(segment, 0, None)
        segment.rebuild_indexes()
        return end_offset
    except DamagedBatch as damage:
        reason = f"{damage.reason} from there to the end of the file"
        raise CorruptLog(segment.path(), damage.position, reason) from None
    finally:
        segment.close()


def _walk_to_end(segment: LogSegment, position: int, indexed: int | None) -> int:
    """Returns the offset after the last batch; `indexed` is the last offset of the first one."""
    end = segment.size_bytes
    if position >= end:
        raise IndexMismatch(f"byte {position} is after the end of the file")
    file = segment.file()
    _, next_offset = _search.find_batch_end(file.fd, position, end, end, indexed)
    return next_offset


def _last_index_entry(segment: LogSegment) -> tuple[int | None, int] | None:
    """Returns last offset and position of the last indexed batch; None if there is no index.

    The index of a short segment is empty: the first batch is the one to begin with.
    """
    entry_bytes = OffsetIndex.ENTRY.size
    try:
        fd = os.open(segment.path(INDEX), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        count = os.fstat(fd).st_size // entry_bytes
        if count == 0:
            return None, 0
        entry = os.pread(fd, entry_bytes, (count - 1) * entry_bytes)
    finally:
        os.close(fd)
    relative_offset, position = OffsetIndex.ENTRY.unpack(entry)
    return segment.base_offset + relative_offset, position
