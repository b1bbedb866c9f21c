# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The loops that read records: compiled with C types, or run as the Python they are.

They share one file because C inlines only within a file: separately, a record takes twice the time.

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

from barnabas.wire.records.batch import (
    CODEC_BITS,
    CONTROL_BIT,
    HEADER_BYTES,
    MAGIC,
    TRANSACTIONAL_BIT,
    CorruptBatch,
)
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

    Data = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)

COMPILED: bool = cython.compiled
# Where the fields of a record are. An end of -1: the record is malformed. A negative size: null.
Span = cython.struct(
    end=cython.Py_ssize_t,
    timestamp_delta=cython.longlong,
    offset_delta=cython.longlong,
    key_at=cython.Py_ssize_t,
    key_size=cython.longlong,
    value_at=cython.Py_ssize_t,
    value_size=cython.longlong,
    headers_at=cython.Py_ssize_t,
    header_count=cython.longlong,
)
# An end of -1: it is cut short or too long.
Varint = cython.struct(value=cython.longlong, end=cython.Py_ssize_t)


def walk(
    records: cython.const[cython.uchar][::1],
    count: cython.int,
    base_timestamp: Long,
    earliest: Long,
    latest: Long,
) -> tuple[int, int, int, int]:
    """Checks that `count` whole records at offsets 0, 1, 2... fill the bytes exactly.

    Returns the latest timestamp, and the indexes of the first record that is malformed, has
    no key, and has a timestamp outside the bounds; -1 where there is none. The walk ends at
    a malformed record; bytes after the last record make `count` itself malformed.
    """
    found: RecordWalk = RecordWalk()
    found.check(_address(records), len(records), count, base_timestamp, earliest, latest)
    return found.max_timestamp, found.malformed, found.keyless, found.untimely


@cython.final
@cython.cclass
class RecordWalk:
    """What `walk` finds, for compiled callers. The fields are declared in `_loops.pxd`."""

    def check(self, data, end, count, base_timestamp, earliest, latest):
        """Walks through the records in the first `end` bytes."""
        position: Size = 0
        timestamp: Long
        max_timestamp: Long = -1
        index: cython.int
        span: Span
        self.malformed = -1
        self.keyless = -1
        self.untimely = -1
        for index in range(count):
            span = _span(data, position, end)
            position = span.end
            if (
                position < 0
                or span.offset_delta != index
                or _overflows(base_timestamp, span.timestamp_delta)
            ):
                self.malformed = index
                break
            if span.key_size < 0 and self.keyless < 0:
                self.keyless = index
            timestamp = base_timestamp + span.timestamp_delta
            if timestamp > max_timestamp:
                max_timestamp = timestamp
            if (
                (timestamp < earliest or timestamp > latest)
                and timestamp != -1
                and self.untimely < 0
            ):
                self.untimely = index
        self.max_timestamp = max_timestamp
        if self.malformed < 0 and position != end:
            self.malformed = count


def find_faults(
    records: cython.const[cython.uchar][::1],
    count: cython.int,
    base_timestamp: Long,
    earliest: Long,
    latest: Long,
    needs_key: cython.bint,
    limit: Size,
) -> list[tuple[int, int | None]]:
    """Returns (index, timestamp) of records out of bounds, (index, None) of those without a key.

    For records that `walk` has found well formed; returns at most `limit` of them.
    """
    data: Data = _address(records)
    end: Size = len(records)
    position: Size = 0
    faults: list = []
    timestamp: Long
    index: cython.int
    span: Span
    for index in range(count):
        span = _span(data, position, end)
        position = span.end
        if position < 0 or len(faults) == limit:
            break
        timestamp = base_timestamp + span.timestamp_delta
        if needs_key and span.key_size < 0:
            faults.append((index, None))
        elif (timestamp < earliest or timestamp > latest) and timestamp != -1:
            faults.append((index, timestamp))
    return faults


def decode(
    records: cython.const[cython.uchar][::1],
    count: cython.int,
    base_offset: Long,
    base_timestamp: Long,
    append_time: object,
) -> list[Record]:
    """Returns the records as Python objects, all at `append_time` unless that is None."""
    data: Data = _address(records)
    end: Size = len(records)
    position: Size = 0
    decoded: list = []
    new = tuple.__new__  # the named tuple's own constructor takes twice as long
    timestamp = append_time
    index: cython.int
    span: Span
    for index in range(count):
        span = _span(data, position, end)
        if not _is_whole(span, base_offset, base_timestamp):
            raise _malformed(index, count)
        position = span.end
        if append_time is None:
            timestamp = base_timestamp + span.timestamp_delta
        fields = (
            base_offset + span.offset_delta,
            timestamp,
            _bytes(data, span.key_at, span.key_size),
            _bytes(data, span.value_at, span.value_size),
            _headers(data, span.headers_at, position, span.header_count),
        )
        decoded.append(new(Record, fields))
    if position != end:
        raise _malformed(count, count)
    return decoded


