# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""The loops that write records: compiled with C types, or run as the Python they are.

The layout of a record is in `_loops.py`. In C, `data` is a pointer into the buffer that is
written; in Python it is the buffer itself. The buffer has the size that was measured first;
records that have grown since then raise ValueError.
"""

from __future__ import annotations

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.cpython.bytearray import PyByteArray_FromStringAndSize
    from cython.cimports.libc.string import memcpy

    Room = cython.typedef(cython.pointer[cython.uchar])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)


def encode(records: object, base_offset: object, base_timestamp: Long, reserved: Size) -> bytearray:
    """Returns the encoded records, after `reserved` bytes for the batch header.

    Offset deltas are 0, 1, 2..., or relative to `base_offset` if that is given.
    """
    size: Long
    total: Long = reserved
    delta: Long = 0
    for record in records:
        if base_offset is not None:
            delta = record[0] - base_offset
        size = _body_size(tuple(record), delta, base_timestamp)
        total += _varint_size(size) + size
        delta += 1
    if total > 0x7FFFFFFF:
        raise ValueError(f"A batch holds less than 2 GiB; these records take {total} bytes.")
    encoded = _unwritten(total)
    data: Room = _room(encoded)
    position: Size = reserved
    delta = 0
    for record in records:
        if base_offset is not None:
            delta = record[0] - base_offset
        position = _put_record(data, position, total, tuple(record), delta, base_timestamp)
        delta += 1
    return encoded


@cython.cfunc
def _body_size(fields: tuple, offset_delta: Long, base_timestamp: Long) -> Long:
    """Returns the size of a record after its length field."""
    if offset_delta < 0 or offset_delta > 0x7FFFFFFF:
        raise ValueError(f"Offset {fields[0]} is {offset_delta} after the batch's base offset.")
    timestamp: Long = fields[1]
    headers: list = fields[4]
    size: Long = (
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
    data: Room,
    position: Size,
    end: Size,
    fields: tuple,
    offset_delta: Long,
    base_timestamp: Long,
) -> Size:
    timestamp: Long = fields[1]
    headers: list = fields[4]
    size: Long = _body_size(fields, offset_delta, base_timestamp)
    _check_room(position, end, size)
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
def _cell_size(cell: object) -> Long:
    """Returns the size of a key or a value with its length."""
    if cell is None:
        return _sized(-1)
    if type(cell) is not bytes:
        raise TypeError(f"Keys and values are bytes or None, not {type(cell).__name__}.")
    return _sized(len(cell))


@cython.cfunc
def _put_cell(data: Room, position: Size, cell: object) -> Size:
    if cell is None:
        return _put_varint(data, position, -1)
    source: bytes = cell
    size: Size = len(source)
    position = _put_varint(data, position, size)
    if cython.compiled:
        memcpy(cython.address(data[position]), cython.cast(cython.p_char, source), size)
    else:
        data[position : position + size] = source
    return position + size


@cython.final
@cython.cclass
class Rows:
    """The columns of an Arrow batch, which are encoded as records without the GIL.

    Without timestamps all rows have the same one; without header offsets none has headers.
    """

    count: Size
    timestamps: cython.const[cython.longlong][::1]
    timestamp: Long
    keys: SourceCells
    values: SourceCells
    header_offsets: cython.const[cython.int][::1]
    header_keys: SourceCells
    header_values: SourceCells

    def __init__(
        self,
        count: Size,
        timestamps: cython.const[cython.longlong][::1],
        timestamp: Long,
        keys: SourceCells,
        values: SourceCells,
        header_offsets: cython.const[cython.int][::1],
        header_keys: SourceCells,
        header_values: SourceCells,
    ) -> None:
        if keys.count != count or values.count != count or len(timestamps) not in (0, count):
            raise ValueError("The columns are not of one length.")
        if len(header_offsets) not in (0, count + 1) or header_keys.count != header_values.count:
            raise ValueError("The columns are not of one length.")
        self.count = count
        self.timestamps = timestamps
        self.timestamp = timestamp
        self.keys = keys
        self.values = values
        self.header_offsets = header_offsets
        self.header_keys = header_keys
        self.header_values = header_values

    def fit(self, first: Size, max_bytes: Long) -> tuple[int, int, int, int]:
        """Counts the rows from `first` on that take up to `max_bytes`, at least one.

        Returns their number, their size, and their first and latest timestamps.
        """
        row: Size
        size: Long = 0
        total: Long = 0
        fitting: Size = 0
        self._check_range(first, 1)
        base_timestamp: Long = self._timestamp(first)
        max_timestamp: Long = base_timestamp
        with cython.nogil:
            for row in range(first, self.count):
                size = self._body_size(row, first)
                if size < 0:
                    break
                size += _varint_size(size)
                if total + size > max_bytes and row > first:
                    break
                total += size
                fitting += 1
                max_timestamp = max(max_timestamp, self._timestamp(row))
        if size < 0:
            raise ValueError(f"A cell of row {first + fitting} is not in its column's content.")
        return fitting, total, base_timestamp, max_timestamp

    def encode(self, first: Size, count: Size, size: Long, reserved: Size) -> bytearray:
        """Returns the encoded rows, after `reserved` bytes for the batch header."""
        self._check_range(first, count)
        total: Long = reserved + size
        if total > 0x7FFFFFFF:
            raise ValueError(f"A batch holds less than 2 GiB; this one takes {total} bytes.")
        encoded = _unwritten(total)
        data: Room = _room(encoded)
        position: Size = reserved
        row: Size
        with cython.nogil:
            for row in range(first, first + count):
                position = self._put(data, position, total, row, first)
                if position < 0:
                    break
        if position != total:
            raise ValueError("The rows have changed while they were encoded.")
        return encoded

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _timestamp(self, row: Size) -> Long:
        return self.timestamps[row] if len(self.timestamps) > 0 else self.timestamp

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _body_size(self, row: Size, first: Size) -> Long:
        """Returns the size of a record after its length; negative if a cell is invalid."""
        key_size: Long = self.keys.size(row)
        value_size: Long = self.values.size(row)
        if key_size < -1 or value_size < -1:
            return -1
        size: Long = (
            1
            + _varint_size(self._timestamp(row) - self._timestamp(first))
            + _varint_size(row - first)
            + _sized(key_size)
            + _sized(value_size)
        )
        if len(self.header_offsets) == 0:
            return size + 1
        header: Size
        start: Size = self.header_offsets[row]
        stop: Size = self.header_offsets[row + 1]
        if start < 0 or stop < start or stop > self.header_keys.count:
            return -1
        size += _varint_size(stop - start)
        for header in range(start, stop):
            key_size = self.header_keys.size(header)
            value_size = self.header_values.size(header)
            if key_size < 0 or value_size < -1:
                return -1
            size += _sized(key_size) + _sized(value_size)
        return size

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def _put(self, data: Room, position: Size, end: Size, row: Size, first: Size) -> Size:
        """Writes a row. Returns the position after it; negative if it does not fit."""
        size: Long = self._body_size(row, first)
        if size < 0 or position + _varint_size(size) + size > end:
            return -1
        position = _put_varint(data, position, size)
        data[position] = 0
        position = _put_varint(data, position + 1, self._timestamp(row) - self._timestamp(first))
        position = _put_varint(data, position, row - first)
        position = self.keys.put(data, position, row)
        position = self.values.put(data, position, row)
        if len(self.header_offsets) == 0:
            data[position] = 0
            return position + 1
        header: Size
        start: Size = self.header_offsets[row]
        stop: Size = self.header_offsets[row + 1]
        position = _put_varint(data, position, stop - start)
        for header in range(start, stop):
            position = self.header_keys.put(data, position, header)
            position = self.header_values.put(data, position, header)
        return position

    @cython.cfunc
    def _check_range(self, first: Size, count: Size) -> object:
        if first < 0 or count < 1 or count > self.count - first:
            raise IndexError(f"There are no {count} rows at {first}.")


@cython.final
@cython.cclass
class SourceCells:
    """A column of nullable bytes in Arrow's three buffers: offsets, validity and content.

    It has the `count` cells from `first` on. Without validity bits no cell is null; without
    offsets all are.
    """

    offsets: cython.const[cython.int][::1]
    validity: cython.const[cython.uchar][::1]
    content: cython.const[cython.uchar][::1]
    first: Size
    count: Size

    def __init__(
        self,
        offsets: cython.const[cython.int][::1],
        validity: cython.const[cython.uchar][::1],
        content: cython.const[cython.uchar][::1],
        first: Size,
        count: Size,
    ) -> None:
        if first < 0 or count < 0 or (len(offsets) > 0 and count >= len(offsets) - first):
            raise ValueError("The column has fewer offsets than cells.")
        if len(validity) > 0 and first + count > len(validity) * 8:
            raise ValueError("The column has fewer bits of validity than cells.")
        self.offsets = offsets
        self.validity = validity
        self.content = content
        self.first = first
        self.count = count

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def size(self, row: Size) -> Long:
        """Returns the size of a cell; -1 for null, -2 if it is outside the content."""
        if len(self.offsets) == 0:
            return -1
        row += self.first
        if len(self.validity) > 0 and not self.validity[row >> 3] >> (row & 7) & 1:
            return -1
        start: Long = self.offsets[row]
        stop: Long = self.offsets[row + 1]
        if start < 0 or stop < start or stop > len(self.content):
            return -2
        return stop - start

    @cython.cfunc
    @cython.inline
    @cython.nogil
    @cython.exceptval(check=False)
    def put(self, data: Room, position: Size, row: Size) -> Size:
        size: Long = self.size(row)
        position = _put_varint(data, position, size)
        if size <= 0:
            return position
        start: Size = self.offsets[self.first + row]
        if cython.compiled:
            memcpy(cython.address(data[position]), cython.address(self.content[start]), size)
        else:
            data[position : position + size] = self.content[start : start + size]
        return position + size


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _sized(size: Long) -> Long:
    """Returns the size of a cell with its length."""
    return _varint_size(size) + max(size, 0)


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _varint_size(value: Long) -> cython.int:
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
def _put_varint(data: Room, position: Size, value: Long) -> Size:
    zigzag: cython.ulonglong = (value << 1) ^ (value >> 63)
    while zigzag >= 0x80:
        data[position] = (zigzag & 0x7F) | 0x80
        zigzag >>= 7
        position += 1
    data[position] = zigzag
    return position + 1


@cython.cfunc
@cython.inline
def _check_room(position: Size, end: Size, size: Long) -> cython.int:
    if position + _varint_size(size) + size > end:
        raise ValueError("The records have grown while they were encoded.")
    return 0


@cython.cfunc
@cython.inline
def _unwritten(size: Size) -> bytearray:
    """Returns a buffer that is not cleared: in C, clearing takes as long as writing."""
    if cython.compiled:
        return PyByteArray_FromStringAndSize(cython.NULL, size)
    return bytearray(size)


@cython.cfunc
@cython.inline
def _room(buffer: cython.uchar[::1]) -> Room:
    return cython.address(buffer[0]) if cython.compiled else buffer
