"""Rebuilds a shard's state from its log, in slices that leave the event loop free in between."""

from collections.abc import Iterator
from typing import NamedTuple

from barnabas.coordinator.ports import PartitionLog
from barnabas.coordinator.records import EncodedRecord, RecordTypes, ReplayedState
from barnabas.wire.records.batch import NO_PRODUCER_ID, check_crcs, read_header
from barnabas.wire.records.control import read_marker
from barnabas.wire.records.read import read_plain, read_records
from barnabas.wire.records.record import Record

READ_BYTES = 256 * 1024
"""How much of the log is read into memory at a time."""

RECORDS_PER_SLICE = 500
"""One or two milliseconds' worth."""


class _Run(NamedTuple):
    """Consecutive records of the log: of plain batches, or of one batch of another kind."""

    records: list[EncodedRecord]
    producer_id: int = NO_PRODUCER_ID
    """The producer whose transaction they are part of, or end."""
    is_control: bool = False


def load(log: PartitionLog, types: RecordTypes, state: ReplayedState) -> Iterator[None]:
    """Replays everything from the log's start to its end.

    Yields where a slice is full and more follows: a short log is loaded in one step.
    """
    remaining = RECORDS_PER_SLICE
    for run in _runs(log):
        while len(run.records) > remaining:
            _replay(run._replace(records=run.records[:remaining]), types, state)
            run = run._replace(records=run.records[remaining:])
            yield
            remaining = RECORDS_PER_SLICE
        _replay(run, types, state)
        remaining -= len(run.records)


def _runs(log: PartitionLog) -> Iterator[_Run]:
    offset = log.start_offset
    while chunk := log.read(offset, READ_BYTES):
        check_crcs(chunk)  # a damaged batch may decode without an error, to another offset
        position = 0
        while position < len(chunk):
            records, end, next_offset = read_plain(chunk, position, RECORDS_PER_SLICE)
            if end > position:
                position, offset = end, next_offset
                yield _Run(records)
                continue
            header = read_header(chunk, position)
            records = [(record.key, record.value) for record in read_records(chunk, position)]
            producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
            position += header.size_bytes
            offset = header.next_offset
            yield _Run(records, producer_id, header.is_control)


def _replay(run: _Run, types: RecordTypes, state: ReplayedState) -> None:
    if run.is_control:
        _replay_markers(run, state)
        return
    types.replay(run.records, run.producer_id, state)


def _replay_markers(run: _Run, state: ReplayedState) -> None:
    for key, value in run.records:
        marker = read_marker(Record(0, 0, key, value, []))
        if marker is not None:
            state.replay_end(run.producer_id, marker.committed)