def gather(
    batches: cython.const[cython.uchar][::1], position: Size, limit: Size
) -> tuple[list[tuple[bytes | None, bytes | None]], int, int]:
    """Returns keys and values of plain batches from `position` on, and position and offset after.

    It ends with the batch that reaches `limit`, and before one that is not plain: compressed,
    transactional, a control batch, or with an invalid header. If that is the first, the offset
    is -1. The header fields are described in `batch.py`.
    """
    data: Data = _address(batches)
    end: Size = len(batches)
    header_bytes: Size = HEADER_BYTES
    magic: cython.uchar = MAGIC
    not_plain: cython.uchar = CODEC_BITS | TRANSACTIONAL_BIT | CONTROL_BIT
    gathered: list = []
    next_offset: Long = -1
    at: Size
    batch_end: Size
    index: cython.int
    count: cython.int
    span: Span
    while end - position >= header_bytes and len(gathered) < limit:
        batch_end = position + 12 + _integer(data, position + 8, 4)
        if (
            data[position + 16] != magic
            or data[position + 22] & not_plain
            or batch_end < position + header_bytes
            or batch_end > end
        ):
            break
        at = position + header_bytes
        count = _integer(data, position + 57, 4)
        for index in range(count):
            span = _span(data, at, batch_end)
            at = span.end
            if at < 0:
                raise _malformed(index, count)
            key = _bytes(data, span.key_at, span.key_size)
            gathered.append((key, _bytes(data, span.value_at, span.value_size)))
        if at != batch_end:
            raise _malformed(count, count)
        next_offset = _integer(data, position, 8) + _integer(data, position + 23, 4) + 1
        position = batch_end
    return gathered, position, next_offset


@cython.final
@cython.cclass
class Walk:
    """Iterates over the records of several batches in one buffer.

    For compiled callers in other files, where a call per record is cheap enough. The fields are
    declared in `_loops.pxd`.
    """

    def __init__(self, records: cython.const[cython.uchar][::1]) -> None:
        self.records = records
        self.left = 0
        self.position = 0
        self.end = 0

    def begin(self, start, end, count, base_offset, base_timestamp, is_stamped, append_time):
        """Moves before the first of `count` records in the bytes from start to end."""
        if start < 0 or end < start or end > len(self.records):
            raise CorruptBatch("The batch is truncated.")
        self.position = start
        self.end = end
        self.count = count
        self.left = count
        self.base_offset = base_offset
        self.base_timestamp = base_timestamp
        self.is_stamped = is_stamped
        self.timestamp = append_time

    def step(self):
        """Moves to the next record; there is one while `left` is not 0."""
        span: Span = _span(_address(self.records), self.position, self.end)
        if self.left <= 0 or not _is_whole(span, self.base_offset, self.base_timestamp):
            raise _malformed(self.count - self.left, self.count)
        if self.left == 1 and span.end != self.end:
            raise _malformed(self.count, self.count)
        self.left -= 1
        self.before = self.position
        self.position = span.end
        self.offset = self.base_offset + span.offset_delta
        if not self.is_stamped:
            self.timestamp = self.base_timestamp + span.timestamp_delta
        self.key_at = span.key_at
        self.key_size = span.key_size
        self.value_at = span.value_at
        self.value_size = span.value_size
        self.headers_at = span.headers_at
        self.header_count = span.header_count
        return True

    def step_back(self):
        """Moves back before the record of the last step."""
        self.position = self.before
        self.left += 1

    def key(self) -> object:
        return _bytes(_address(self.records), self.key_at, self.key_size)

    def value(self) -> object:
        return _bytes(_address(self.records), self.value_at, self.value_size)

    def headers(self) -> object:
        """Returns the headers, or None if there are none."""
        if self.header_count == 0:
            return None
        data: Data = _address(self.records)
        return _headers(data, self.headers_at, self.position, self.header_count)


def measure(
    records: cython.const[cython.uchar][::1], count: cython.int
) -> tuple[int, int, int, int, int]:
    """Returns bytes of keys and values, the number of headers, bytes of their keys and values."""
    data: Data = _address(records)
    end: Size = len(records)
    position: Size = 0
    key_bytes: Long = 0
    value_bytes: Long = 0
    headers: Long = 0
    header_key_bytes: Long = 0
    header_value_bytes: Long = 0
    at: Size
    span: Span
    cell: Varint
    whole: cython.int = 0
    with cython.nogil:
        while whole < count:
            span = _span(data, position, end)
            if not _is_whole(span, 0, 0):
                break
            whole += 1
            position = span.end
            key_bytes += max(span.key_size, 0)
            value_bytes += max(span.value_size, 0)
            headers += span.header_count
            at = span.headers_at
            for _ in range(span.header_count):
                cell = _varint(data, at, position, 32)
                header_key_bytes += cell.value
                cell = _varint(data, _after(cell, position), position, 32)
                header_value_bytes += max(cell.value, 0)
                at = _after(cell, position)
    if whole < count or position != end:
        raise _malformed(whole, count)
    return key_bytes, value_bytes, headers, header_key_bytes, header_value_bytes


