# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The loops over records: compiled with C types, or run as the Python they are.

Bytes come from the network, so every varint and every length is checked against the end of
the buffer before anything is read. In C, `data` is a pointer into the buffer; in Python it is
the buffer itself. Both are indexed alike.

A record:

    length         varint   bytes after this field
    attributes     int8     unused
    timestamp      varlong  ms after the batch's base timestamp
    offset         varint   after the batch's base offset
    key length     varint   -1 is null
    key
    value length   varint   -1 is null
    value
    header count   varint
    headers        each: key length varint, key, value length varint (-1 is null), value

Varints are zigzag: 0, -1, 1, -2 are written 0, 1, 2, 3, in groups of seven bits, lowest first.
"""

from __future__ import annotations

from barnabas.wire.records.batch import CorruptBatch
from barnabas.wire.records.record import Record

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.cpython.bytes import PyBytes_FromStringAndSize
    from cython.cimports.libc.string import memcpy

COMPILED: bool = cython.compiled

_Span = cython.struct(
    end=cython.Py_ssize_t,  # -1: the record is malformed, and nothing else is set
    timestamp_delta=cython.longlong,
    offset_delta=cython.longlong,
    key_at=cython.Py_ssize_t,
    key_size=cython.longlong,  # negative: null
    value_at=cython.Py_ssize_t,
    value_size=cython.longlong,
    headers_at=cython.Py_ssize_t,
    header_count=cython.longlong,
)
_Varint = cython.struct(
    value=cython.longlong,
    end=cython.Py_ssize_t,  # -1: cut short or too long
)


def walk(
    buffer: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.int,
    base_timestamp: cython.longlong,
    earliest: cython.longlong,
    latest: cython.longlong,
) -> tuple[int, int, int, int]:
    """Checks that `count` whole records at offsets 0, 1, 2... fill the bytes exactly.

    Returns the latest timestamp, and the indexes of the first record that is malformed, has
    no key, and has a timestamp outside the bounds; -1 where there is none. The walk ends at
    a malformed record; bytes after the last record make `count` itself malformed.
    """
    _check_range(start, end, len(buffer))
    data: cython.pointer[cython.const[cython.uchar]] = _address(buffer)
    position: cython.Py_ssize_t = start
    timestamp: cython.longlong
    max_timestamp: cython.longlong = -1
    keyless: cython.int = -1
    untimely: cython.int = -1
    index: cython.int
    record: _Span
    for index in range(count):
        record = _span(data, position, end)
        position = record.end
        if (
            position < 0
            or record.offset_delta != index
            or _overflows(base_timestamp, record.timestamp_delta)
        ):
            return max_timestamp, index, keyless, untimely
        if record.key_size < 0 and keyless < 0:
            keyless = index
        timestamp = base_timestamp + record.timestamp_delta
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        if (timestamp < earliest or timestamp > latest) and timestamp != -1 and untimely < 0:
            untimely = index
    return max_timestamp, -1 if position == end else count, keyless, untimely


def find_faults(
    buffer: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.int,
    base_timestamp: cython.longlong,
    earliest: cython.longlong,
    latest: cython.longlong,
    needs_key: cython.bint,
    limit: cython.Py_ssize_t,
) -> list[tuple[int, int | None]]:
    """Each record out of the time allowed, with its timestamp, or without a key, with None.

    For records that `walk` has found to be well formed; no more than `limit` are named.
    """
    _check_range(start, end, len(buffer))
    data: cython.pointer[cython.const[cython.uchar]] = _address(buffer)
    position: cython.Py_ssize_t = start
    faults: list = []
    timestamp: cython.longlong
    index: cython.int
    record: _Span
    for index in range(count):
        record = _span(data, position, end)
        position = record.end
        if position < 0 or len(faults) == limit:
            break
        timestamp = base_timestamp + record.timestamp_delta
        if needs_key and record.key_size < 0:
            faults.append((index, None))
        elif (timestamp < earliest or timestamp > latest) and timestamp != -1:
            faults.append((index, timestamp))
    return faults


def decode(
    buffer: cython.const[cython.uchar][::1],
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.int,
    base_offset: cython.longlong,
    base_timestamp: cython.longlong,
    append_time: object,
) -> list[Record]:
    """The records as Python sees them, all at `append_time` unless that is None."""
    _check_range(start, end, len(buffer))
    data: cython.pointer[cython.const[cython.uchar]] = _address(buffer)
    position: cython.Py_ssize_t = start
    records: list = []
    new = tuple.__new__  # the named tuple's own constructor is five times slower
    timestamp = append_time
    index: cython.int
    record: _Span
    for index in range(count):
        record = _span(data, position, end)
        position = record.end
        if (
            position < 0
            or _overflows(base_timestamp, record.timestamp_delta)
            or _overflows(base_offset, record.offset_delta)
        ):
            raise _malformed(index, count)
        if append_time is None:
            timestamp = base_timestamp + record.timestamp_delta
        fields = (
            base_offset + record.offset_delta,
            timestamp,
            _bytes(data, record.key_at, record.key_size),
            _bytes(data, record.value_at, record.value_size),
            _headers(data, record.headers_at, record.end, record.header_count),
        )
        records.append(new(Record, fields))
    if position != end:
        raise _malformed(count, count)
    return records


def encode(
    records: object,
    base_offset: object,
    base_timestamp: cython.longlong,
    reserved: cython.Py_ssize_t,
) -> bytearray:
    """The records as bytes, after `reserved` bytes for the batch header.

    Their offsets count on from the first, or from `base_offset` as they are if that is given.
    """
    size: cython.longlong
    total: cython.longlong = reserved
    delta: cython.longlong = 0
    for record in records:
        if base_offset is not None:
            delta = record[0] - base_offset
        size = _body_size(tuple(record), delta, base_timestamp)
        total += _varint_size(size) + size
        delta += 1
    if total > 0x7FFFFFFF:
        raise ValueError(f"A batch holds less than 2 GiB; these records take {total} bytes.")
    encoded = bytearray(total)
    buffer: cython.uchar[::1] = encoded
    data: cython.pointer[cython.uchar] = _writable(buffer)
    position: cython.Py_ssize_t = reserved
    delta = 0
    for record in records:
        if base_offset is not None:
            delta = record[0] - base_offset
        position = _put_record(data, position, total, tuple(record), delta, base_timestamp)
        delta += 1
    return encoded


@cython.cfunc
def _body_size(
    fields: tuple, offset_delta: cython.longlong, base_timestamp: cython.longlong
) -> cython.longlong:
    """The bytes of a record after its length."""
    if offset_delta < 0 or offset_delta > 0x7FFFFFFF:
        raise ValueError(f"Offset {fields[0]} is {offset_delta} after the batch's base offset.")
    timestamp: cython.longlong = fields[1]
    headers: list = fields[4]
    size: cython.longlong = (
        1
        + _varint_size(timestamp - base_timestamp)
        + _varint_size(offset_delta)
        + _cell_size(fields[2])
        + _cell_size(fields[3])
        + _varint_size(len(headers))
    )
    for key, value in headers:
        size += _cell_size(key.encode()) + _cell_size(value)
    return size


@cython.cfunc
def _put_record(
    data: cython.pointer[cython.uchar],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    fields: tuple,
    offset_delta: cython.longlong,
    base_timestamp: cython.longlong,
) -> cython.Py_ssize_t:
    timestamp: cython.longlong = fields[1]
    headers: list = fields[4]
    size: cython.longlong = _body_size(fields, offset_delta, base_timestamp)
    if position + _varint_size(size) + size > end:
        raise ValueError("The records have changed while they were encoded.")
    position = _put_varint(data, position, size)
    data[position] = 0
    position = _put_varint(data, position + 1, timestamp - base_timestamp)
    position = _put_varint(data, position, offset_delta)
    position = _put_cell(data, position, fields[2])
    position = _put_cell(data, position, fields[3])
    position = _put_varint(data, position, len(headers))
    for key, value in headers:
        position = _put_cell(data, position, key.encode())
        position = _put_cell(data, position, value)
    return position


@cython.cfunc
def _cell_size(cell: object) -> cython.longlong:
    """The bytes of a key or a value with its length."""
    if cell is None:
        return 1
    if type(cell) is not bytes:
        raise TypeError(f"Keys and values are bytes or None, not {type(cell).__name__}.")
    size: cython.Py_ssize_t = len(cell)
    return _varint_size(size) + size


@cython.cfunc
def _put_cell(
    data: cython.pointer[cython.uchar], position: cython.Py_ssize_t, cell: object
) -> cython.Py_ssize_t:
    if cell is None:
        return _put_varint(data, position, -1)
    source: bytes = cell
    size: cython.Py_ssize_t = len(source)
    position = _put_varint(data, position, size)
    if cython.compiled:
        memcpy(cython.address(data[position]), cython.cast(cython.p_char, source), size)
    else:
        data[position : position + size] = source
    return position + size


@cython.cfunc
@cython.inline
def _headers(
    data: cython.pointer[cython.const[cython.uchar]],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
) -> list:
    """Headers that `_span` has found to be well formed."""
    headers: list = []
    size: _Varint
    for _ in range(count):
        size = _varint(data, position, end)
        key = _bytes(data, size.end, size.value).decode(errors="replace")
        position = _after(size, end)
        size = _varint(data, position, end)
        headers.append((key, _bytes(data, size.end, size.value)))
        position = _after(size, end)
    return headers


@cython.cfunc
@cython.inline
def _bytes(
    data: cython.pointer[cython.const[cython.uchar]],
    start: cython.Py_ssize_t,
    size: cython.longlong,
) -> object:
    if size < 0:
        return None
    if cython.compiled:
        return PyBytes_FromStringAndSize(
            cython.cast(cython.p_char, cython.address(data[start])), size
        )
    return bytes(data[start : start + size])


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _span(
    data: cython.pointer[cython.const[cython.uchar]],
    position: cython.Py_ssize_t,
    limit: cython.Py_ssize_t,
) -> _Span:
    """Where the fields of the record at `position` are, all of them before `limit`."""
    size: _Varint = _varint(data, position, limit)
    end: cython.Py_ssize_t = _after(size, limit)
    timestamp: _Varint = _varlong(data, size.end + 1, end)
    offset: _Varint = _varint(data, timestamp.end, end)
    key: _Varint = _varint(data, offset.end, end)
    value: _Varint = _varint(data, _after(key, end), end)
    headers: _Varint = _varint(data, _after(value, end), end)
    if size.value < 0 or headers.end < 0 or headers.value < 0:
        return _Span(-1, 0, 0, 0, 0, 0, 0, 0, 0)
    if _after_headers(data, headers.end, end, headers.value) != end:
        return _Span(-1, 0, 0, 0, 0, 0, 0, 0, 0)
    return _Span(
        end,
        timestamp.value,
        offset.value,
        key.end,
        key.value,
        value.end,
        value.value,
        headers.end,
        headers.value,
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _after_headers(
    data: cython.pointer[cython.const[cython.uchar]],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    count: cython.longlong,
) -> cython.Py_ssize_t:
    """The position after the headers, or -1; no more are tried than there are bytes for."""
    size: _Varint
    while count > 0 and position >= 0:
        size = _varint(data, position, end)
        if size.value < 0:
            return -1
        size = _varint(data, _after(size, end), end)
        position = _after(size, end)
        count -= 1
    return position


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _after(size: _Varint, end: cython.Py_ssize_t) -> cython.Py_ssize_t:
    """The position after so many bytes, or -1 if they are not there; null has none."""
    if size.end < 0 or size.value > end - size.end:
        return -1
    if size.value < 0:
        return size.end
    return size.end + size.value


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint(
    data: cython.pointer[cython.const[cython.uchar]],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
) -> _Varint:
    """The zigzag int32 at `position`, which may be -1, beyond the end, or anything between."""
    byte: cython.longlong
    if position < 0 or position >= end:
        return _Varint(0, -1)
    byte = data[position]
    if byte < 0x80:
        return _Varint((byte >> 1) ^ -(byte & 1), position + 1)
    position += 1
    if position < end and data[position] < 0x80:
        byte = (byte & 0x7F) | data[position] << 7
        return _Varint((byte >> 1) ^ -(byte & 1), position + 1)
    return _long_varint(data, position - 1, end, 32)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varlong(
    data: cython.pointer[cython.const[cython.uchar]],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
) -> _Varint:
    """The zigzag int64 at `position`."""
    byte: cython.longlong
    if position < 0 or position >= end:
        return _Varint(0, -1)
    byte = data[position]
    if byte < 0x80:
        return _Varint((byte >> 1) ^ -(byte & 1), position + 1)
    position += 1
    if position < end and data[position] < 0x80:
        byte = (byte & 0x7F) | data[position] << 7
        return _Varint((byte >> 1) ^ -(byte & 1), position + 1)
    return _long_varint(data, position - 1, end, 64)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _long_varint(
    data: cython.pointer[cython.const[cython.uchar]],
    position: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    bits: cython.int,
) -> _Varint:
    zigzag: cython.ulonglong = 0
    byte: cython.ulonglong
    shift: cython.int = 0
    while position < end and shift < bits:
        byte = data[position]
        position += 1
        if shift + 7 > bits and byte >> (bits - shift):
            break
        zigzag |= (byte & 0x7F) << shift
        if byte < 0x80:
            return _Varint((zigzag >> 1) ^ -(zigzag & 1), position)
        shift += 7
    return _Varint(0, -1)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint_size(value: cython.longlong) -> cython.int:
    zigzag: cython.ulonglong = (value << 1) ^ (value >> 63)
    size: cython.int = 1
    while zigzag >= 0x80:
        zigzag >>= 7
        size += 1
    return size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _put_varint(
    data: cython.pointer[cython.uchar], position: cython.Py_ssize_t, value: cython.longlong
) -> cython.Py_ssize_t:
    zigzag: cython.ulonglong = (value << 1) ^ (value >> 63)
    while zigzag >= 0x80:
        data[position] = (zigzag & 0x7F) | 0x80
        zigzag >>= 7
        position += 1
    data[position] = zigzag
    return position + 1


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _overflows(base: cython.longlong, delta: cython.longlong) -> cython.bint:
    """Whether their sum is beyond an int64."""
    largest: cython.longlong = 0x7FFFFFFFFFFFFFFF
    if delta >= 0:
        return base > largest - delta
    return base < 0 and base + largest < -1 - delta


@cython.cfunc
@cython.inline
def _address(
    buffer: cython.const[cython.uchar][::1],
) -> cython.pointer[cython.const[cython.uchar]]:
    return cython.address(buffer[0]) if cython.compiled else buffer


@cython.cfunc
@cython.inline
def _writable(buffer: cython.uchar[::1]) -> cython.pointer[cython.uchar]:
    return cython.address(buffer[0]) if cython.compiled else buffer


@cython.cfunc
def _check_range(
    start: cython.Py_ssize_t, end: cython.Py_ssize_t, size: cython.Py_ssize_t
) -> object:
    if not 0 <= start <= end <= size:
        raise CorruptBatch(f"Records at {start} to {end} are not in a buffer of {size} bytes.")


@cython.cfunc
def _malformed(index: cython.int, count: cython.int) -> object:
    if index == count:
        return CorruptBatch(f"There are bytes left after the last of {count} records.")
    return CorruptBatch(f"Record {index} of {count} is cut short or has a hostile length.")
