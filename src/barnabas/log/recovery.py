"""Opening a partition's folder: what its files say, checked as far as the last stop demands.

After a clean stop the tail of the active segment is looked at and the newest producer snapshot
is read; nothing is scanned. After any other stop, what was not known to be on disk (from the
recovery point on) is read batch by batch with its checksum. The log then ends at the last whole
and valid batch, and indexes, producers and epochs are built from what is there.
"""

import logging
import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from barnabas.log.producers import replay
from barnabas.log.producers import snapshots
from barnabas.log.segments import temporary_files
from barnabas.log.checkpoint_file import MalformedCheckpoint
from barnabas.log.config import LogConfig
from barnabas.log.leader_epochs import EpochHistory
from barnabas.log.errors import CorruptLog
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.log_files import TRANSACTION_INDEX, Inventory, take_inventory
from barnabas.log.producers.producer_state import Producers
from barnabas.log.segments.scan import ValidBatches
from barnabas.log.segments.segment import Segment

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told the log's name, the bytes scanned so far, and the bytes there are to scan."""

_logger = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class Opening:
    """What is known of a log before its folder is read."""

    name: str
    folder: str
    config: LogConfig
    files: OpenFiles
    start_offset: int
    recovery_point: int
    clean: bool
    progress: Progress | None = None


@dataclass(slots=True)
class Loaded:
    """A log as it was found, or made good, on disk."""

    opening: Opening
    segments: list[Segment]
    epochs: EpochHistory
    producers: Producers
    snapshot_offset: int
    start_offset: int
    end_offset: int
    recovery_point: int
    is_new: bool = False


def load(opening: Opening) -> Loaded:
    """Reads the folder; CorruptLog if what was safely on disk is no longer whole."""
    folder, config = opening.folder, opening.config
    found = temporary_files.clear(folder, take_inventory(folder))
    segments = [
        Segment(folder, base, opening.files, config.index_interval_bytes, found.logs[base])
        for base in sorted(found.logs)
    ]
    if not segments:
        segments = [_new_segment(opening, opening.start_offset)]
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset
    first_doubtful = _first_doubtful(opening, segments)
    trusted = segments[:first_doubtful]
    epochs = _load_epochs(folder, trusted)
    upto = trusted[-1].next_offset if trusted else segments[0].base_offset
    producers, snapshot_offset = replay.load_producers(
        opening.name, folder, trusted, found.snapshots, upto
    )
    _check_transactions(opening, trusted, found)
    loaded = Loaded(
        opening, segments, epochs, producers, snapshot_offset, opening.start_offset, upto, upto
    )
    if first_doubtful < len(segments):
        _recover(loaded, first_doubtful)
    _check_end(loaded)
    _settle(loaded)
    kept = [loaded.snapshot_offset, *(segment.base_offset for segment in segments)]
    snapshots.remove_stray(folder, found.snapshots, kept)
    return loaded


def new_log(opening: Opening) -> Loaded:
    """A log with nothing in it, in a folder with nothing in it."""
    offset = opening.start_offset
    return Loaded(
        opening,
        segments=[_new_segment(opening, offset)],
        epochs=EpochHistory(opening.folder, []),
        producers=Producers(opening.name),
        snapshot_offset=offset,
        start_offset=offset,
        end_offset=offset,
        recovery_point=offset,
        is_new=True,
    )


def _first_doubtful(opening: Opening, segments: Sequence[Segment]) -> int:
    """The number of the first segment that must be scanned; past the last if none must."""
    active = segments[-1]
    if not active.is_on_disk:
        return len(segments)
    if active.load_tail(indexes_complete=opening.clean) and (
        opening.clean or active.next_offset == opening.recovery_point
    ):
        return len(segments)
    bases = [segment.base_offset for segment in segments]
    return max(bisect_right(bases, opening.recovery_point) - 1, 0)


def _load_epochs(folder: str, trusted: Sequence[Segment]) -> EpochHistory:
    """The history from its file, or from the batches themselves if the file is lost."""
    try:
        epochs = EpochHistory.load(folder)
    except MalformedCheckpoint as error:
        _logger.warning("%s; reading the leader epochs from the batches", error)
        epochs = EpochHistory(folder, [])
    if not epochs.starts:
        for segment in trusted:
            for _, header in segment.headers():
                if header.leader_epoch > epochs.latest:
                    epochs.assign(header.leader_epoch, header.base_offset)
    return epochs


def _check_transactions(opening: Opening, trusted: Sequence[Segment], found: Inventory) -> None:
    """A damaged index of aborted transactions would let aborted records be read."""
    with_index = {base for base, suffix in found.indexes if suffix == TRANSACTION_INDEX}
    for number, segment in enumerate(trusted):
        if segment.base_offset in with_index and not segment.transactions.load():
            replay.rebuild_transactions(
                opening.name, opening.folder, trusted, found.snapshots, number
            )