@cython.final
@cython.cclass
class Columns:
    """The columns of an Arrow batch while they are filled, sized by `measure`."""

    offsets: cython.longlong[::1]
    timestamps: cython.longlong[::1]
    keys: DecodedCells
    values: DecodedCells
    header_offsets: cython.int[::1]
    header_keys: DecodedCells
    header_values: DecodedCells
    count: Size

    def __init__(
        self,
        offsets: cython.longlong[::1],
        timestamps: cython.longlong[::1],
        keys: DecodedCells,
        values: DecodedCells,
        header_offsets: cython.int[::1],
        header_keys: DecodedCells,
        header_values: DecodedCells,
    ) -> None:
        if len(offsets) != len(timestamps) or len(offsets) + 1 != len(header_offsets):
            raise ValueError("The columns are not of one length.")
        self.offsets = offsets
        self.timestamps = timestamps
        self.keys = keys
        self.values = values
        self.header_offsets = header_offsets
        self.header_keys = header_keys
        self.header_values = header_values
        self.count = 0
        header_offsets[0] = 0

    def append(
        self,
        records: cython.const[cython.uchar][::1],
        count: cython.int,
        base_offset: Long,
        base_timestamp: Long,
        append_time: object,
    ) -> None:
        """Adds the records of a batch, all at `append_time` unless that is None."""
        data: Data = _address(records)
        end: Size = len(records)
        position: Size = 0
        stamped: cython.bint = append_time is not None
        timestamp: Long = append_time if stamped else 0
        at: Size
        row: Size = self.count
        span: Span
        cell: Varint
        if count > len(self.offsets) - row:
            raise ValueError("The columns have no space for the batch.")
        fits: cython.bint = True
        whole: cython.int = 0
        with cython.nogil:
            while whole < count:
                span = _span(data, position, end)
                if not fits or not _is_whole(span, base_offset, base_timestamp):
                    break
                whole += 1
                position = span.end
                self.offsets[row] = base_offset + span.offset_delta
                self.timestamps[row] = (
                    timestamp if stamped else base_timestamp + span.timestamp_delta
                )
                fits &= self.keys.append(data, span.key_at, span.key_size)
                fits &= self.values.append(data, span.value_at, span.value_size)
                at = span.headers_at
                for _ in range(span.header_count):
                    cell = _varint(data, at, position, 32)
                    fits &= self.header_keys.append(data, cell.end, cell.value)
                    cell = _varint(data, _after(cell, position), position, 32)
                    fits &= self.header_values.append(data, cell.end, cell.value)
                    at = _after(cell, position)
                row += 1
                self.header_offsets[row] = self.header_values.count
        if not fits:
            raise ValueError("A column has no space for another cell.")
        self.count = row
        if whole < count or position != end:
            raise _malformed(whole, count)


@cython.final
@cython.cclass
class DecodedCells:
    """A column of nullable bytes in Arrow's three buffers: offsets, validity and content.

    There is one more offset than cells, and a validity bit for each cell, initially set.
    """

    offsets: cython.int[::1]
    validity: cython.uchar[::1]
    content: cython.uchar[::1]
    count: Size

    def __init__(
        self, offsets: cython.int[::1], validity: cython.uchar[::1], content: cython.uchar[::1]
    ) -> None:
        if len(offsets) < 1 or len(validity) * 8 < len(offsets) - 1:
            raise ValueError("The buffers of a column do not fit each other.")
        self.offsets = offsets
        self.validity = validity
        self.content = content
        self.count = 0
        offsets[0] = 0

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def append(self, data: Data, at: Size, size: Long) -> cython.bint:
        """Appends a cell. Returns whether there was space for it."""
        row: Size = self.count
        start: Size = self.offsets[row]
        if row + 1 >= len(self.offsets) or size > len(self.content) - start:
            return False
        self.count = row + 1
        if size < 0:
            self.offsets[row + 1] = start
            self.validity[row >> 3] &= ~(1 << (row & 7))
            return True
        self.offsets[row + 1] = start + size
        if cython.compiled:
            memcpy(cython.address(self.content[start]), cython.address(data[at]), size)
        else:
            self.content[start : start + size] = data[at : at + size]
        return True


