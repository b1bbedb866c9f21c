# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""A batch of the producer: it encodes every record on arrival and keeps the requested callbacks.

The layout of a record is in `wire/records/_loops.py`, the fields of the class in `_batch.pxd`.
In C, `data` is a pointer into the buffer; in Python it is the buffer itself.
"""

from __future__ import annotations

from time import time

try:
    import cython

    if not cython.compiled:  # Cython's own pure-Python shim is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.client._message import Message
    from cython.cimports.cpython.bytearray import PyByteArray_AS_STRING, PyByteArray_Resize
    from cython.cimports.libc.string import memcpy

    Buffer = cython.typedef(cython.pointer[cython.uchar])
else:
    from barnabas.client._message import Message

COMPILED: bool = cython.compiled

HEADER_BYTES = cython.declare(cython.Py_ssize_t, 61)
INITIAL_BUFFER_BYTES = cython.declare(cython.Py_ssize_t, 1 << 10)
NUMBER_SPAN = cython.declare(cython.longlong, 1 << 30)
"""Of numbers between two batches: those of the parts, if the first has to be split."""
MAX_RECORD_OVERHEAD = cython.declare(cython.Py_ssize_t, 32)
"""Upper bound of the varints before, between and after a record's key and value."""


@cython.cclass
class ProducerBatch:
    """Records of one partition that are sent together, in the order of `produce`."""

    def __init__(self, topic: str, partition: int, buffer_bytes: int, now_s: float) -> None:
        self.topic = topic
        self.partition = partition
        self.buffer = bytearray(buffer_bytes)
        self.size_bytes = HEADER_BYTES
        self.buffered_bytes = 0
        self.max_record_bytes = 0
        self.record_count = 0
        self.base_timestamp = self.max_timestamp = -1
        self.created_s = now_s
        self.messages = []
        self.callbacks = []
        self.reported_count = 0
        self.is_closed = False
        self.number = 0
        self.number_span = NUMBER_SPAN
        self.sequence = -1
        self.attempts = 0
        self.may_be_appended = False
        self.is_done = False
        self.error = None
        self.base_offset = self.append_time_ms = -1

    @staticmethod
    def from_encoded(
        topic: str,
        partition: int,
        encoded: bytearray,
        count: int,
        base_timestamp: int,
        max_timestamp: int,
        now_s: float,
        callback: object,
    ) -> ProducerBatch:
        """Returns a batch of records that were encoded elsewhere, with space for the header.

        They have one delivery report: `callback(error, count)`.
        """
        batch: ProducerBatch = ProducerBatch(topic, partition, 0, now_s)
        batch.buffer = encoded
        batch.size_bytes = batch.buffered_bytes = len(encoded)
        batch.record_count = count
        batch.max_record_bytes = batch.size_bytes // max(1, count)
        batch.base_timestamp = base_timestamp
        batch.max_timestamp = max_timestamp
        if callback is not None:
            batch.messages.append(None)
            batch.callbacks.append(callback)
        return batch

    @property
    def topic_partition(self) -> tuple[str, int]:
        return self.topic, self.partition

    def trim(self) -> None:
        """Cuts the buffer to its content: no more records are appended."""
        if cython.compiled:
            PyByteArray_Resize(self.buffer, self.size_bytes)
        else:
            del self.buffer[self.size_bytes :]

    def close(self) -> None:
        """Marks the batch as ready to send: header written, records compressed."""
        self.is_closed = True
        self.size_bytes = len(self.buffer)

    def make_part(self, encoded: bytearray, first: int, count: int) -> ProducerBatch:
        """Returns a batch of some of the records: for halves of a batch that was too large."""
        part: ProducerBatch = ProducerBatch(self.topic, self.partition, 0, self.created_s)
        part.buffer = encoded
        part.size_bytes = len(encoded)
        part.buffered_bytes = self.buffered_bytes * count // self.record_count
        part.record_count = count
        part.is_closed = True
        index: cython.Py_ssize_t
        message: Message
        for index in range(len(self.messages)):
            if self.messages[index] is None:  # of Arrow rows: every part reports
                part.messages.append(None)
                part.callbacks.append(self.callbacks[index])
                continue
            message = self.messages[index]
            if first <= message._offset < first + count:
                message._offset -= first
                part.messages.append(message)
                part.callbacks.append(self.callbacks[index])
        return part

    def complete(self, base_offset: int = -1, append_time_ms: int = -1) -> None:
        """Records that the broker appended the batch, at an offset if it is known."""
        self.is_done = True
        self.base_offset = base_offset
        self.append_time_ms = append_time_ms

    def fail(self, error: object) -> None:
        """Records the error of the batch, which is not sent any more."""
        self.is_done = True
        self.error = error

    def prepare_reports(self, only_errors: bool) -> bool:
        """Writes the outcome into the messages. Returns whether there are callbacks to run."""
        error: object = self.error
        if error is None and only_errors:
            self.messages = []
            self.callbacks = []
        now_s: cython.double = time()
        offset: cython.longlong = self.base_offset
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
            if self.append_time_ms >= 0:
                message._timestamp = self.append_time_ms
                message._timestamp_type = 2
        return len(self.callbacks) > 0

    def run_callbacks(self) -> int:
        """Calls the callbacks that have not run yet, and returns how many.

        Raises what a callback raises; the next call continues after that callback.
        """
        called: cython.Py_ssize_t = 0
        index: cython.Py_ssize_t
        while self.reported_count < len(self.callbacks):
            index = self.reported_count
            self.reported_count += 1
            called += 1
            report = self.messages[index]
            callback = self.callbacks[index]
            if isinstance(report, Message):
                callback(cython.cast(Message, report)._error, report)
            else:
                callback(report, self.record_count)
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
        """Encodes a record whose key, value and headers take up to `body` bytes."""
        if self.record_count == 0:
            self.base_timestamp = self.max_timestamp = timestamp
        elif timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        if self.size_bytes + body + MAX_RECORD_OVERHEAD > len(self.buffer):
            self._grow(body + MAX_RECORD_OVERHEAD)
        delta: cython.longlong = timestamp - self.base_timestamp
        size: cython.longlong = (
            1 + _varint_size(delta) + _varint_size(self.record_count) + _field_size(key)
        )
        size += _field_size(value)
        if headers is None:
            size += 1
        else:
            size += _varint_size(len(headers))
            for name, content in headers:
                size += _field_size(name) + _field_size(content)
        data: Buffer = _data(self.buffer)
        position: cython.Py_ssize_t = _put_varint(data, self.size_bytes, size)
        data[position] = 0
        position = _put_varint(data, position + 1, delta)
        position = _put_varint(data, position, self.record_count)
        position = _put_field(data, position, key)
        position = _put_field(data, position, value)
        if headers is None:
            data[position] = 0
            position += 1
        else:
            position = _put_varint(data, position, len(headers))
            for name, content in headers:
                position = _put_field(data, position, name)
                position = _put_field(data, position, content)
        self.max_record_bytes = max(self.max_record_bytes, position - self.size_bytes)
        self.size_bytes = position
        self.record_count += 1
        return 0

    @cython.cfunc
    def _grow(self, more: cython.Py_ssize_t) -> cython.int:
        grown: cython.Py_ssize_t = max(
            2 * len(self.buffer), self.size_bytes + more, INITIAL_BUFFER_BYTES
        )
        if cython.compiled:
            PyByteArray_Resize(self.buffer, grown)
        else:
            self.buffer.extend(bytes(grown - len(self.buffer)))
        return 0


@cython.cfunc
@cython.inline
def _field_size(field: object) -> cython.longlong:
    if field is None:
        return 1
    content: bytes = field
    return _varint_size(len(content)) + len(content)


@cython.cfunc
@cython.inline
def _put_field(data: Buffer, position: cython.Py_ssize_t, field: object) -> cython.Py_ssize_t:
    if field is None:
        return _put_varint(data, position, -1)
    content: bytes = field
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
    data: Buffer, position: cython.Py_ssize_t, value: cython.longlong
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
def _data(buffer: bytearray) -> Buffer:
    if cython.compiled:
        return cython.cast(Buffer, PyByteArray_AS_STRING(buffer))
    return buffer
