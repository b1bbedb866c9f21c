"""The record batch, format v2: its header, its checksum, and patching it in place.

The bytes stay where they are: a header is read from any buffer, and the fields a leader sets
(base offset, leader epoch, append time) are written over the producer's.
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.records.checksum import crc32c
from barnabas.wire.records.compression import Codec

Readable: TypeAlias = bytes | bytearray | memoryview
Writable: TypeAlias = bytearray | memoryview

# All integers are big-endian. The CRC-32C covers everything after itself, so that the leader
# can set the offset and the epoch, which stand before it, without computing it again.
#
#      0  base offset          int64   offset of the first record
#      8  length               int32   bytes after this field
#     12  leader epoch         int32   of the leader that appended the batch; -1 from a producer
#     16  magic                int8    2
#     17  crc                  uint32  of bytes 21 to the end
#     21  attributes           int16   bits 0-2 codec, 3 timestamps are the append time,
#                                      4 transactional, 5 control, 6 has a delete horizon
#     23  last offset delta    int32   of the last record; kept when compaction removes it
#     27  base timestamp       int64   what the records' deltas count from, in ms since 1970;
#                                      with bit 6 this is the delete horizon itself
#     35  max timestamp        int64   latest of the records, or the append time; -1 if none
#     43  producer id          int64   -1 if the producer is not idempotent
#     51  producer epoch       int16
#     53  base sequence        int32   of the first record
#     57  record count         int32
#     61  records, compressed as one block if there is a codec
_HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_BYTES = 61
LENGTH_END = 12  # what `length` does not count
MAGIC_AT = 16
CRC_END = 21  # what the checksum does not cover
MAGIC = 2

_SEAL = struct.Struct(">qi5xI")  # the offset, the length and the checksum alone
_OFFSET = struct.Struct(">q")
_LENGTH = struct.Struct(">i")
_EPOCH = struct.Struct(">i")
_CRC = struct.Struct(">I")
_ATTRIBUTES = struct.Struct(">h")
_TIMESTAMP = struct.Struct(">q")

CODEC_BITS = 0x07
APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
MAX_SEQUENCE = 0x7FFFFFFF


class CorruptBatch(KafkaError):  # noqa: N818 - the domain's word for it
    """The bytes are not a record batch, or not the one its checksum was computed over."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


class TimestampType(IntEnum):
    """Whose clock the timestamps of a batch were read from."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchHeader(NamedTuple):
    """The 61 bytes before the records, field by field."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return self.length + LENGTH_END

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; after 2^31-1 comes 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & MAX_SEQUENCE

    @property
    def codec(self) -> Codec:
        try:
            return Codec(self.attributes & CODEC_BITS)
        except ValueError:
            raise CorruptBatch(
                f"The batch at offset {self.base_offset} names codec "
                f"{self.attributes & CODEC_BITS}, which does not exist."
            ) from None

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType((self.attributes & APPEND_TIME_BIT) >> 3)

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may remove the batch's tombstones and markers, if it is set."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None


def read_header(buffer: Readable, position: int = 0) -> BatchHeader:
    """Returns the header at `position`; the records after it may be missing."""
    try:
        # Like `_make`, without its check of the number of fields.
        header = tuple.__new__(BatchHeader, _HEADER.unpack_from(buffer, position))
    except struct.error:
        raise CorruptBatch(
            f"A batch header takes {HEADER_BYTES} bytes; {len(buffer) - position} are left."
        ) from None
    if header.magic != MAGIC:
        raise CorruptBatch(f"The batch has magic {header.magic}; only format v2 is stored.")
    if header.length < HEADER_BYTES - LENGTH_END:
        raise CorruptBatch(f"The batch claims a length of {header.length}, less than its header.")
    return header


def write_header(buffer: Writable, position: int, header: BatchHeader) -> None:
    """Writes the header at `position`, with the checksum of the bytes after it."""
    _HEADER.pack_into(buffer, position, *header)
    _seal(buffer, position, header.size_bytes)


def crc_is_valid(buffer: Readable, position: int, header: BatchHeader) -> bool:
    """Whether the whole batch is present and has the checksum of its header."""
    end = position + header.length + LENGTH_END
    return end <= len(buffer) and _crc(buffer, position + CRC_END, end) == header.crc


def check_crcs(buffer: Readable) -> None:
    """Raises CorruptBatch unless each whole batch has the checksum of its header.

    It is cheap for many small batches: it builds no header objects.
    """
    position = 0
    with memoryview(buffer) as view:
        while len(view) - position >= HEADER_BYTES:
            base_offset, length, crc = _SEAL.unpack_from(view, position)
            end = position + LENGTH_END + length
            if end > len(view):
                return
            if end < position + HEADER_BYTES or crc32c(view[position + CRC_END : end]) != crc:
                raise CorruptBatch(
                    f"The batch at offset {base_offset} does not match its checksum."
                )
            position = end


def iterate_batches(buffer: Readable, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
    """Yields each whole batch with its position; a partial one at the end is skipped."""
    end = len(buffer)
    while end - position >= HEADER_BYTES:
        header = read_header(buffer, position)
        size = header.length + LENGTH_END
        if size > end - position:
            return
        yield position, header
        position += size


def assign_offset(buffer: Writable, position: int, base_offset: int, leader_epoch: int) -> None:
    """Sets the base offset and leader epoch; the checksum does not cover them."""
    _OFFSET.pack_into(buffer, position, base_offset)
    _EPOCH.pack_into(buffer, position + 12, leader_epoch)


def stamp_append_time(buffer: Writable, position: int, now_ms: int) -> None:
    """Makes the append time the timestamp of every record in the batch."""
    (attributes,) = _ATTRIBUTES.unpack_from(buffer, position + CRC_END)
    _ATTRIBUTES.pack_into(buffer, position + CRC_END, attributes | APPEND_TIME_BIT)
    set_max_timestamp(buffer, position, now_ms)


def set_max_timestamp(buffer: Writable, position: int, max_timestamp: int) -> None:
    """Corrects the header's max timestamp, and the checksum with it."""
    _TIMESTAMP.pack_into(buffer, position + 35, max_timestamp)
    (length,) = _LENGTH.unpack_from(buffer, position + 8)
    _seal(buffer, position, length + LENGTH_END)


def _seal(buffer: Writable, position: int, size_bytes: int) -> None:
    crc = _crc(buffer, position + CRC_END, position + size_bytes)
    _CRC.pack_into(buffer, position + 17, crc)


def _crc(buffer: Readable, start: int, end: int) -> int:
    with memoryview(buffer) as view, view[start:end] as covered:
        return crc32c(covered)
