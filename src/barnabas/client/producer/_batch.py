# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A batch that grows: every record is encoded as it comes, and remembered if a report is wanted.

The layout of a record is in `wire/records/_loops.py`, the fields of the classes in `_batch.pxd`.
In C, `data` is a pointer into the buffer; in Python it is the buffer itself.
"""

from __future__ import annotations

from time import time

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.client._message import Message
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.libc.string import memcpy

    Room = cython.typedef(cython.pointer[cython.uchar])
else:
    from barnabas.client._message import Message

COMPILED: bool = cython.compiled

HEADER_BYTES = cython.declare(cython.Py_ssize_t, 61)
FIRST_ROOM = cython.declare(cython.Py_ssize_t, 1 << 10)
LARGEST_RECORD_HEAD = cython.declare(cython.Py_ssize_t, 32)
"""Of the varints before, between and behind a record's key and value."""


@cython.cclass
class Batch:
    """Records of one partition that are sent together, in the order they came."""

    def __init__(self, topic: str, partition: int, room: int, now_s: float) -> None:
        self.topic = topic
        self.partition = partition
        self.buffer = bytearray(room)
        self.size = HEADER_BYTES
        self.charged = 0
        self.largest = 0
        self.count = 0
        self.base_timestamp = self.max_timestamp = -1
        self.opened_s = now_s
        self.messages = []
        self.callbacks = []
        self.told = 0
        self.is_closed = False

    @staticmethod
    def encoded(
        topic: str,
        partition: int,
        encoded: bytearray,
        count: int,
        base_timestamp: int,
        max_timestamp: int,
        now_s: float,
        callback: object,
    ) -> Batch:
        """Records that were encoded elsewhere and are reported together: `callback(error, count)`.

        There is room for the header before them.
        """
        batch: Batch = Batch(topic, partition, 0, now_s)
        batch.buffer = encoded
        batch.size = batch.charged = len(encoded)
        batch.count = count
        batch.largest = batch.size // max(1, count)
        batch.base_timestamp = base_timestamp
        batch.max_timestamp = max_timestamp
        if callback is not None:
            batch.messages.append(None)
            batch.callbacks.append(callback)
        return batch

    @property
    def place(self) -> tuple[str, int]:
        return self.topic, self.partition

    @property
    def records(self) -> bytearray:
        """The batch as it is sent; before it is closed, with room for its header."""
        return self.buffer

    @property
    def record_count(self) -> int:
        return self.count

    @property
    def size_bytes(self) -> int:
        return self.size

    @property
    def charged_bytes(self) -> int:
        return self.charged

    @property
    def largest_record(self) -> int:
        return self.largest

    @property
    def timestamps(self) -> tuple[int, int]:
        """The first one, which the others count from, and the latest."""
        return self.base_timestamp, self.max_timestamp

    @property
    def created_s(self) -> float:
        return self.opened_s

    @property
    def is_sealed(self) -> bool:
        return self.is_closed

    @property
    def wants_reports(self) -> bool:
        return len(self.callbacks) > 0

    def end(self) -> None:
        """No more records come."""
        if cython.compiled:
            PyByteArray_Resize(self.buffer, self.size)
        else:
            del self.buffer[self.size :]

    def seal(self) -> None:
        """Its header is there now, and the records behind it are as they will be sent."""
        self.is_closed = True
        self.size = len(self.buffer)

    def part(self, encoded: bytearray, first: int, count: int) -> Batch:
        """Some of its records, encoded again: the halves of a batch that was too large."""
        part: Batch = Batch(self.topic, self.partition, 0, self.opened_s)
        part.buffer = encoded
        part.size = len(encoded)
        part.charged = self.charged * count // self.count
        part.count = count
        part.is_closed = True
        index: cython.Py_ssize_t
        message: Message
        for index in range(len(self.messages)):
            if self.messages[index] is None:  # rows: whichever part comes last tells of them
                part.messages.append(None)
                part.callbacks.append(self.callbacks[index])
                continue
            message = self.messages[index]
            if first <= message._offset < first + count:
                message._offset -= first
                part.messages.append(message)
                part.callbacks.append(self.callbacks[index])
        return part

    def resolve(
        self, error: object, base_offset: int, append_time_ms: int, only_errors: bool
    ) -> bool:
        """Write the outcome into the messages; whether anybody is to be told of it."""
        if error is None and only_errors:
            self.messages = []
            self.callbacks = []
        now_s: cython.double = time()
        offset: cython.longlong = base_offset
        index: cython.Py_ssize_t
        message: Message
        for index in range(len(self.messages)):
            if self.messages[index] is None:
                self.messages[index] = error
                continue
            message = self.messages[index]
            message._error = error
            message._latency = now_s - message._latency
            message._offset = offset + message._offset if offset >= 0 else -1
            if append_time_ms >= 0:
                message._timestamp = append_time_ms
                message._timestamp_type = 2
        return len(self.callbacks) > 0

    def report(self) -> int:
        """Call back for every record not yet told of; an exception of a callback comes through.

        When it did, the rest is told of by the next call.
        """
        called: cython.Py_ssize_t = 0
        index: cython.Py_ssize_t
        while self.told < len(self.callbacks):
            index = self.told
            self.told += 1
            called += 1
            subject = self.messages[index]
            callback = self.callbacks[index]
            if isinstance(subject, Message):
                callback(cython.cast(Message, subject)._error, subject)
            else:
                callback(subject, self.count)
        return called

    @cython.cfunc
    def append(
        self,
        key: bytes,
        value: bytes,
        timestamp: cython.longlong,
        headers: list,
        body: cython.Py_ssize_t,
    ) -> cython.int:
        """Encode one more record, whose key, value and headers take up to `body` bytes."""
        if self.count == 0:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        if self.size + body + LARGEST_RECORD_HEAD > len(self.buffer):
            self._make_room(body + LARGEST_RECORD_HEAD)
        delta: cython.longlong = timestamp - self.base_timestamp
        size: cython.longlong = 1 + _varint_size(delta) + _varint_size(self.count) + _cell_size(key)
        size += _cell_size(value)
        if headers is None:
            size += 1
        else:
            size += _varint_size(len(headers))
            for name, content in headers:
                size += _cell_size(name) + _cell_size(content)
        data: Room = _room(self.buffer)
        position: cython.Py_ssize_t = _put_varint(data, self.size, size)
        data[position] = 0
        position = _put_varint(data, position + 1, delta)
        position = _put_varint(data, position, self.count)
        position = _put_cell(data, position, key)
        position = _put_cell(data, position, value)
        if headers is None:
            data[position] = 0
            position += 1
        else:
            position = _put_varint(data, position, len(headers))
            for name, content in headers:
                position = _put_cell(data, position, name)
                position = _put_cell(data, position, content)
        self.largest = max(self.largest, position - self.size)
        self.size = position
        self.count += 1
        return 0

    @cython.cfunc
    def _make_room(self, more: cython.Py_ssize_t) -> cython.int:
        room: cython.Py_ssize_t = max(2 * len(self.buffer), self.size + more, FIRST_ROOM)
        if cython.compiled:
            PyByteArray_Resize(self.buffer, room)
        else:
            self.buffer.extend(bytes(room - len(self.buffer)))
        return 0


@cython.cfunc
@cython.inline
def _cell_size(cell: object) -> cython.longlong:
    if cell is None:
        return 1
    content: bytes = cell
    return _varint_size(len(content)) + len(content)


@cython.cfunc
@cython.inline
def _put_cell(data: Room, position: cython.Py_ssize_t, cell: object) -> cython.Py_ssize_t:
    if cell is None:
        return _put_varint(data, position, -1)
    content: bytes = cell
    size: cython.Py_ssize_t = len(content)
    position = _put_varint(data, position, size)
    if cython.compiled:
        memcpy(cython.address(data[position]), cython.cast(cython.p_char, content), size)
    else:
        data[position : position + size] = content
    return position + size


@cython.cfunc
@cython.inline
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
@cython.exceptval(check=False)
def _put_varint(
    data: Room, position: cython.Py_ssize_t, value: cython.longlong
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
def _room(buffer: bytearray) -> Room:
    if cython.compiled:
        return cython.cast(Room, PyByteArray_AS_STRING(buffer))
    return buffer
