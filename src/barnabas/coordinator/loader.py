"""Rebuilds a shard's state from its log, in slices that leave the event loop free in between."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from barnabas.coordinator.ports import PartitionLog
from barnabas.coordinator.records import CoordinatorRecord, RecordTypes
from barnabas.wire.records.batch import NO_PRODUCER_ID, check_crcs, read_header
from barnabas.wire.records.control import read_marker
from barnabas.wire.records.read import read_plain, read_records
from barnabas.wire.records.record import Record

READ_BYTES = 256 * 1024
"""How much of the log is read into memory at a time."""

RECORDS_PER_SLICE = 500
"""One or two milliseconds' worth."""


class ReplayedState(Protocol):
    """A state that the records of a log build up."""

    def replay(self, record: CoordinatorRecord, producer_id: int) -> None:
        """Applies a record. With a producer id it is pending until that producer's transaction
        ends; -1 means none."""

    def replay_end(self, producer_id: int, committed: bool) -> None:
        """Applies a transaction marker: the producer's pending records take effect, or never do."""


class _Run(NamedTuple):
    """Consecutive records of the log: of plain batches, or of one batch of another kind."""

    pairs: list[tuple[bytes | None, bytes | None]]
    """Their keys and values."""
    producer_id: int = NO_PRODUCER_ID
    """The producer whose transaction they are part of, or end."""
    is_control: bool = False


def load(log: PartitionLog, types: RecordTypes, state: ReplayedState) -> Iterator[None]:
    """Replays everything from the log's start to its end.

    Yields where a slice is full and more follows: a short log is loaded in one step.
    """
    remaining = RECORDS_PER_SLICE
    for run in _runs(log):
        while len(run.pairs) > remaining:
            _replay(run._replace(pairs=run.pairs[:remaining]), types, state)
            run = run._replace(pairs=run.pairs[remaining:])
            yield
            remaining = RECORDS_PER_SLICE
        _replay(run, types, state)
        remaining -= len(run.pairs)


def _runs(log: PartitionLog) -> Iterator[_Run]:
    offset = log.start_offset
    while chunk := log.read(offset, READ_BYTES):
        check_crcs(chunk)  # a damaged batch may decode without an error, to another offset
        position = 0
        while position < len(chunk):
            pairs, end, next_offset = read_plain(chunk, position, RECORDS_PER_SLICE)
            if end > position:
                position, offset = end, next_offset
                yield _Run(pairs)
                continue
            header = read_header(chunk, position)
            pairs = [(record.key, record.value) for record in read_records(chunk, position)]
            producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
            position += header.size_bytes
            offset = header.next_offset
            yield _Run(pairs, producer_id, header.is_control)


def _replay(run: _Run, types: RecordTypes, state: ReplayedState) -> None:
    pairs, producer_id, is_control = run
    if is_control:
        _replay_markers(run, state)
        return
    decode, replay = types.decode, state.replay
    for key, value in pairs:
        decoded = decode(key, value) if key is not None else None
        if decoded is not None:
            replay(decoded, producer_id)


def _replay_markers(run: _Run, state: ReplayedState) -> None:
    for key, value in run.pairs:
        marker = read_marker(Record(0, 0, key, value, []))
        if marker is not None:
            state.replay_end(run.producer_id, marker.committed)
