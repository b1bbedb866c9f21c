"""Bringing the state of producers up to an offset from a snapshot and the batches after it."""

import logging
import os
from collections.abc import Iterator, Sequence

from barnabas.log.producers import snapshots
from barnabas.log.segments.log_files import SNAPSHOT, segment_path
from barnabas.log.producers.producer_state import ProducerStateManager, read_end_marker
from barnabas.log.segments.segment import LogSegment
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.wire.records.batch import CONTROL_BIT, BatchHeader, Readable

RECALLED_BYTES = 1 << 20
"""How far before a snapshot's offset batches are looked for that may be sent again."""

_logger = logging.getLogger(__name__)


def load_producer_state(
    name: str, folder: str, segments: Sequence[LogSegment], snapshot_offsets: Sequence[int], upto: int
) -> tuple[ProducerStateManager, int]:
    """The producers as they were at `upto`, and the offset of the snapshot they came from."""
    producers = ProducerStateManager(name)
    offset = segments[0].base_offset if segments else upto
    for candidate in reversed(snapshot_offsets):
        if candidate <= upto and _restore(producers, segment_path(folder, candidate, SNAPSHOT)):
            offset = candidate
            _recall(producers, segments, offset)
            break
    for segment in segments:
        if segment.next_offset > offset and segment.base_offset < upto:
            for header, content in _batches(segment, offset, upto):
                replay_batch(producers, header, content)
    return producers, offset


def undo_from(producers: ProducerStateManager, segments: Sequence[LogSegment], offset: int) -> bool:
    """Undo what producers did from `offset` on, which is about to be cut away.

    A replica that has to give up a few batches of its leader before need not read whole segments
    for it. False if it has to, since what stands near the cut does not tell enough.
    """
    cut = [header for segment in segments for header in _producers_batches(segment, offset)]
    if any(header.attributes & CONTROL_BIT for header in cut):
        return False
    before: dict[int, list[BatchHeader]] = {header.producer_id: [] for header in cut}
    for segment, position in _tail(segments, offset) if before else ():
        for _, header in segment.batch_headers(position):
            if header.base_offset >= offset:
                break
            if header.producer_id in before:
                before[header.producer_id].append(header)
    if any(not each or each[-1].attributes & CONTROL_BIT for each in before.values()):
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
    """Builds the index of aborted transactions of one segment again."""
    segment = segments[number]
    _logger.warning("%s: building its transaction index again", segment.path())
    base_offset = segment.base_offset
    producers, _ = load_producer_state(name, folder, segments[:number], snapshot_offsets, base_offset)
    segment.transaction_index.clear()
    for header, content in _batches(segment, base_offset, segment.next_offset):
        aborted = replay_batch(producers, header, content)
        if aborted is not None:
            segment.transaction_index.append(aborted)


def replay_batch(
    producers: ProducerStateManager, header: BatchHeader, content: Readable
) -> AbortedTransaction | None:
    """A batch of an idempotent producer that is in the log; what it aborted, if anything."""
    if not header.attributes & CONTROL_BIT:
        producers.on_batch_appended(header, header.base_offset, header.last_offset, header.max_timestamp)
        return None
    marker = read_end_marker(content)
    return producers.complete_transaction(header, marker, header.last_offset) if marker is not None else None


def _restore(producers: ProducerStateManager, path: str) -> bool:
    """Takes the snapshot, or removes it if it is damaged: an older one will do."""
    try:
        with open(path, "rb") as file:
            producers.reset(snapshots.decode(file.read()))
    except snapshots.CorruptSnapshot as error:
        _logger.warning("%s: %s; removed", path, error)
        os.unlink(path)
        return False
    return True


def _recall(producers: ProducerStateManager, segments: Sequence[LogSegment], offset: int) -> None:
    """A snapshot has only the last batch of each producer, but a producer whose broker died may
    send any of the last five again: those before it are looked for in the log, if they are near.
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
    """The segments with the last bytes before `offset`, and where to begin in each."""
    tail: list[tuple[LogSegment, int]] = []
    wanted_bytes = RECALLED_BYTES
    for segment in reversed([each for each in segments if each.base_offset < offset]):
        end = segment.position_of(offset)
        nearest = segment.offset_index.lookup_before(max(0, end - wanted_bytes))
        tail.append((segment, nearest[1] if nearest is not None else 0))
        wanted_bytes -= end
        if wanted_bytes <= 0:
            break
    return reversed(tail)


def _batches(segment: LogSegment, start: int, upto: int) -> Iterator[tuple[BatchHeader, bytes]]:
    """The batches of idempotent producers in [start, upto), control batches with their bytes."""
    position = segment.position_of(start) if start > segment.base_offset else 0
    for at, header in segment.batch_headers(position):
        if header.base_offset >= upto:
            return
        if header.producer_id >= 0:
            yield header, segment.read_batch(at, header) if header.attributes & CONTROL_BIT else b""
