# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False
"""Checks the batch of a producer in one call: its header, its checksum and its records.

`validate.py` makes errors of the faults. The Produce lane declines the request instead, and the
handler then finds the same fault. In C, `data` is a pointer into the request; in Python it is the
buffer itself. Both are indexed alike.
"""

from __future__ import annotations

from barnabas.wire.records import _loops
from barnabas.wire.records.batch import (
    APPEND_TIME_BIT,
    CODEC_BITS,
    CONTROL_BIT,
    CRC_END,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    MAX_SEQUENCE,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    assign_offset,
    read_header,
)
from barnabas.wire.records.checksum import crc32c
from barnabas.wire.records.compression import Codec, CompressionError
from barnabas.wire.records.decompressor import decompress_for_validation

try:
    import cython

    if not cython.compiled:  # Cython's own stand-in for itself is many times slower than ours
        raise ImportError
except ImportError:
    from barnabas.wire.records import _uncompiled as cython

if cython.compiled:
    from cython.cimports.barnabas.wire.records._checksum import crc
    from cython.cimports.barnabas.wire.records._loops import RecordWalk

    Data = cython.typedef(cython.pointer[cython.const[cython.uchar]])
    Size = cython.typedef(cython.Py_ssize_t)
    Long = cython.typedef(cython.longlong)

COMPILED: bool = cython.compiled

# What is wrong with a batch, in the order in which it is looked for.
VALID = 0
NOT_ONE_BATCH = 1
"""The bytes are not exactly one batch of format v2."""
TOO_LARGE = 2
WRONG_CHECKSUM = 3
WRONG_COUNT = 4
WRONG_LAST_OFFSET = 5
WRONG_BASE_OFFSET = 6
CONTROL_BATCH = 7
HAS_DELETE_HORIZON = 8
WRONG_PRODUCER = 9
HAS_APPEND_TIME = 10
UNKNOWN_CODEC = 11
NOT_DECOMPRESSED = 12
MALFORMED_RECORD = 13
REJECTED_RECORDS = 14

_EARLIEST = cython.declare(cython.longlong, ~0x7FFF_FFFF_FFFF_FFFF)
_LATEST = cython.declare(cython.longlong, (1 << 63) - 1)
_HEADER_BYTES = cython.declare(cython.Py_ssize_t, HEADER_BYTES)
_LENGTH_END = cython.declare(cython.Py_ssize_t, LENGTH_END)
_CRC_END = cython.declare(cython.Py_ssize_t, CRC_END)
_MAGIC = cython.declare(cython.longlong, MAGIC)
_CODEC_BITS = cython.declare(cython.longlong, CODEC_BITS)
_APPEND_TIME_BIT = cython.declare(cython.longlong, APPEND_TIME_BIT)
_CONTROL_BIT = cython.declare(cython.longlong, CONTROL_BIT)
_DELETE_HORIZON_BIT = cython.declare(cython.longlong, DELETE_HORIZON_BIT)
_LAST_CODEC = cython.declare(cython.longlong, max(Codec))
_NO_PRODUCER_ID = cython.declare(cython.longlong, NO_PRODUCER_ID)
_MAX_SEQUENCE = cython.declare(cython.longlong, MAX_SEQUENCE)
_CODECS = [Codec(number) for number in range(max(Codec) + 1)]