@cython.cfunc
@cython.inline
def _headers(data: Data, position: Size, end: Size, count: Long) -> list:
    """Decodes headers that are known to be well formed."""
    headers: list = []
    cell: Varint
    for _ in range(count):
        cell = _varint(data, position, end, 32)
        key = _bytes(data, cell.end, cell.value).decode(errors="replace")
        cell = _varint(data, _after(cell, end), end, 32)
        headers.append((key, _bytes(data, cell.end, cell.value)))
        position = _after(cell, end)
    return headers


@cython.cfunc
@cython.inline
def _bytes(data: Data, start: Size, size: Long) -> object:
    if size < 0:
        return None
    if not cython.compiled:
        return bytes(data[start : start + size])
    return PyBytes_FromStringAndSize(cython.cast(cython.p_char, cython.address(data[start])), size)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_whole(span: Span, base_offset: Long, base_timestamp: Long) -> cython.bint:
    """Whether it is a valid record; after compaction, offsets in a stored batch may have gaps."""
    return (
        span.end >= 0
        and not _overflows(base_offset, span.offset_delta)
        and not _overflows(base_timestamp, span.timestamp_delta)
    )


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _span(data: Data, position: Size, limit: Size) -> Span:
    """Returns where the fields of the record at `position` are, all before `limit`."""
    size: Varint = _varint(data, position, limit, 32)
    end: Size = _after(size, limit)
    timestamp: Varint = _varint(data, size.end + 1, end, 64)
    offset: Varint = _varint(data, timestamp.end, end, 32)
    key: Varint = _varint(data, offset.end, end, 32)
    value: Varint = _varint(data, _after(key, end), end, 32)
    headers: Varint = _varint(data, _after(value, end), end, 32)
    after: Size = headers.end
    if headers.value > 0:
        after = _after_headers(data, after, end, headers.value)
    if after != end or headers.value < 0:
        return Span(-1, 0, 0, 0, 0, 0, 0, 0, 0)
    return Span(
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
@cython.nogil
@cython.exceptval(check=False)
def _after_headers(data: Data, position: Size, end: Size, count: Long) -> Size:
    """Returns the position after `count` headers, or -1 if there are not enough bytes."""
    cell: Varint
    while count > 0 and position >= 0:
        cell = _varint(data, position, end, 32)
        if cell.value < 0:
            return -1
        cell = _varint(data, _after(cell, end), end, 32)
        position = _after(cell, end)
        count -= 1
    return position


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _after(size: Varint, end: Size) -> Size:
    """Returns the position after a field, or -1 beyond the end; null takes no bytes."""
    if size.end < 0 or size.value > end - size.end:
        return -1
    return size.end if size.value < 0 else size.end + size.value


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint(data: Data, position: Size, end: Size, bits: cython.int) -> Varint:
    """Returns the zigzag integer at `position`, which may be beyond the end."""
    byte: Long
    if position < 0 or position >= end:
        return Varint(0, -1)
    byte = data[position]
    if byte < 0x80:
        return Varint((byte >> 1) ^ -(byte & 1), position + 1)
    if position + 1 < end and data[position + 1] < 0x80:
        byte = (byte & 0x7F) | data[position + 1] << 7
        return Varint((byte >> 1) ^ -(byte & 1), position + 2)
    return _long_varint(data, position, end, bits)


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _long_varint(data: Data, position: Size, end: Size, bits: cython.int) -> Varint:
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
            return Varint((zigzag >> 1) ^ -(zigzag & 1), position)
        shift += 7
    return Varint(0, -1)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _integer(data: Data, position: Size, size: cython.int) -> Long:
    """Returns the signed big-endian integer of that size."""
    if not cython.compiled:
        return int.from_bytes(data[position : position + size], signed=True)
    value: cython.ulonglong = 0
    unused_bits: cython.int = 64 - 8 * size
    index: cython.int
    for index in range(size):
        value = value << 8 | data[position + index]
    # To shift a negative number to the left is undefined in C.
    return cython.cast(cython.longlong, value << unused_bits) >> unused_bits


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _overflows(base: Long, delta: Long) -> cython.bint:
    """Whether the sum overflows an int64."""
    largest: Long = 0x7FFFFFFFFFFFFFFF
    if delta >= 0:
        return base > largest - delta
    return base < 0 and base + largest < -1 - delta


@cython.cfunc
@cython.inline
def _address(buffer: cython.const[cython.uchar][::1]) -> Data:
    return cython.address(buffer[0]) if cython.compiled else buffer


@cython.cfunc
def _malformed(index: cython.int, count: cython.int) -> object:
    if index == count:
        return CorruptBatch(f"There are bytes left after the batch's {count} records.")
    return CorruptBatch(f"Record {index} of {count} is cut short, or its fields overflow.")
