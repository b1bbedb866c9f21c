"""Record batches, valid and invalid, with the same bytes for both brokers."""

import struct
import time
import zlib

import crc32c

from barnabas.wire.records.build import build_batch
from barnabas.wire.records.compression import Codec
from barnabas.wire.records.record import Record

START_MS = int(time.time() * 1000) - 3_600_000
MINUTE_MS = 60_000

MAGIC_AT = 16
CRC_AT = 17
ATTRIBUTES_AT = 21
LAST_OFFSET_DELTA_AT = 23
COUNT_AT = 57
HEADER_BYTES = 61


def batch(
    records: int = 1,
    *,
    minute: int = 0,
    codec: Codec = Codec.NONE,
    key: bytes | None = b"k",
    value: bytes | None = b"v",
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    timestamp_ms: int | None = None,
    control: bool = False,
    transactional: bool = False,
) -> bytes:
    first_ms = START_MS + minute * MINUTE_MS if timestamp_ms is None else timestamp_ms
    return bytes(
        build_batch(
            [
                Record(index, first_ms + index, key, value, [("h", b"1")])
                for index in range(records)
            ],
            codec=codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            control=control,
            transactional=transactional,
        )
    )


def alter_field(
    valid: bytes, position: int, layout: str, value: int, *, fix_crc: bool = True
) -> bytes:
    """Returns the batch with one field changed, and by default with a matching checksum."""
    changed = bytearray(valid)
    struct.pack_into(layout, changed, position, value)
    if fix_crc:
        struct.pack_into(">I", changed, CRC_AT, crc32c.crc32c(changed[ATTRIBUTES_AT:]))
    return bytes(changed)


def message_set_v1(attributes: int = 0) -> bytes:
    """Returns a message in the format that Kafka 4 no longer accepts.

    `attributes` is written into the part of the timestamp that a batch has its attributes in.
    """
    timestamp_ms = START_MS & ~(0xFF << 24) | attributes << 24
    body = struct.pack(">bbqi", 1, 0, timestamp_ms, -1) + struct.pack(">i", 1) + b"v"
    message = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", 0, len(message)) + message
