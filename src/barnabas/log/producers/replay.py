"""Rebuilding the state of producers at an offset, from a snapshot and the batches after it."""

import logging
import os
from collections.abc import Iterator, Sequence

from barnabas.log.producers import snapshots
from barnabas.log.producers.producer_state import ProducerStateManager, read_end_marker
from barnabas.log.segments.index import AbortedTransaction
from barnabas.log.segments.log_files import SNAPSHOT, segment_path
from barnabas.log.segments.segment import LogSegment
from barnabas.wire.records.batch import CONTROL_BIT, BatchHeader, Readable

SEARCHED_BYTES = 1 << 20
"""How far before a snapshot's offset to search for batches that may be sent again."""

_logger = logging.getLogger(__name__)


def load_producer_state(
    name: str,
    folder: str,
    segments: Sequence[LogSegment],
    snapshot_offsets: Sequence[int],
    upto: int,
) -> tuple[ProducerStateManager, int]:
    """Returns the producers as they were at `upto`, and the offset of the snapshot used."""
    producers = ProducerStateManager(name)
    offset = segments[0].base_offset if segments else upto
    for candidate in reversed(snapshot_offsets):
        if candidate <= upto and _restore(producers, segment_path(folder, candidate, SNAPSHOT)):
            offset = candidate
            _restore_earlier_batches(producers, segments, offset)
            break
    for segment in segments:
        if segment.next_offset > offset and segment.base_offset < upto:
            for header, content in _batches(segment, offset, upto):
                replay_batch(producers, header, content)
    return producers, offset


def undo_from(producers: ProducerStateManager, segments: Sequence[LogSegment], offset: int) -> bool:
    """Undoes what producers did from `offset` on, before the log is truncated there.

    A replica that drops a few batches need not read whole segments for it. Returns False if it
    must, because the batches near `offset` do not have enough information.
    """
    dropped = [header for segment in segments for header in _producers_batches(segment, offset)]
    if any(header.attributes & CONTROL_BIT for header in dropped):
        return False
    before: dict[int, list[BatchHeader]] = {header.producer_id: [] for header in dropped}
    for segment, position in _tail(segments, offset) if before else ():
        for _, header in segment.batch_headers(position):
            if header.base_offset >= offset:
                break
            if header.producer_id in before:
                before[header.producer_id].append(header)
    if any(not kept or kept[-1].attributes & CONTROL_BIT for kept in before.values()):
        return False
    for batches in before.values():
        producers.undo_from(offset, batches)
    return True


def _producers_batches(segment: LogSegment, offset: int) -> Iterator[BatchHeader]:
    if segment.next_offset > offset:
        for _, header in segment.batch_headers(segment.position_of(offset)):
            if header.producer_id >= 0:
                yield header


def rebuild_transaction_index(
    name: str,
    folder: str,
    segments: Sequence[LogSegment],
    snapshot_offsets: Sequence[int],
    number: int,
) -> None:
    """Rebuilds the transaction index of one segment."""
    segment = segments[number]
    base_offset = segment.base_offset
    producers, _ = load_producer_state(
        name, folder, segments[:number], snapshot_offsets, base_offset
    )
    segment.transaction_index.clear()
    for header, content in _batches(segment, base_offset, segment.next_offset):
        aborted = replay_batch(producers, header, content)
        if aborted is not None:
            segment.transaction_index.append(aborted)


def replay_batch(
    producers: ProducerStateManager, header: BatchHeader, content: Readable
) -> AbortedTransaction | None:
    """Applies a batch of an idempotent producer; returns the transaction it aborted, if any."""
    if not header.attributes & CONTROL_BIT:
        producers.on_batch_appended(
            header, header.base_offset, header.last_offset, header.max_timestamp
        )
        return None
    marker = read_end_marker(content)
    return (
        producers.complete_transaction(header, marker, header.last_offset)
        if marker is not None
        else None
    )


def _restore(producers: ProducerStateManager, path: str) -> bool:
    """Loads a snapshot; removes it and returns False if it is damaged: an older one is used."""
    try:
        with open(path, "rb") as file:
            producers.reset(snapshots.decode(file.read()))
    except FileNotFoundError:
        return False  # it was damaged, and an earlier call has removed it
    except snapshots.CorruptSnapshot as error:
        _logger.warning("%s: %s; removed", path, error)
        os.unlink(path)
        return False
    return True


def _restore_earlier_batches(
    producers: ProducerStateManager, segments: Sequence[LogSegment], offset: int
) -> None:
    """Restores the batches before the last one of each producer, which a snapshot does not have.

    A producer whose broker crashed may send any of its last five batches again. They are searched
    for in the log, near the snapshot's offset.
    """
    if not producers.entries:
        return
    for segment, position in _tail(segments, offset):
        for _, header in segment.batch_headers(position):
            if header.base_offset >= offset:
                return
            if header.producer_id >= 0 and not header.attributes & CONTROL_BIT:
                producers.restore_earlier_batch(header)


def _tail(segments: Sequence[LogSegment], offset: int) -> Iterator[tuple[LogSegment, int]]:
    """Returns the segments with the last bytes before `offset`, and where to begin in each."""
    tail: list[tuple[LogSegment, int]] = []
    remaining_bytes = SEARCHED_BYTES
    for segment in reversed([s for s in segments if s.base_offset < offset]):
        end = segment.position_of(offset)
        nearest = segment.offset_index.lookup_before(max(0, end - remaining_bytes))
        tail.append((segment, nearest[1] if nearest is not None else 0))
        remaining_bytes -= end
        if remaining_bytes <= 0:
            break
    return reversed(tail)


def _batches(segment: LogSegment, start: int, upto: int) -> Iterator[tuple[BatchHeader, bytes]]:
    """Yields the batches of idempotent producers in [start, upto), control batches with bytes."""
    position = segment.position_of(start) if start > segment.base_offset else 0
    for at, header in segment.batch_headers(position):
        if header.base_offset >= upto:
            return
        if header.producer_id >= 0:
            yield header, segment.read_batch(at, header) if header.attributes & CONTROL_BIT else b""
