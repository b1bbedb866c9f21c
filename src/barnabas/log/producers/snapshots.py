"""Producer snapshots: the state of a log's producers at an offset.

One is written when a segment is rolled, named for the new segment, and one when the log is
closed, so that opening it replays nothing. A snapshot has only the last batch of each producer.

     0  version            int16   1
     2  crc                uint32  CRC-32C of everything after it
     6  number of entries  int32
    10  entries, of 46 bytes:
         0  producer id           int64
         8  epoch                 int16
        10  last sequence         int32
        14  last offset           int64
        22  offset delta          int32   last offset minus first offset of the last batch
        26  timestamp             int64
        34  coordinator epoch     int32
        38  transaction's first   int64   offset, -1 if none is open
"""

import os
import struct
from collections.abc import Iterable
from contextlib import suppress

from barnabas.log._append import ProducerStateEntry
from barnabas.log.producers.batch_metadata import BatchMetadata
from barnabas.log.producers.producer_state import ProducerStateManager
from barnabas.log.segments.log_files import SNAPSHOT, segment_path
from barnabas.wire.records.batch import MAX_SEQUENCE, NO_SEQUENCE
from barnabas.wire.records.checksum import crc32c

_VERSION = 1
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
_ENTRY = struct.Struct(">qhiqiqiq")


class CorruptSnapshot(ValueError):  # noqa: N818 - the domain's word for it
    """The file is damaged: no whole snapshot was written."""


def write(folder: str, offset: int, producers: ProducerStateManager) -> str:
    """Writes the snapshot for `offset`; returns its path, which is not synced yet."""
    path = segment_path(folder, offset, SNAPSHOT)
    with open(path, "wb") as file:
        file.write(encode(producers.entries.values()))
    return path


def remove_stray(folder: str, existing: Iterable[int], kept: Iterable[int]) -> None:
    """Removes the snapshots that belong neither to a segment nor to the log end offset."""
    for offset in set(existing).difference(kept):
        with suppress(FileNotFoundError):
            os.unlink(segment_path(folder, offset, SNAPSHOT))


def encode(producers: Iterable[ProducerStateEntry]) -> bytes:
    entries = [_encode_entry(producer) for producer in producers]
    body = _COUNT.pack(len(entries)) + b"".join(entries)
    return _HEAD.pack(_VERSION, crc32c(body)) + body


def decode(content: bytes) -> list[ProducerStateEntry]:
    """Decodes a snapshot. Raises CorruptSnapshot if the bytes are damaged."""
    if len(content) < _HEAD.size + _COUNT.size:
        raise CorruptSnapshot(f"{len(content)} bytes are too few")
    version, crc = _HEAD.unpack_from(content)
    if version != _VERSION:
        raise CorruptSnapshot(f"version {version}, only {_VERSION} is supported")
    if crc32c(content[_HEAD.size :]) != crc:
        raise CorruptSnapshot("the checksum does not match")
    (count,) = _COUNT.unpack_from(content, _HEAD.size)
    entries = content[_HEAD.size + _COUNT.size :]
    if len(entries) != count * _ENTRY.size:
        raise CorruptSnapshot(f"{count} entries stated, but {len(entries)} bytes of entries")
    return [_decode_entry(fields) for fields in _ENTRY.iter_unpack(entries)]


def _encode_entry(producer: ProducerStateEntry) -> bytes:
    last_sequence, last_offset, delta = NO_SEQUENCE, -1, 0
    if producer.batches:
        last = producer.batches[-1]
        last_sequence, last_offset = last.last_sequence, last.last_offset
        delta = last.last_offset - last.first_offset
    return _ENTRY.pack(
        producer.producer_id,
        producer.epoch,
        last_sequence,
        last_offset,
        delta,
        producer.last_timestamp,
        producer.coordinator_epoch,
        producer.transaction_first_offset,
    )


def _decode_entry(fields: tuple[int, ...]) -> ProducerStateEntry:
    producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator, first = fields
    producer = ProducerStateEntry(producer_id, epoch, coordinator, timestamp, first)
    if last_offset >= 0:
        first_sequence = last_sequence
        if last_sequence != NO_SEQUENCE:
            first_sequence = (last_sequence - delta) & MAX_SEQUENCE
        producer.add_batch(
            BatchMetadata(
                first_sequence, last_sequence, last_offset - delta, last_offset, timestamp
            )
        )
    return producer
