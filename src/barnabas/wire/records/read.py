"""Reads a batch back into records."""

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
from barnabas.wire.records.compression import Buffer, Codec, decompress
from barnabas.wire.records.record import Record

MAX_DECOMPRESSED_BYTES = 128 * 1024 * 1024


class Run(NamedTuple):
    """Records of one batch, one after the other, as they are encoded."""

    records: Buffer
    record_count: int
    base_offset: int
    base_timestamp: int
    append_time: int | None  # the one timestamp of all records, where the log sets it


def read_records(
    buffer: Readable, position: int = 0, *, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> list[Record]:
    """The records of the batch at `position`, whose checksum the caller has checked or trusts."""
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
    """Keys and values of plain batches from `position` on, and the position and offset after them.

    It ends with the batch that makes them `limit`, and before one that is compressed,
    transactional, of markers or malformed: if that is the first, there are none. For whoever has
    many small batches to get through: it costs little more than the bytes themselves.
    """
    return _loops.gather(buffer, position, limit)


def record_bytes(
    buffer: Readable, position: int, header: BatchHeader, max_decompressed_bytes: int
) -> Buffer:
    """The bytes of the batch's records, decompressed if need be."""
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
    body = memoryview(buffer)[position + HEADER_BYTES : end]
    codec = header.codec
    return body if codec is Codec.NONE else decompress(codec, body, max_decompressed_bytes)


def append_time(header: BatchHeader) -> int | None:
    """The one timestamp of all records, where the log sets it; None where each has its own."""
    return header.max_timestamp if header.attributes & APPEND_TIME_BIT else None
