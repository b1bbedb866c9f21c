"""Reads a batch back into records."""

from barnabas.wire.records import _loops
from barnabas.wire.records.batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    Readable,
    TimestampType,
    read_header,
)
from barnabas.wire.records.compression import Buffer, Codec, decompress
from barnabas.wire.records.record import Record

MAX_DECOMPRESSED_BYTES = 128 * 1024 * 1024


def read_records(
    buffer: Readable, position: int = 0, *, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
) -> list[Record]:
    """The records of the batch at `position`, whose checksum the caller has checked or trusts."""
    header = read_header(buffer, position)
    body, start, end = record_bytes(buffer, position, header, max_decompressed_bytes)
    return _loops.decode(
        body,
        start,
        end,
        header.record_count,
        header.base_offset,
        header.base_timestamp,
        header.max_timestamp if header.timestamp_type is TimestampType.LOG_APPEND_TIME else None,
    )


def record_bytes(
    buffer: Readable, position: int, header: BatchHeader, max_decompressed_bytes: int
) -> tuple[Buffer, int, int]:
    """The batch's records, decompressed if need be: a buffer, and where they start and end."""
    start = position + HEADER_BYTES
    end = position + header.size_bytes
    if end > len(buffer):
        raise CorruptBatch(
            f"The batch at offset {header.base_offset} takes {header.size_bytes} bytes; "
            f"{len(buffer) - position} are left."
        )
    if header.record_count < 0:
        raise CorruptBatch(
            f"The batch at offset {header.base_offset} claims {header.record_count} records."
        )
    codec = header.codec
    if codec is Codec.NONE:
        return buffer, start, end
    with memoryview(buffer) as view, view[start:end] as compressed:
        body = decompress(codec, compressed, max_decompressed_bytes)
    return body, 0, len(body)