def _recover(loaded: Loaded, first_doubtful: int) -> None:
    """Scans the segments from the first doubtful one on, and ends the log where they fail."""
    opening, segments = loaded.opening, loaded.segments
    total_bytes = sum(segment.size_bytes for segment in segments[first_doubtful:])
    scanned_bytes = 0
    for number in range(first_doubtful, len(segments)):
        segment = segments[number]
        limit = segment.next_offset if number + 1 < len(segments) else None
        if number > first_doubtful:
            snapshots.write(opening.folder, segment.base_offset, loaded.producers)
            loaded.snapshot_offset = segment.base_offset
        size_bytes = segment.size_bytes
        is_whole = _recover_segment(loaded, segment, limit, scanned_bytes, total_bytes)
        loaded.end_offset = segment.next_offset
        scanned_bytes += size_bytes
        if not is_whole and number + 1 < len(segments):
            _logger.warning("%s: what follows the damage is dropped", opening.name)
            for later in segments[number + 1 :]:
                later.close()
                temporary_files.remove_segment(opening.folder, later.base_offset)
            del segments[number + 1 :]
            return
        if limit is not None:
            segment.next_offset = limit


def _recover_segment(
    loaded: Loaded, segment: Segment, limit: int | None, scanned_bytes: int, total_bytes: int
) -> bool:
    """Counts the valid batches of a segment again and cuts off the rest; whether all were."""
    opening = loaded.opening
    file_bytes = segment.size_bytes
    segment.restart()
    segment.transactions.clear()
    scan = ValidBatches(segment.file(), file_bytes, segment.base_offset, limit)
    for header, batch in scan:
        segment.note(header.size_bytes, header.last_offset, header.max_timestamp)
        if header.leader_epoch > loaded.epochs.latest:
            loaded.epochs.assign(header.leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            aborted = replay.batch(loaded.producers, header, batch)
            if aborted is not None:
                segment.transactions.append(aborted)
        if scan.passed_a_stretch() and opening.progress is not None:
            opening.progress(opening.name, scanned_bytes + segment.size_bytes, total_bytes)
    if segment.size_bytes == file_bytes:
        segment.seal()
        return True
    if segment.next_offset < opening.recovery_point:
        raise CorruptLog(
            segment.path(),
            segment.size_bytes,
            f"{scan.reason}, though everything up to offset {opening.recovery_point} was on disk",
        )
    _logger.warning(
        "%s: %s at byte %d; %d bytes are cut off, the log ends at offset %d",
        segment.path(),
        scan.reason,
        segment.size_bytes,
        file_bytes - segment.size_bytes,
        segment.next_offset,
    )
    os.ftruncate(segment.file().fd, segment.size_bytes)
    segment.seal()
    return False


def _check_end(loaded: Loaded) -> None:
    """A log that lost its end between two batches looks whole, but for its recovery point.

    A truncation lowers that point before it begins; only somebody else can have cut the file.
    """
    recovery_point, end_offset = loaded.opening.recovery_point, loaded.segments[-1].next_offset
    if end_offset < recovery_point:
        active = loaded.segments[-1]
        raise CorruptLog(
            active.path(),
            active.size_bytes,
            f"the log ends at offset {end_offset}, though everything up to offset "
            f"{recovery_point} was on disk",
        )


def _settle(loaded: Loaded) -> None:
    """Makes the ends of the log agree with each other."""
    opening, segments = loaded.opening, loaded.segments
    loaded.start_offset = max(opening.start_offset, segments[0].base_offset)
    if loaded.start_offset > loaded.end_offset:
        _logger.warning(
            "%s: begins at offset %d, but its records end before %d; starting there anew",
            opening.name,
            loaded.start_offset,
            loaded.end_offset,
        )
        for segment in segments:
            segment.close()
            temporary_files.remove_segment(opening.folder, segment.base_offset)
        segments[:] = [_new_segment(opening, loaded.start_offset)]
        loaded.end_offset = loaded.start_offset
        loaded.producers.replace(())
    loaded.epochs.truncate_end(loaded.end_offset + 1)
    loaded.epochs.truncate_start(loaded.start_offset)
    loaded.epochs.save()
    loaded.recovery_point = min(opening.recovery_point, loaded.end_offset)
    if opening.clean:
        loaded.recovery_point = loaded.end_offset


def _new_segment(opening: Opening, base_offset: int) -> Segment:
    config = opening.config
    segment = Segment.new(opening.folder, base_offset, opening.files, config.index_interval_bytes)
    if base_offset > 0 or config.preallocate:
        segment.make_file(config.segment_bytes if config.preallocate else 0)
    return segment
