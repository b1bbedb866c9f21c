"""Finding batches in a segment file by their headers alone.

The walks hop from header to header and read as little as that takes: a few hundred bytes where
batches are large, several kilobytes at a time where they are small.
"""

import os
import struct
from collections.abc import Iterator

from barnabas.log.errors import DamagedBatch, IndexMismatch
from barnabas.wire.records.batch import (
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    BatchHeader,
    CorruptBatch,
    read_header,
)

# base offset, length, magic and last offset delta, at their places in the batch header
_EXTENT = struct.Struct(">qi4xb6xi")
_EXTENT_BYTES = _EXTENT.size
_MIN_LENGTH = HEADER_BYTES - LENGTH_END

_FEW_BYTES = 512
_MANY_BYTES = 8192


def find_batch(fd: int, position: int, end: int, offset: int, indexed: int | None = None) -> int:
    """Where the first batch stands that reaches `offset`, looking from `position`; or `end`.

    `indexed` is what an index claims to be the last offset of the batch at `position`.
    """
    unpack = _EXTENT.unpack_from
    read_bytes = _FEW_BYTES
    while position < end:
        ahead = _read_ahead(fd, position, min(read_bytes, end - position), _EXTENT_BYTES)
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
    fd: int, position: int, limit: int, end: int, indexed: int | None = None
) -> tuple[int, int]:
    """The end of the last whole batch that ends by `limit`, and the offset to go on from.

    If not even the batch at `position` ends by `limit`, that is `position` itself.
    """
    unpack = _EXTENT.unpack_from
    read_bytes = _FEW_BYTES
    next_offset = -1
    while position < limit:
        ahead = _read_ahead(fd, position, min(read_bytes, end - position), _EXTENT_BYTES)
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


def read_extent(fd: int, position: int, end: int) -> tuple[int, int, int]:
    """First offset, last offset and size of the batch at `position`."""
    ahead = _read_ahead(fd, position, _EXTENT_BYTES, _EXTENT_BYTES)
    base_offset, length, magic, delta = _EXTENT.unpack(ahead)
    if magic != MAGIC or length < _MIN_LENGTH or position + length + LENGTH_END > end:
        raise _damage(position)
    return base_offset, base_offset + delta, length + LENGTH_END


def read_headers(fd: int, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Every batch from `position` on with its place in the file."""
    read_bytes = _FEW_BYTES
    while position < end:
        ahead = _read_ahead(fd, position, min(read_bytes, end - position), HEADER_BYTES)
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


def _read_ahead(fd: int, position: int, count: int, needed: int) -> bytes:
    ahead = os.pread(fd, count, position)
    if len(ahead) < needed:
        raise DamagedBatch(position, "the file ends within a batch header")
    return ahead


def _damage(position: int, indexed: int | None = None) -> DamagedBatch | IndexMismatch:
    if indexed is not None:
        return IndexMismatch(f"there is no batch at byte {position}")
    return DamagedBatch(position, "there is no whole batch")
