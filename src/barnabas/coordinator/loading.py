"""Rebuilds a shard's state from its log, in slices that leave the loop free between them."""

from collections.abc import Iterator

from barnabas.coordinator.ports import PartitionLog, State
from barnabas.coordinator.records import RecordTypes
from barnabas.wire.records.batch import NO_PRODUCER_ID, BatchHeader, iterate_batches
from barnabas.wire.records.control import read_marker
from barnabas.wire.records.read import read_records

READ_BYTES = 256 * 1024
"""How much of the log is in memory at a time."""

RECORDS_A_SLICE = 250
"""One or two milliseconds' worth."""


def load(log: PartitionLog, types: RecordTypes, state: State) -> Iterator[None]:
    """Replay everything from the log's start to its end, yielding between slices."""
    offset = log.start_offset
    while chunk := log.read(offset, READ_BYTES):
        for position, header in iterate_batches(chunk):
            if header.is_control:
                _replay_marker(chunk, position, header, state)
            else:
                yield from _replay_batch(chunk, position, header, types, state)
            offset = header.next_offset
        yield


def _replay_batch(
    chunk: bytes, position: int, header: BatchHeader, types: RecordTypes, state: State
) -> Iterator[None]:
    producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
    decode, replay = types.decode, state.replay
    for count, record in enumerate(read_records(chunk, position), 1):
        decoded = decode(record.key, record.value) if record.key is not None else None
        if decoded is not None:
            replay(decoded, producer_id)
        if not count % RECORDS_A_SLICE:
            yield


def _replay_marker(chunk: bytes, position: int, header: BatchHeader, state: State) -> None:
    for record in read_records(chunk, position):
        marker = read_marker(record)
        if marker is not None:
            state.replay_end(header.producer_id, marker.committed)
