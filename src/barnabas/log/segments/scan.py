"""Scanning a whole segment and verifying every checksum, at the speed of the disk."""

import os
from collections.abc import Iterator

from barnabas.log.segments.open_files import OpenFile
from barnabas.wire.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    crc_is_valid,
    read_header,
)

_BUFFER_BYTES = 4 << 20
_PROGRESS_BYTES = 256 << 20
_MAX_RELATIVE_OFFSET = 0x7FFFFFFF


class ValidBatches:
    """Iterates over the batches of a file up to the first that is not whole, valid and in order.

    The bytes of a batch are valid until the next iteration. Afterwards `reason` says why the
    iteration stopped before the end of the file.
    """

    def __init__(
        self, file: OpenFile, size_bytes: int, base_offset: int, limit: int | None
    ) -> None:
        self.reason = ""
        self._file = file
        self._size_bytes = size_bytes
        self._base_offset = base_offset
        self._limit = limit  # where the next segment begins
        self._reported = 0
        self._position = 0

    def is_progress_due(self) -> bool:
        """Returns whether enough was read since the last time to report progress."""
        if self._position - self._reported < _PROGRESS_BYTES:
            return False
        self._reported = self._position
        return True

    def __iter__(self) -> Iterator[tuple[BatchHeader, memoryview]]:
        buffer = bytearray(min(_BUFFER_BYTES, self._size_bytes))
        expected = self._base_offset
        while self._position < self._size_bytes:
            view = memoryview(buffer)[: os.preadv(self._file.fd, [buffer], self._position)]
            at = 0
            while len(view) - at >= HEADER_BYTES:
                header = self._header(view, at, expected)
                if header is None:
                    return
                size_bytes = header.size_bytes
                if at + size_bytes > len(view):
                    break
                if not crc_is_valid(view, at, header):
                    self.reason = "the checksum of the batch does not match"
                    return
                self._position += size_bytes
                yield header, view[at : at + size_bytes]
                expected = header.next_offset
                at += size_bytes
            if at == 0 and not self._has_whole_batch(view):
                self.reason = "the file ends within a batch"
                return
            if at == 0:
                buffer = bytearray(read_header(view).size_bytes)

    def _header(self, view: memoryview, at: int, expected: int) -> BatchHeader | None:
        try:
            header = read_header(view, at)
        except CorruptBatch as error:
            self.reason = f"there is no batch ({error.message.rstrip('.')})"
            return None
        last_offset = header.last_offset
        if (
            header.base_offset < expected
            or header.last_offset_delta < 0
            or last_offset - self._base_offset > _MAX_RELATIVE_OFFSET
            or (self._limit is not None and last_offset >= self._limit)
        ):
            self.reason = f"offsets {header.base_offset} to {last_offset} are out of order"
            return None
        return header

    def _has_whole_batch(self, view: memoryview) -> bool:
        """Returns whether the next batch is whole, but larger than the buffer."""
        if len(view) < HEADER_BYTES:
            return False
        return self._position + read_header(view).size_bytes <= self._size_bytes
