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
from barnabas.log.leader_epochs import LeaderEpochCache
from barnabas.log.errors import CorruptLog
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.log_files import TRANSACTION_INDEX, LogFiles, list_log_files
from barnabas.log.producers.producer_state import ProducerStateManager
from barnabas.log.segments.scan import ValidBatches
from barnabas.log.segments.segment import LogSegment

RecoveryProgress: TypeAlias = Callable[[str, int, int], None]
"""Told the log's name, the bytes scanned so far, and the bytes there are to scan."""

_logger = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class LogLoadParams:
    """What is known of a log before its folder is read."""

    name: str
    folder: str
    config: LogConfig
    files: OpenFiles
    log_start_offset: int
    recovery_point: int
    is_clean: bool
    progress: RecoveryProgress | None = None


@dataclass(slots=True)
class LoadedLog:
    """A log as it was found, or made good, on disk."""

    params: LogLoadParams
    segments: list[LogSegment]
    leader_epochs: LeaderEpochCache
    producers: ProducerStateManager
    snapshot_offset: int
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    is_new: bool = False


def load_log(opening: LogLoadParams) -> LoadedLog:
    """Reads the folder; CorruptLog if what was safely on disk is no longer whole."""
    folder, config = opening.folder, opening.config
    found = temporary_files.remove_temporary_files(folder, list_log_files(folder))
    segments = [
        LogSegment(folder, base, opening.files, config.index_interval_bytes, found.logs[base])
        for base in sorted(found.logs)
    ]
    if not segments:
        segments = [_new_segment(opening, opening.log_start_offset)]
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset
    first_doubtful = _first_doubtful(opening, segments)
    trusted = segments[:first_doubtful]
    epochs = _load_epochs(folder, trusted)
    upto = trusted[-1].next_offset if trusted else segments[0].base_offset
    producers, snapshot_offset = replay.load_producer_state(
        opening.name, folder, trusted, found.snapshots, upto
    )
    _check_transactions(opening, trusted, found)
    loaded = LoadedLog(
        opening, segments, epochs, producers, snapshot_offset, opening.log_start_offset, upto, upto
    )
    if first_doubtful < len(segments):
        _recover(loaded, first_doubtful)
    _check_end(loaded)
    _settle(loaded)
    kept = [loaded.snapshot_offset, *(segment.base_offset for segment in segments)]
    snapshots.remove_stray(folder, found.snapshots, kept)
    return loaded


def create_empty_log(opening: LogLoadParams) -> LoadedLog:
    """A log with nothing in it, in a folder with nothing in it."""
    offset = opening.log_start_offset
    return LoadedLog(
        opening,
        segments=[_new_segment(opening, offset)],
        leader_epochs=LeaderEpochCache(opening.folder, []),
        producers=ProducerStateManager(opening.name),
        snapshot_offset=offset,
        log_start_offset=offset,
        log_end_offset=offset,
        recovery_point=offset,
        is_new=True,
    )


def _first_doubtful(opening: LogLoadParams, segments: Sequence[LogSegment]) -> int:
    """The number of the first segment that must be scanned; past the last if none must."""
    active = segments[-1]
    if not active.is_on_disk:
        return len(segments)
    if active.load_tail(indexes_complete=opening.is_clean) and (
        opening.is_clean or active.next_offset == opening.recovery_point
    ):
        return len(segments)
    bases = [segment.base_offset for segment in segments]
    return max(bisect_right(bases, opening.recovery_point) - 1, 0)


def _load_epochs(folder: str, trusted: Sequence[LogSegment]) -> LeaderEpochCache:
    """The history from its file, or from the batches themselves if the file is lost."""
    try:
        epochs = LeaderEpochCache.load(folder)
    except MalformedCheckpoint as error:
        _logger.warning("%s; reading the leader epochs from the batches", error)
        epochs = LeaderEpochCache(folder, [])
    if not epochs.entries:
        for segment in trusted:
            for _, header in segment.batch_headers():
                if header.leader_epoch > epochs.latest_epoch:
                    epochs.assign(header.leader_epoch, header.base_offset)
    return epochs


