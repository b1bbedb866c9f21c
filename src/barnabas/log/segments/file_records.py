"""Searching a segment file for batches by their headers.

A search goes from header to header and reads little: a few hundred bytes at a time where batches
are large, several kilobytes where they are small.
"""

import os
import struct
from collections.abc import Iterator

from barnabas.log.errors import DamagedBatch, IndexMismatch
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


def find_batch(
    fd: int,
    position: int,
    end: int,
    offset: int,
    indexed: int | None = None,
    pread: PositionalRead = os.pread,
) -> int:
    """Returns the position of the first batch from `position` on that reaches `offset`; or `end`.

    `indexed` is the last offset of the batch at `position` according to an index.
    """
    unpack = _EXTENT.unpack_from
    read_bytes = _FEW_BYTES
    while position < end:
        ahead = _read_ahead(pread, fd, position, min(read_bytes, end - position), _EXTENT_BYTES)
        at, last = 0, len(ahead) - _EXTENT_BYTES
        while at <= last:
            base_offset, length, magic, delta = unpack(ahead, at)
            if magic != MAGIC or length < _MIN_LENGTH or position + at + length + LENGTH_END > end:
                raise _damage(position + at, indexed)
            last_offset = base_offset + delta
            if indexed is not None:
                if last_offset != indexed:
                    raise IndexMismatch(f"no batch at byte {position} ends with {indexed}")
                indexed = None
            if last_offset >= offset:
                return position + at
            at += length + LENGTH_END
        position += at
        read_bytes = _MANY_BYTES if at < _MANY_BYTES else _FEW_BYTES
    return end


def find_batch_end(
    fd: int,
    position: int,
    limit: int,
    end: int,
    indexed: int | None = None,
    pread: PositionalRead = os.pread,
) -> tuple[int, int]:
    """Returns where the last whole batch that fits before `limit` ends, and the next offset.

    Returns `position` if not even the batch there fits.
    """
    unpack = _EXTENT.unpack_from
    read_bytes = _FEW_BYTES
    next_offset = -1
    while position < limit:
        ahead = _read_ahead(pread, fd, position, min(read_bytes, end - position), _EXTENT_BYTES)
        at, last = 0, len(ahead) - _EXTENT_BYTES
        while at <= last:
            base_offset, length, magic, delta = unpack(ahead, at)
            after = position + at + length + LENGTH_END
            if magic != MAGIC or length < _MIN_LENGTH or after > end:
                raise _damage(position + at, indexed)
            if indexed is not None:
                if base_offset + delta != indexed:
                    raise IndexMismatch(f"no batch at byte {position} ends with {indexed}")
                indexed = None
            if after > limit:
                return position + at, base_offset
            next_offset = base_offset + delta + 1
            at += length + LENGTH_END
        position += at
        read_bytes = _MANY_BYTES if at < _MANY_BYTES else _FEW_BYTES
    return position, next_offset


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


def _damage(position: int, indexed: int | None = None) -> DamagedBatch | IndexMismatch:
    if indexed is not None:
        return IndexMismatch(f"there is no batch at byte {position}")
    return DamagedBatch(position, "there is no whole batch")
