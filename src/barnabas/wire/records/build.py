"""Builds a batch out of records."""

from collections.abc import Sequence

from barnabas.wire.records import _encoding
from barnabas.wire.records.batch import (
    APPEND_TIME_BIT,
    CODEC_BITS,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TRANSACTIONAL_BIT,
    BatchHeader,
    write_header,
)
from barnabas.wire.records.compression import Codec, compress
from barnabas.wire.records.record import Record as Record


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int | None = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = -1,
    transactional: bool = False,
    control: bool = False,
    append_time: int | None = None,
    delete_horizon_ms: int | None = None,
) -> bytearray:
    """Returns the bytes of one batch with its checksum.

    The records get the offsets from `base_offset` on, whatever offsets they have; with None
    they keep their own, which may have gaps, as after compaction.
    """
    if not records:
        raise ValueError("A batch has at least one record.")
    base_timestamp = records[0].timestamp if delete_horizon_ms is None else delete_horizon_ms
    batch = _encoding.encode(
        records, records[0].offset if base_offset is None else None, base_timestamp, HEADER_BYTES
    )
    close_batch(
        batch,
        level,
        BatchHeader(
            base_offset=records[0].offset if base_offset is None else base_offset,
            length=len(batch) - LENGTH_END,
            leader_epoch=leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=codec
            | (0 if append_time is None else APPEND_TIME_BIT)
            | (TRANSACTIONAL_BIT if transactional else 0)
            | (CONTROL_BIT if control else 0)
            | (0 if delete_horizon_ms is None else DELETE_HORIZON_BIT),
            last_offset_delta=(
                len(records) - 1
                if base_offset is not None
                else records[-1].offset - records[0].offset
            ),
            base_timestamp=base_timestamp,
            max_timestamp=(
                max(record.timestamp for record in records) if append_time is None else append_time
            ),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=len(records),
        ),
    )
    return batch


def complete_batch(batch: bytearray, record_count: int, timestamp: int, base_sequence: int) -> None:
    """Writes the header before encoded records, which all have one timestamp."""
    write_header(
        batch,
        0,
        BatchHeader(
            base_offset=0,
            length=len(batch) - LENGTH_END,
            leader_epoch=-1,
            magic=MAGIC,
            crc=0,
            attributes=0,
            last_offset_delta=record_count - 1,
            base_timestamp=timestamp,
            max_timestamp=timestamp,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
            base_sequence=base_sequence,
            record_count=record_count,
        ),
    )


def close_batch(batch: bytearray, level: int | None, header: BatchHeader) -> None:
    """Compresses the records in `batch` with the codec of the header, and writes the header.

    The header has the length that the batch has without compression."""
    if header.attributes & CODEC_BITS:
        with memoryview(batch) as view, view[HEADER_BYTES:] as records:
            compressed = compress(header.codec, records, level)
        batch[HEADER_BYTES:] = compressed
        header = header._replace(length=len(batch) - LENGTH_END)
    write_header(batch, 0, header)
