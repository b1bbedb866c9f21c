"""Batches of records with keys: what a compacted log consists of, the same for every broker."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from barnabas.wire.records.arrow import from_arrow
from barnabas.wire.records.compression import Codec

BATCH_BYTES = 16 * 1024
"""Before compression, as in producers' default batch.size."""

KEY_BYTES = 16
ROWS_AT_ONCE = 50_000
SEED = 16


@dataclass(slots=True, frozen=True)
class KeyedRecords:
    """Records of one size whose keys repeat."""

    record_bytes: int
    """Of key and value."""
    distinct_percent: int
    """How many of 100 records have a key that no earlier one has."""
    codec: Codec

    def __str__(self) -> str:
        compression = "none" if self.codec is Codec.NONE else self.codec.name.lower()
        return f"{self.record_bytes} B {compression}, {self.distinct_percent}% keys"


@lru_cache(maxsize=1)
def build_batches(records: KeyedRecords, count: int) -> list[bytearray]:
    """Returns the batches of `count` records, always the same but for their timestamps."""
    batches: list[bytearray] = []
    for rows in _rows(records, count):
        batches += from_arrow(rows, max_batch_bytes=BATCH_BYTES, codec=records.codec)
    return batches


def _rows(records: KeyedRecords, count: int) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(SEED)
    value_bytes = records.record_bytes - KEY_BYTES
    values = np.lib.stride_tricks.sliding_window_view(_text(random), value_bytes)
    keys = _keys(records.distinct_percent, count, random)
    now_ms = int(time.time() * 1000)
    for first in range(0, count, ROWS_AT_ONCE):
        chunk = keys[first : first + ROWS_AT_ONCE]
        picked = values[random.integers(0, len(values), len(chunk))]
        timestamps = np.full(len(chunk), now_ms, np.int64)
        yield pa.record_batch(
            {
                "key": _binary(chunk.astype(">u8").tobytes().hex().encode(), KEY_BYTES),
                "value": _binary(picked.tobytes(), value_bytes),
                "timestamp": pa.array(timestamps).cast(pa.timestamp("ms", tz="UTC")),
            }
        )


def _keys(distinct_percent: int, count: int, random: np.random.Generator) -> np.ndarray:
    """Returns the number of each record's key. New keys and repeated ones are mixed evenly."""
    is_new = random.random(count) < distinct_percent / 100
    is_new[0] = True
    known = np.cumsum(is_new)
    repeated = (random.random(count) * known).astype(np.int64)
    return np.where(is_new, known - 1, repeated)


def _text(random: np.random.Generator) -> np.ndarray:
    """Returns text of which zstd saves about half."""
    letters = np.frombuffer(b'abcdefghijklmnop0123456789{}:",_', np.uint8)
    return letters[random.integers(0, len(letters), 1 << 22)]


def _binary(content: bytes, size_bytes: int) -> pa.Array:
    count = len(content) // size_bytes
    offsets = np.arange(count + 1, dtype=np.int32) * np.int32(size_bytes)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(content)]
    )
