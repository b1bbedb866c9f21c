"""Rebuilds a shard's state from its log, in slices that leave the loop free between them."""

from collections.abc import Iterator, Sequence

from barnabas.coordinator.ports import PartitionLog, State
from barnabas.coordinator.records import RecordTypes
from barnabas.wire.records.batch import NO_PRODUCER_ID, BatchHeader, iterate_batches
from barnabas.wire.records.control import read_marker
from barnabas.wire.records.read import read_records
from barnabas.wire.records.record import Record

READ_BYTES = 256 * 1024
"""How much of the log is in memory at a time."""

RECORDS_A_SLICE = 500
"""One or two milliseconds' worth."""


def load(log: PartitionLog, types: RecordTypes, state: State) -> Iterator[None]:
    """Replay everything from the log's start to its end.

    Yields where a slice is full and more is to come: a short log is loaded in one step.
    """
    offset = log.start_offset
    room = RECORDS_A_SLICE
    while chunk := log.read(offset, READ_BYTES):
        for position, header in iterate_batches(chunk):
            records = read_records(chunk, position)
            while len(records) > room:
                _replay(records[:room], header, types, state)
                records = records[room:]
                yield
                room = RECORDS_A_SLICE
            _replay(records, header, types, state)
            room -= len(records)
            offset = header.next_offset


def _replay(
    records: Sequence[Record], header: BatchHeader, types: RecordTypes, state: State
) -> None:
    """Replay records of one batch."""
    if header.is_control:
        _replay_markers(records, header, state)
        return
    producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
    decode, replay = types.decode, state.replay
    for _, _, key, value, _ in records:
        decoded = decode(key, value) if key is not None else None
        if decoded is not None:
            replay(decoded, producer_id)


def _replay_markers(records: Sequence[Record], header: BatchHeader, state: State) -> None:
    for record in records:
        marker = read_marker(record)
        if marker is not None:
            state.replay_end(header.producer_id, marker.committed)
