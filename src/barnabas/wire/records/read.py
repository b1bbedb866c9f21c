"""Reads the records of a batch."""

from typing import NamedTuple

from barnabas.wire.records import _loops
from barnabas.wire.records.batch import (
    APPEND_TIME_BIT,
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    Readable,
    read_header,
)
from barnabas.wire.records.compression import Buffer, Codec
from barnabas.wire.records.decompressor import decompress_temporarily
from barnabas.wire.records.record import Record

MAX_DECOMPRESSED_BYTES = 128 * 1024 * 1024


class Run(NamedTuple):
    """The encoded records of one batch."""

    records: Buffer
    record_count: int
    base_offset: int
    base_timestamp: int
    append_time: int | None  # the timestamp of all records, if it is the append time


def read_records(
    buffer: Readable, position: int = 0, *, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> list[Record]:
    """Returns the records of the batch at `position`; the caller has verified the checksum."""
    header = read_header(buffer, position)
    return _loops.decode(
        record_bytes(buffer, position, header, max_decompressed_bytes),
        header.record_count,
        header.base_offset,
        header.base_timestamp,
        append_time(header),
    )


def read_plain(
    buffer: Readable, position: int, limit: int
) -> tuple[list[tuple[bytes | None, bytes | None]], int, int]:
    """Returns keys and values of plain batches from `position` on, and position and offset after.

    It ends with the batch that reaches `limit`, and before one that is compressed,
    transactional, a control batch or malformed: if that is the first, there are none. It is cheap
    for many small batches.
    """
    return _loops.gather(buffer, position, limit)


def record_bytes(
    buffer: Readable, position: int, header: BatchHeader, max_decompressed_bytes: int
) -> Buffer:
    """Returns the bytes of the batch's records.

    If they are compressed, the result is valid until this thread decompresses again.
    """
    body = record_body(buffer, position, header)
    codec = header.codec
    if codec is Codec.NONE:
        return body
    return decompress_temporarily(codec, body, max_decompressed_bytes)


def record_body(buffer: Readable, position: int, header: BatchHeader) -> memoryview:
    """Returns the part of the batch after its header. Raises CorruptBatch if it is not whole."""
    if header.record_count < 0:
        raise CorruptBatch(
            f"The batch at offset {header.base_offset} claims {header.record_count} records."
        )
    end = position + header.size_bytes
    if end > len(buffer):
        raise CorruptBatch(
            f"The batch at offset {header.base_offset} takes {header.size_bytes} bytes; "
            f"{len(buffer) - position} are left."
        )
    return memoryview(buffer)[position + HEADER_BYTES : end]


def append_time(header: BatchHeader) -> int | None:
    """Returns the append time of the batch, or None if each record has its own timestamp."""
    return header.max_timestamp if header.attributes & APPEND_TIME_BIT else None
