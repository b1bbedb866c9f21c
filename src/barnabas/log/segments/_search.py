# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Searching a segment file by the headers of its batches, and an index by its entries.

A search of the file goes from header to header and reads little: a few hundred bytes at a time
where batches are large, several kilobytes where they are small.
"""

from __future__ import annotations

import os

from barnabas.log.errors import DamagedBatch, IndexMismatch
from barnabas.wire.records.batch import HEADER_BYTES, LENGTH_END, MAGIC, MAGIC_AT

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    Data = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)

_LAST_OFFSET_DELTA_AT = 23
_EXTENT_BYTES = 27
"""The start of a header: base offset, length, magic and last offset delta."""

_MIN_BYTES = HEADER_BYTES
_NOT_IN_LENGTH = LENGTH_END
_MAGIC = MAGIC
_MAGIC_POSITION = MAGIC_AT

_FEW_BYTES = 512
_MANY_BYTES = 8192


def find_batch(
    fd: object,
    position: Size,
    end: Size,
    offset: Long,
    indexed: object = None,
    pread: object = os.pread,
) -> int:
    """Returns the position of the first batch from `position` on that reaches `offset`; or `end`.

    `indexed` is the last offset of the batch at `position` according to an index.
    """
    read_bytes: Size = _FEW_BYTES
    at: Size
    size: Size
    last_offset: Long
    while position < end:
        ahead = _read_ahead(pread, fd, position, min(read_bytes, end - position))
        view: cython.const[cython.uchar][::1] = ahead
        data: Data = cython.address(view[0]) if cython.compiled else view
        last: Size = len(ahead) - _EXTENT_BYTES
        at = 0
        while at <= last:
            size = _size_of_batch(data, at)
            if size < 0 or position + at + size > end:
                raise _damage(position + at, indexed)
            last_offset = _integer(data, at, 8) + _integer(data, at + _LAST_OFFSET_DELTA_AT, 4)
            if indexed is not None:
                if last_offset != indexed:
                    raise IndexMismatch(f"no batch at byte {position} ends with {indexed}")
                indexed = None
            if last_offset >= offset:
                return position + at
            at += size
        position += at
        read_bytes = _MANY_BYTES if at < _MANY_BYTES else _FEW_BYTES
    return end


def find_batch_end(
    fd: object,
    position: Size,
    limit: Size,
    end: Size,
    indexed: object = None,
    pread: object = os.pread,
) -> tuple[int, int]:
    """Returns where the last whole batch that fits before `limit` ends, and the next offset.

    Returns `position` if not even the batch there fits.
    """
    read_bytes: Size = _FEW_BYTES
    next_offset: Long = -1
    at: Size
    size: Size
    base_offset: Long
    last_offset: Long
    while position < limit:
        ahead = _read_ahead(pread, fd, position, min(read_bytes, end - position))
        view: cython.const[cython.uchar][::1] = ahead
        data: Data = cython.address(view[0]) if cython.compiled else view
        last: Size = len(ahead) - _EXTENT_BYTES
        at = 0
        while at <= last:
            size = _size_of_batch(data, at)
            if size < 0 or position + at + size > end:
                raise _damage(position + at, indexed)
            base_offset = _integer(data, at, 8)
            last_offset = base_offset + _integer(data, at + _LAST_OFFSET_DELTA_AT, 4)
            if indexed is not None:
                if last_offset != indexed:
                    raise IndexMismatch(f"no batch at byte {position} ends with {indexed}")
                indexed = None
            if position + at + size > limit:
                return position + at, base_offset
            next_offset = last_offset + 1
            at += size
        position += at
        read_bytes = _MANY_BYTES if at < _MANY_BYTES else _FEW_BYTES
    return position, next_offset


def count_up_to(
    buffer: object,
    count: Size,
    entry_bytes: Size,
    key_at: Size,
    key_bytes: cython.int,
    target: Long,
) -> int:
    """Returns how many of the first `count` entries have a key of at most `target`.

    The keys ascend from entry to entry. Those of eight bytes are signed, those of four are not.
    """
    if count == 0:
        return 0
    view: cython.const[cython.uchar][::1] = buffer
    data: Data = cython.address(view[0]) if cython.compiled else buffer
    low: Size = 0
    middle: Size
    key: Long
    while low < count:
        middle = (low + count) // 2
        key = _integer(data, middle * entry_bytes + key_at, key_bytes)
        if key_bytes == 4:
            key &= 0xFFFFFFFF
        if key <= target:
            low = middle + 1
        else:
            count = middle
    return low


def _read_ahead(pread: object, fd: object, position: Size, count: Size) -> object:
    ahead = pread(fd, count, position)
    if len(ahead) < _EXTENT_BYTES:
        raise DamagedBatch(position, "the file ends within a batch header")
    return ahead


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _size_of_batch(data: Data, at: Size) -> Size:
    """Returns the size of the batch at a position, or -1 if there is none."""
    size: Size = _integer(data, at + 8, 4) + _NOT_IN_LENGTH
    if data[at + _MAGIC_POSITION] != _MAGIC or size < _MIN_BYTES:
        return -1
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _integer(data: Data, position: Size, size: cython.int) -> Long:
    """Returns the signed big-endian integer of that size."""
    if not cython.compiled:
        return int.from_bytes(data[position : position + size], signed=True)
    value: Long = data[position] - ((data[position] & 0x80) << 1)
    index: cython.int
    for index in range(1, size):
        value = value * 256 + data[position + index]  # a negative number must not be shifted
    return value


def _damage(position: int, indexed: object) -> Exception:
    if indexed is not None:
        return IndexMismatch(f"there is no batch at byte {position}")
    return DamagedBatch(position, "there is no whole batch")
