"""Finding batches in a segment file by their headers alone.

The walks read a little ahead and hop from header to header; what they pass over is not read.
"""

import os
import struct
from collections.abc import Iterator

from barnabas.log.failures import DamagedBatch
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

# One read covers the stretch between two index entries at their usual distance of 4 KiB.
_AHEAD_BYTES = 8192


def find(fd: int, position: int, end: int, offset: int) -> int:
    """Where the first batch stands that reaches `offset`, looking from `position`; or `end`."""
    unpack = _EXTENT.unpack_from
    while position < end:
        ahead = os.pread(fd, min(_AHEAD_BYTES, end - position), position)
        at, last = 0, len(ahead) - _EXTENT_BYTES
        if last < 0:
            raise DamagedBatch(position, "the file ends within a batch header")
        while at <= last:
            base_offset, length, magic, delta = unpack(ahead, at)
            if magic != MAGIC or length < _MIN_LENGTH or position + at + length + LENGTH_END > end:
                raise DamagedBatch(position + at, "there is no whole batch")
            if base_offset + delta >= offset:
                return position + at
            at += length + LENGTH_END
        position += at
    return end


def cut(fd: int, position: int, limit: int, end: int) -> tuple[int, int]:
    """The end of the last whole batch that ends by `limit`, and the offset to go on from.

    If not even the batch at `position` ends by `limit`, that is `position` itself.
    """
    unpack = _EXTENT.unpack_from
    next_offset = -1
    while position < limit:
        ahead = os.pread(fd, min(_AHEAD_BYTES, end - position), position)
        at, last = 0, len(ahead) - _EXTENT_BYTES
        if last < 0:
            raise DamagedBatch(position, "the file ends within a batch header")
        while at <= last:
            base_offset, length, magic, delta = unpack(ahead, at)
            after = position + at + length + LENGTH_END
            if magic != MAGIC or length < _MIN_LENGTH or after > end:
                raise DamagedBatch(position + at, "there is no whole batch")
            if after > limit:
                return position + at, base_offset
            next_offset = base_offset + delta + 1
            at += length + LENGTH_END
        position += at
    return position, next_offset


def extent(fd: int, position: int, end: int) -> tuple[int, int, int]:
    """Base offset, last offset and size of the batch at `position`."""
    head = os.pread(fd, _EXTENT_BYTES, position)
    if len(head) < _EXTENT_BYTES:
        raise DamagedBatch(position, "the file ends within a batch header")
    base_offset, length, magic, delta = _EXTENT.unpack(head)
    if magic != MAGIC or length < _MIN_LENGTH or position + length + LENGTH_END > end:
        raise DamagedBatch(position, "there is no whole batch")
    return base_offset, base_offset + delta, length + LENGTH_END


def headers(fd: int, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Every batch from `position` on with its place in the file."""
    while position < end:
        ahead = os.pread(fd, min(_AHEAD_BYTES, end - position), position)
        at, last = 0, len(ahead) - HEADER_BYTES
        if last < 0:
            raise DamagedBatch(position, "the file ends within a batch header")
        while at <= last:
            try:
                header = read_header(ahead, at)
            except CorruptBatch as error:
                raise DamagedBatch(position + at, error.message) from None
            if position + at + header.size_bytes > end:
                raise DamagedBatch(position + at, "the file ends within the batch")
            yield position + at, header
            at += header.size_bytes
        position += at


def read_batch(fd: int, position: int, header: BatchHeader) -> bytes:
    """The whole batch whose header stands at `position`."""
    return os.pread(fd, header.size_bytes, position)
