"""Scanning a segment and verifying every checksum, at the speed of the disk."""

import os
from collections.abc import Iterator

from barnabas.log.errors import DamagedBatch
from barnabas.log.segments import _batch_walk
from barnabas.log.segments._batch_walk import BatchWalk
from barnabas.log.segments.segment import LogSegment
from barnabas.wire.records.batch import HEADER_BYTES, BatchHeader, CorruptBatch, read_header

_BUFFER_BYTES = 512 << 10
"""Small enough that the event loop waits less than a millisecond for the GIL."""

_PROGRESS_BYTES = 256 << 20
_MAX_RELATIVE_OFFSET = 0x7FFFFFFF


class ValidBatches:
    """Iterates over the batches of a segment that are whole, valid and in order.

    It begins after the batches that the segment counts already, and ends at the first that is
    damaged; `reason` says why then. Each step is a buffer of batches, which is valid until the
    next one.
    """

    def __init__(
        self, segment: LogSegment, file_bytes: int, limit: int | None, leader_epoch: int
    ) -> None:
        self.reason = ""
        self._file = segment.file()
        self._file_bytes = file_bytes
        self._max_offset = segment.base_offset + _MAX_RELATIVE_OFFSET
        if limit is not None:  # where the next segment begins
            self._max_offset = min(self._max_offset, limit - 1)
        self._walk = _batch_walk.BatchWalk(
            position=segment.size_bytes,
            next_offset=segment.next_offset,
            max_offset=self._max_offset,
            unindexed_bytes=segment.unindexed_bytes,
            index_interval_bytes=segment.index_interval_bytes,
            max_timestamp=segment.max_timestamp,
            offset_of_max_timestamp=segment.offset_of_max_timestamp,
            leader_epoch=leader_epoch,
        )
        self._reported = segment.size_bytes

    def is_progress_due(self) -> bool:
        """Returns whether enough was read since the last time to report progress."""
        if self._walk.position - self._reported < _PROGRESS_BYTES:
            return False
        self._reported = self._walk.position
        return True

    def __iter__(self) -> Iterator[tuple[BatchWalk, memoryview]]:
        walk = self._walk
        buffer = bytearray(min(_BUFFER_BYTES, self._file_bytes - walk.position))
        while walk.position < self._file_bytes:
            view = memoryview(buffer)[: os.preadv(self._file.fd, [buffer], walk.position)]
            end = walk.walk(view)
            if end:
                yield walk, view
            if end == len(buffer) or walk.position == self._file_bytes:
                continue
            try:
                needed_bytes = self._size_of_next(view[end:])
            except DamagedBatch as damage:
                self.reason = damage.reason
                return
            if needed_bytes > len(buffer):
                buffer = bytearray(needed_bytes)

    def _size_of_next(self, rest: memoryview) -> int:
        """Returns the size of the batch, of which the buffer has only a part.

        Raises DamagedBatch if the file has no valid batch there.
        """
        position = self._walk.position
        size_bytes = HEADER_BYTES
        if len(rest) >= HEADER_BYTES:
            size_bytes = self._valid_header(rest).size_bytes
            if size_bytes <= len(rest):
                raise DamagedBatch(position, "the checksum of the batch does not match")
        if position + size_bytes > self._file_bytes:
            raise DamagedBatch(position, "the file ends within a batch")
        return size_bytes

    def _valid_header(self, rest: memoryview) -> BatchHeader:
        position = self._walk.position
        try:
            header = read_header(rest)
        except CorruptBatch as error:
            reason = f"there is no batch ({error.message.rstrip('.')})"
            raise DamagedBatch(position, reason) from None
        if (
            header.base_offset < self._walk.next_offset
            or header.last_offset_delta < 0
            or header.last_offset > self._max_offset
        ):
            reason = f"offsets {header.base_offset} to {header.last_offset} are out of order"
            raise DamagedBatch(position, reason)
        return header
