"""Reading the headers of the batches in a segment file; `_search.py` finds batches by them."""

import os
import struct
from collections.abc import Iterator

from barnabas.log.errors import DamagedBatch
from barnabas.log.segments.page_cache import PositionalRead
from barnabas.wire.records.batch import (
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    BatchHeader,
    CorruptBatch,
    read_header,
)

# base offset, length, magic and last offset delta of the batch header
_EXTENT = struct.Struct(">qi4xb6xi")
_EXTENT_BYTES = _EXTENT.size
_MIN_LENGTH = HEADER_BYTES - LENGTH_END

_FEW_BYTES = 512
_MANY_BYTES = 8192


def read_extent(
    fd: int, position: int, end: int, pread: PositionalRead = os.pread
) -> tuple[int, int, int]:
    """Returns first offset, last offset and size of the batch at `position`."""
    ahead = _read_ahead(pread, fd, position, _EXTENT_BYTES, _EXTENT_BYTES)
    base_offset, length, magic, delta = _EXTENT.unpack(ahead)
    if magic != MAGIC or length < _MIN_LENGTH or position + length + LENGTH_END > end:
        raise _damage(position)
    return base_offset, base_offset + delta, length + LENGTH_END


def read_headers(fd: int, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yields the position and header of every batch from `position` on."""
    read_bytes = _FEW_BYTES
    while position < end:
        ahead = _read_ahead(os.pread, fd, position, min(read_bytes, end - position), HEADER_BYTES)
        at, last = 0, len(ahead) - HEADER_BYTES
        while at <= last:
            try:
                header = read_header(ahead, at)
            except CorruptBatch as error:
                raise DamagedBatch(position + at, error.message) from None
            if position + at + header.size_bytes > end:
                raise _damage(position + at)
            yield position + at, header
            at += header.size_bytes
        position += at
        read_bytes = _MANY_BYTES if at < _MANY_BYTES else _FEW_BYTES


def _read_ahead(
    pread: PositionalRead, fd: int, position: int, count: int, needed: int
) -> bytes | bytearray:
    ahead = pread(fd, count, position)
    if len(ahead) < needed:
        raise DamagedBatch(position, "the file ends within a batch header")
    return ahead


def _damage(position: int) -> DamagedBatch:
    return DamagedBatch(position, "there is no whole batch")