@cython.final
@cython.cclass
class ValidBatch:
    """A batch that may be appended: the fields of its header, as they are in its buffer."""

    def __init__(self, header=None, buffer=None, max_timestamp=-1):
        if header is None:
            return
        self.buffer = buffer
        self.size_bytes = len(buffer)
        self.base_offset = header.base_offset
        self.crc = header.crc
        self.attributes = header.attributes
        self.last_offset_delta = header.last_offset_delta
        self.base_timestamp = header.base_timestamp
        self.header_timestamp = header.max_timestamp
        self.producer_id = header.producer_id
        self.producer_epoch = header.producer_epoch
        self.base_sequence = header.base_sequence
        self.record_count = header.record_count
        self.max_timestamp = max_timestamp

    @property
    def header(self):
        return read_header(self.buffer)

    @property
    def last_sequence(self):
        """The sequence of the last record; after 2^31-1 comes 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        sequence: Long = self.base_sequence
        return (sequence + self.last_offset_delta) & _MAX_SEQUENCE

    @property
    def is_transactional(self):
        return self.attributes & TRANSACTIONAL_BIT != 0

    def read(self, data, at, size):
        """Reads the header; returns whether the `size` bytes are exactly one batch."""
        if (
            size < _HEADER_BYTES
            or _integer(data, at + 16, 1) != _MAGIC
            or _integer(data, at + 8, 4) + _LENGTH_END != size
        ):
            return False
        self.size_bytes = size
        self.base_offset = _integer(data, at, 8)
        self.crc = _integer(data, at + 17, 4) & 0xFFFFFFFF
        self.attributes = _integer(data, at + 21, 2)
        self.last_offset_delta = _integer(data, at + 23, 4)
        self.base_timestamp = _integer(data, at + 27, 8)
        self.header_timestamp = _integer(data, at + 35, 8)
        self.producer_id = _integer(data, at + 43, 8)
        self.producer_epoch = _integer(data, at + 51, 2)
        self.base_sequence = _integer(data, at + 53, 4)
        self.record_count = _integer(data, at + 57, 4)
        return True

    def release(self):
        """Keeps no memory of the batch."""
        self.buffer = None
        if cython.compiled:
            self.start = cython.NULL

    def assign_offset(self, base_offset, leader_epoch):
        """Sets the base offset and leader epoch; the checksum does not cover them."""
        if not cython.compiled:
            assign_offset(self.buffer, 0, base_offset, leader_epoch)
            return
        target: cython.pointer[cython.uchar] = self.start
        if target == cython.NULL:
            buffer: cython.uchar[::1] = self.buffer
            if len(buffer) < _HEADER_BYTES:
                raise ValueError("The buffer has no batch header.")
            target = cython.address(buffer[0])
        index: cython.int
        for index in range(8):
            target[index] = (base_offset >> (56 - 8 * index)) & 0xFF
        for index in range(4):
            target[12 + index] = (leader_epoch >> (24 - 8 * index)) & 0xFF


@cython.final
@cython.cclass
class BatchChecker:
    """Checks batches, one after the other, by the rules of their topics.

    After a fault it has what an error message needs. The fields are in `_validation.pxd`.
    """

    def __init__(self):
        self.rules = None
        self.body = None
        self.error = ""
        self.records = _loops.RecordWalk()

    def forget(self):
        """Uses what was decompressed no longer."""
        self.body = None

    def use(self, rules, now_ms):
        """Checks by these rules from now on, at the time at which the request arrived."""
        if rules is self.rules and now_ms == self.now_ms:
            return
        self.rules = rules
        self.now_ms = now_ms
        self.max_message_bytes = rules.max_message_bytes
        self.is_compacted = rules.compacted
        self.has_append_time = rules.append_time
        self.codec = -1 if rules.codec is None else rules.codec
        if self.has_append_time:
            self.earliest = _EARLIEST
            self.latest = _LATEST
        else:
            # As Python integers: the sums may be too large for C.
            self.earliest = max(now_ms - rules.before_max_ms, -(1 << 63))
            self.latest = min(now_ms + rules.after_max_ms, (1 << 63) - 1)

    def check_batch(self, batch, records):
        """Checks the bytes, which must be one batch. Returns the first fault, or VALID."""
        if not cython.compiled:
            return self.check(batch, records, records, 0, len(records))
        data: cython.const[cython.uchar][::1] = records
        if len(data) == 0:
            return NOT_ONE_BATCH
        return self.check(batch, records, cython.address(data[0]), 0, len(data))

    def check(self, batch, view, data, at, size):
        """Does the same for `size` bytes of a view, for a caller that has their address."""
        fault: cython.int
        self.body = None
        if not batch.read(data, at, size):
            return NOT_ONE_BATCH
        if size > self.max_message_bytes:
            return TOO_LARGE
        if _crc(data, at + _CRC_END, at + size) != batch.crc:
            return WRONG_CHECKSUM
        fault = self.check_header(batch)
        return fault or self.check_records(batch, view, data, at, size)

    def check_header(self, batch):
        """Looks for what only brokers write, and for fields that contradict each other."""
        count: Long = batch.record_count
        if count <= 0:
            return WRONG_COUNT
        if batch.last_offset_delta != count - 1:
            return WRONG_LAST_OFFSET
        if batch.base_offset != 0:
            return WRONG_BASE_OFFSET
        if batch.attributes & _CONTROL_BIT:
            return CONTROL_BATCH
        if batch.attributes & _DELETE_HORIZON_BIT:
            return HAS_DELETE_HORIZON
        if batch.producer_id != _NO_PRODUCER_ID and (
            batch.producer_id < 0 or batch.producer_epoch < 0 or batch.base_sequence < 0
        ):
            return WRONG_PRODUCER
        if batch.attributes & _APPEND_TIME_BIT:
            return HAS_APPEND_TIME
        if batch.attributes & _CODEC_BITS > _LAST_CODEC:
            return UNKNOWN_CODEC
        return VALID

    def check_records(self, batch, view, data, at, size):
        """Walks through the records, decompressed if needed."""
        codec: cython.int = batch.attributes & _CODEC_BITS
        start: Size = at + _HEADER_BYTES
        count: cython.int = batch.record_count
        if codec:
            try:
                self.body = decompress_for_validation(
                    _CODECS[codec], view[start : at + size], self.rules.max_decompressed_bytes
                )
            except CompressionError as error:
                self.error = error.message
                return NOT_DECOMPRESSED
        if cython.compiled:
            records: RecordWalk = self.records
            body: cython.const[cython.uchar][::1]
            address: Data = data + start
            length: Size = size - _HEADER_BYTES
            if codec:
                body = self.body
                length = len(body)
                address = cython.address(body[0]) if length else data
            records.check(address, length, count, batch.base_timestamp, self.earliest, self.latest)
            batch.max_timestamp = records.max_timestamp
            self.malformed = records.malformed
            if records.malformed >= 0:
                return MALFORMED_RECORD
            if records.untimely >= 0 or (records.keyless >= 0 and self.is_compacted):
                return REJECTED_RECORDS
            return VALID
        batch.max_timestamp, self.malformed, keyless, untimely = _loops.walk(
            self.body if codec else view[start : at + size],
            count,
            batch.base_timestamp,
            self.earliest,
            self.latest,
        )
        if self.malformed >= 0:
            return MALFORMED_RECORD
        if untimely >= 0 or (keyless >= 0 and self.is_compacted):
            return REJECTED_RECORDS
        return VALID


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
@cython.exceptval(check=False)
def _crc(data: Data, position: Size, end: Size) -> Long:
    """Returns the checksum of the bytes between the positions."""
    if cython.compiled:
        return crc(cython.address(data[position]), end - position)
    return crc32c(memoryview(data)[position:end])