def _check_transactions(opening: LogLoadParams, trusted: Sequence[LogSegment], found: LogFiles) -> None:
    """A damaged index of aborted transactions would let aborted records be read."""
    with_index = {base for base, suffix in found.indexes if suffix == TRANSACTION_INDEX}
    for number, segment in enumerate(trusted):
        if segment.base_offset in with_index and not segment.transaction_index.load():
            replay.rebuild_transaction_index(
                opening.name, opening.folder, trusted, found.snapshots, number
            )


def _recover(loaded: LoadedLog, first_doubtful: int) -> None:
    """Scans the segments from the first doubtful one on, and ends the log where they fail."""
    opening, segments = loaded.params, loaded.segments
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
        loaded.log_end_offset = segment.next_offset
        scanned_bytes += size_bytes
        if not is_whole and number + 1 < len(segments):
            _logger.warning("%s: what follows the damage is dropped", opening.name)
            for later in segments[number + 1 :]:
                later.close()
                temporary_files.delete_segment_files(opening.folder, later.base_offset)
            del segments[number + 1 :]
            return
        if limit is not None:
            segment.next_offset = limit


def _recover_segment(
    loaded: LoadedLog, segment: LogSegment, limit: int | None, scanned_bytes: int, total_bytes: int
) -> bool:
    """Counts the valid batches of a segment again and cuts off the rest; whether all were."""
    opening = loaded.params
    file_bytes = segment.size_bytes
    segment.reset()
    segment.transaction_index.clear()
    scan = ValidBatches(segment.file(), file_bytes, segment.base_offset, limit)
    for header, batch in scan:
        segment.on_batch_written(header.size_bytes, header.last_offset, header.max_timestamp)
        if header.leader_epoch > loaded.leader_epochs.latest_epoch:
            loaded.leader_epochs.assign(header.leader_epoch, header.base_offset)
        if header.producer_id >= 0:
            aborted = replay.replay_batch(loaded.producers, header, batch)
            if aborted is not None:
                segment.transaction_index.append(aborted)
        if scan.is_progress_due() and opening.progress is not None:
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


def _check_end(loaded: LoadedLog) -> None:
    """A log that lost its end between two batches looks whole, but for its recovery point.

    A truncation lowers that point before it begins; only somebody else can have cut the file.
    """
    recovery_point, end_offset = loaded.params.recovery_point, loaded.segments[-1].next_offset
    if end_offset < recovery_point:
        active = loaded.segments[-1]
        raise CorruptLog(
            active.path(),
            active.size_bytes,
            f"the log ends at offset {end_offset}, though everything up to offset "
            f"{recovery_point} was on disk",
        )


def _settle(loaded: LoadedLog) -> None:
    """Makes the ends of the log agree with each other."""
    opening, segments = loaded.params, loaded.segments
    loaded.log_start_offset = max(opening.log_start_offset, segments[0].base_offset)
    if loaded.log_start_offset > loaded.log_end_offset:
        _logger.warning(
            "%s: begins at offset %d, but its records end before %d; starting there anew",
            opening.name,
            loaded.log_start_offset,
            loaded.log_end_offset,
        )
        for segment in segments:
            segment.close()
            temporary_files.delete_segment_files(opening.folder, segment.base_offset)
        segments[:] = [_new_segment(opening, loaded.log_start_offset)]
        loaded.log_end_offset = loaded.log_start_offset
        loaded.producers.reset(())
    loaded.leader_epochs.truncate_from_end(loaded.log_end_offset + 1)
    loaded.leader_epochs.truncate_from_start(loaded.log_start_offset)
    loaded.leader_epochs.save()
    loaded.recovery_point = min(opening.recovery_point, loaded.log_end_offset)
    if opening.is_clean:
        loaded.recovery_point = loaded.log_end_offset


def _new_segment(opening: LogLoadParams, base_offset: int) -> LogSegment:
    config = opening.config
    segment = LogSegment.new(opening.folder, base_offset, opening.files, config.index_interval_bytes)
    if base_offset > 0 or config.preallocate:
        segment.create_file(config.segment_bytes if config.preallocate else 0)
    return segment
