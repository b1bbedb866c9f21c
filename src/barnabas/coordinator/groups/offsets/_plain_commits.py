# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The loops over the partitions of an OffsetCommit: to entries, and from these to records.

An entry is what the commit of a partition stores: the partition (int32), the offset (int64), the
leader epoch (int32) and the timestamp of the commit (int64). All are big-endian, as in a record,
whose layout is in `record.py`. Compiled, or run as the Python it is.
"""

from __future__ import annotations

from barnabas.wire.errors import ErrorCode
from barnabas.wire.uuid import ZERO

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import (
        PyByteArray_AS_STRING,
        PyByteArray_FromStringAndSize,
    )
    from cython.cimports.libc.string import memcpy

    Room = cython.typedef(cython.pointer[cython.uchar])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)

COMPILED: bool = cython.compiled
ENTRY_BYTES = 24

_KEY_TYPE: Size = 1
_VALUE_VERSION: Size = 4
_NO_METADATA: Size = 1
_NO_ERROR = ErrorCode.NONE
_UNKNOWN_PARTITION = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def pack(partitions: list, existing: object, timestamp: Long) -> tuple[list, bytes] | None:
    """Returns the error code of each partition of a request, and the entries of those that exist.

    Returns None if a partition has metadata: the commit is not plain.
    """
    entries: bytearray = _unwritten(len(partitions) * ENTRY_BYTES)
    data: Room = _room(entries)
    codes: list = []
    at: Size = 0
    for partition in partitions:
        if partition.committed_metadata:
            return None
        index = partition.partition_index
        if index not in existing:
            codes.append(_UNKNOWN_PARTITION)
            continue
        codes.append(_NO_ERROR)
        _put(data, at, index, 4)
        _put(data, at + 4, partition.committed_offset, 8)
        _put(data, at + 12, partition.committed_leader_epoch, 4)
        _put(data, at + 16, timestamp, 8)
        at += ENTRY_BYTES
    return codes, bytes(entries[:at])


def encode(topics: list, reserved: Size) -> bytearray:
    """Returns the encoded records, all of one timestamp, after `reserved` bytes.

    A topic is a tuple: the names in its keys, its id, and the entries.
    """
    names: bytes
    topic_id: bytes
    entries: bytes
    count: Size = 0
    total: Size = reserved
    key_size: Size
    value_size: Size
    delta: Size
    for names, topic_id, entries in topics:
        key_size, value_size = _sizes(names, topic_id)
        for delta in range(count, count + len(entries) // ENTRY_BYTES):
            total += _record_size(key_size, value_size, delta)
            total += _varint_size(_record_size(key_size, value_size, delta))
        count += len(entries) // ENTRY_BYTES
    encoded = _unwritten(total)
    data: Room = _room(encoded)
    at: Size = reserved
    entry: Size
    delta = 0
    for names, topic_id, entries in topics:
        key_size, value_size = _sizes(names, topic_id)
        for entry in range(0, len(entries), ENTRY_BYTES):
            at = _put_varint(data, at, _record_size(key_size, value_size, delta))
            _put(data, at, 0, 2)  # attributes, and the timestamp's delta
            at = _put_varint(data, at + 2, delta)
            at = _put_varint(data, at, key_size)
            at = _put_key(data, at, names, entries, entry)
            at = _put_varint(data, at, value_size)
            at = _put_value(data, at, topic_id, entries, entry)
            _put(data, at, 0, 1)  # headers
            at += 1
            delta += 1
    return encoded


@cython.cfunc
@cython.inline
def _sizes(names: bytes, topic_id: bytes) -> tuple[Size, Size]:
    """Returns the sizes of a key and of a value."""
    return len(names) + 6, 24 if topic_id == ZERO else 42


@cython.cfunc
@cython.inline
def _put_key(data: Room, at: Size, names: bytes, entries: bytes, entry: Size) -> Size:
    _put(data, at, _KEY_TYPE, 2)
    at = _put_bytes(data, at + 2, names, 0, len(names))
    return _put_bytes(data, at, entries, entry, 4)


@cython.cfunc
@cython.inline
def _put_value(data: Room, at: Size, topic_id: bytes, entries: bytes, entry: Size) -> Size:
    _put(data, at, _VALUE_VERSION, 2)
    at = _put_bytes(data, at + 2, entries, entry + 4, 12)  # offset and leader epoch
    _put(data, at, _NO_METADATA, 1)
    at = _put_bytes(data, at + 1, entries, entry + 16, 8)
    if topic_id == ZERO:
        _put(data, at, 0, 1)
        return at + 1
    _put(data, at, 0x010010, 3)  # one tag, number 0, its size
    return _put_bytes(data, at + 3, topic_id, 0, 16)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _record_size(key_size: Size, value_size: Size, delta: Size) -> Size:
    """Returns the size of a record after its length field."""
    return (
        3
        + _varint_size(delta)
        + _varint_size(key_size)
        + key_size
        + _varint_size(value_size)
        + value_size
    )


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _varint_size(value: Size) -> Size:
    """Returns the size of a varint that is not negative."""
    size: Size = 1
    value <<= 1
    while value > 0x7F:
        value >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
def _put_varint(data: Room, at: Size, value: Size) -> Size:
    value <<= 1
    while value > 0x7F:
        data[at] = value & 0x7F | 0x80
        value >>= 7
        at += 1
    data[at] = value
    return at + 1


@cython.cfunc
@cython.inline
def _put(data: Room, at: Size, value: Long, size: Size) -> cython.void:
    """Writes a big-endian integer."""
    index: Size
    for index in range(at + size - 1, at - 1, -1):
        data[index] = value & 0xFF
        value >>= 8


@cython.cfunc
@cython.inline
def _put_bytes(data: Room, at: Size, source: bytes, start: Size, size: Size) -> Size:
    if cython.compiled:
        memcpy(
            cython.address(data[at]),
            cython.cast(cython.pointer[cython.char], source) + start,
            size,
        )
    else:
        data[at : at + size] = source[start : start + size]
    return at + size


@cython.cfunc
@cython.inline
def _unwritten(size: Size) -> bytearray:
    return PyByteArray_FromStringAndSize(cython.NULL, size) if cython.compiled else bytearray(size)


@cython.cfunc
@cython.inline
def _room(encoded: bytearray) -> Room:
    if cython.compiled:
        return cython.cast(cython.pointer[cython.uchar], PyByteArray_AS_STRING(encoded))
    return encoded
