"""Loading a log from its folder, and recovering it after an unclean shutdown.

After a clean shutdown, only the tail of the active segment and the newest producer snapshot are
read. Otherwise everything from the recovery point on is read and its checksums are verified. The
log then ends after the last whole and valid batch, and indexes, producers and leader epochs are
rebuilt from the batches.

Recovery syncs nothing and leaves the recovery point where it is. If the broker crashes again, it
finds the same.
"""

import logging
import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from barnabas.log.checkpoint_file import MalformedCheckpoint
from barnabas.log.config import LogConfig
from barnabas.log.errors import CorruptLog, DamagedBatch
from barnabas.log.leader_epochs import LeaderEpochCache
from barnabas.log.producers import replay, snapshots
from barnabas.log.producers.producer_state import ProducerStateManager
from barnabas.log.segments import file_records
from barnabas.log.segments.closed_segments import check_closed
from barnabas.log.segments.log_files import (
    LOG,
    SEGMENT_SUFFIXES,
    SWAP,
    TRANSACTION_INDEX,
    LogFiles,
    list_log_files,
    parse_file_name,
    segment_path,
)
from barnabas.log.segments.open_files import OpenFiles
from barnabas.log.segments.segment import LogSegment
from barnabas.log.tail_recovery import TailRecovery

RecoveryProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with the name of the log, the bytes scanned so far, and the bytes to scan in total."""


_logger = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class LogLoadParams:
    """What is known about a log before its folder is read.

    A log is clean if its indexes are complete: after a clean shutdown, or once it was recovered.
    """

    name: str
    folder: str
    config: LogConfig
    files: OpenFiles
    log_start_offset: int | None  # None: where the first segment begins
    recovery_point: int
    is_clean: bool
    is_flushed: bool
    was_compacted: bool = False
    progress: RecoveryProgress | None = None

    @property
    def may_have_gaps(self) -> bool:
        """Whether compaction may have removed whole segments."""
        return self.config.compact or self.was_compacted


@dataclass(slots=True)
class LoadedLog:
    """A log as it is on disk, after recovery."""

    params: LogLoadParams
    segments: list[LogSegment]
    leader_epochs: LeaderEpochCache
    producers: ProducerStateManager
    snapshot_offset: int
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    is_new: bool = False


def load_log(params: LogLoadParams) -> LoadedLog:
    """Reads the folder. Raises CorruptLog if records below the recovery point are damaged."""
    folder, config = params.folder, params.config
    files = remove_temporary_files(folder, list_log_files(folder))
    segments = [
        LogSegment(folder, base, params.files, config.index_interval_bytes, files.logs[base])
        for base in sorted(files.logs)
    ]
    if not segments:
        segments = [_new_segment(params, params.log_start_offset or 0)]
    for segment, successor in pairwise(segments):
        segment.next_offset = successor.base_offset
    first_unverified = _first_unverified(params, segments)
    check_closed(segments[: first_unverified + 1], may_have_gaps=params.may_have_gaps)
    is_scanned = first_unverified < len(segments)
    last = segments[first_unverified] if is_scanned else segments[-1]
    upto = last.next_offset
    verified = segments[:first_unverified]
    if is_scanned and upto > last.base_offset:
        verified.append(last)
    epochs = _load_epochs(folder, verified)
    _check_start(params, segments[0], epochs)
    producers, snapshot_offset = replay.load_producer_state(
        params.name, folder, verified, files.snapshots, upto
    )
    is_trusted = params.is_clean and not is_scanned
    _check_transactions(params, verified, files, None if is_trusted else last)
    loaded = LoadedLog(
        params, segments, epochs, producers, snapshot_offset, segments[0].base_offset, upto, upto
    )
    if is_scanned:
        TailRecovery(loaded, files.logs, first_unverified).run()
    _check_end(loaded)
    _reconcile_offsets(loaded)
    kept = [loaded.snapshot_offset, *(segment.base_offset for segment in segments)]
    snapshots.remove_stray(folder, files.snapshots, kept)
    return loaded


def create_empty_log(params: LogLoadParams) -> LoadedLog:
    """Returns an empty log in an empty folder."""
    offset = params.log_start_offset or 0
    return LoadedLog(
        params,
        segments=[_new_segment(params, offset)],
        leader_epochs=LeaderEpochCache(params.folder, []),
        producers=ProducerStateManager(params.name),
        snapshot_offset=offset,
        log_start_offset=offset,
        log_end_offset=offset,
        recovery_point=offset,
        is_new=True,
    )


def _first_unverified(params: LogLoadParams, segments: Sequence[LogSegment]) -> int:
    """Returns the number of the first segment to scan; the number of segments if there is none.

    That segment counts the batches below the recovery point, if its indexes lead there.
    """
    active, recovery_point = segments[-1], params.recovery_point
    if not active.is_on_disk:
        return len(segments)
    if params.is_clean and active.load_tail(indexes_complete=True):
        return len(segments)
    first = max(bisect_right(segments, recovery_point, key=_base_offset) - 1, 0)
    segment = segments[first]
    file_bytes = segment.size_bytes
    if recovery_point <= segment.base_offset or not segment.load_tail(
        indexes_complete=False, upto=recovery_point
    ):
        segment.reset()
    if segment is active and segment.size_bytes == file_bytes:
        return len(segments)
    return first


def _load_epochs(folder: str, verified: Sequence[LogSegment]) -> LeaderEpochCache:
    """Reads the leader epochs from their file, or from the batches if the file is lost."""
    try:
        epochs = LeaderEpochCache.load(folder)
    except MalformedCheckpoint as error:
        _logger.warning("%s; reading the leader epochs from the batches", error)
        epochs = LeaderEpochCache(folder, [])
    if not epochs.entries:
        for segment in verified:
            for _, header in segment.batch_headers():
                if header.leader_epoch > epochs.latest_epoch:
                    epochs.assign(header.leader_epoch, header.base_offset)
    return epochs


def _check_transactions(
    params: LogLoadParams,
    verified: Sequence[LogSegment],
    files: LogFiles,
    recovered: LogSegment | None,
) -> None:
    """Rebuilds transaction indexes that are damaged or may have entries of lost markers.

    Without an entry, aborted records would be read. One too many would hide committed records.
    Below the recovery point the entries are on disk, but those after them may be there too, whole
    or in part: so the index of the segment with the recovery point is never trusted.
    """
    with_index = {base for base, suffix in files.indexes if suffix == TRANSACTION_INDEX}
    for number, segment in enumerate(verified):
        if segment.base_offset not in with_index:
            continue
        is_whole = segment.transaction_index.load()
        if not is_whole:
            _logger.warning("%s: rebuilding its transaction index", segment.path())
        if not is_whole or segment is recovered:
            replay.rebuild_transaction_index(
                params.name, params.folder, verified, files.snapshots, number
            )


def _check_end(loaded: LoadedLog) -> None:
    """Raises CorruptLog if the log ends before its recovery point.

    A log that was cut between two batches looks whole otherwise. A truncation lowers the recovery
    point first, so only another process can have shortened the file.
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


def _check_start(params: LogLoadParams, first: LogSegment, epochs: LeaderEpochCache) -> None:
    """Raises CorruptLog if the log began before its first segment when it was closed.

    After an unclean shutdown nothing is known: retention may have deleted segments since.
    """
    if not params.is_clean:
        return
    start_offset = params.log_start_offset
    if start_offset is None and epochs.entries:
        start_offset = epochs.entries[0].start_offset
    if start_offset is not None and start_offset < first.base_offset:
        raise CorruptLog(
            first.path(),
            0,
            f"the records from offset {start_offset} to {first.base_offset - 1} are missing, "
            "because the segments before it were lost",
        )


def _reconcile_offsets(loaded: LoadedLog) -> None:
    """Makes start offset, end offset, leader epochs and recovery point agree."""
    params, segments = loaded.params, loaded.segments
    loaded.log_start_offset = max(params.log_start_offset or 0, segments[0].base_offset)
    if loaded.log_start_offset > loaded.log_end_offset:
        _logger.warning(
            "%s: the log start offset is %d, but its records end before %d; emptied",
            params.name,
            loaded.log_start_offset,
            loaded.log_end_offset,
        )
        for segment in segments:
            segment.delete_files()
        segments[:] = [_new_segment(params, loaded.log_start_offset)]
        loaded.log_end_offset = loaded.log_start_offset
        loaded.producers.reset(())
    loaded.leader_epochs.truncate_from_end(loaded.log_end_offset + 1)
    loaded.leader_epochs.truncate_from_start(loaded.log_start_offset)
    loaded.recovery_point = min(params.recovery_point, loaded.log_end_offset)
    if params.is_flushed:
        loaded.recovery_point = loaded.log_end_offset


def _base_offset(segment: LogSegment) -> int:
    return segment.base_offset


def _new_segment(params: LogLoadParams, base_offset: int) -> LogSegment:
    config = params.config
    segment = LogSegment.new(params.folder, base_offset, params.files, config.index_interval_bytes)
    if base_offset > 0 or config.preallocate:
        segment.create_file(config.segment_bytes if config.preallocate else 0)
    return segment


def remove_temporary_files(folder: str, files: LogFiles) -> LogFiles:
    """Removes temporary files and finishes swaps; returns the files as they are then.

    The cleaner writes new segments as `.cleaned`, renames them to `.swap` when all are complete,
    and then puts them in place of the original segments. So a `.cleaned` file is unfinished and is
    removed. A `.swap` file is finished and is put in place, unless others of the same run are still
    `.cleaned`: then all originals exist, and it is removed too, before the `.cleaned` ones. So
    another crash during these steps changes nothing.
    """
    finished = remove_unneeded_files(folder, files)
    if finished:
        _finish_swaps(folder, finished, files)
        files = list_log_files(folder)
    for base_offset, suffix in files.indexes:
        if base_offset not in files.logs:
            path = segment_path(folder, base_offset, suffix)
            _logger.warning("%s: removed an index without a log file", path)
            os.unlink(path)
    return files


def remove_unneeded_files(folder: str, files: LogFiles) -> list[str]:
    """Removes the files of deleted and unfinished segments; returns the names of finished ones."""
    unfinished_from = min(map(_offset, files.cleaned), default=None)
    finished = []
    for name in files.swaps:
        if unfinished_from is not None and _offset(name) >= unfinished_from:
            os.unlink(f"{folder}/{name}")
        else:
            finished.append(name)
    for name in (*files.cleaned, *files.deleted):
        os.unlink(f"{folder}/{name}")
    return finished


def _finish_swaps(folder: str, finished: Sequence[str], files: LogFiles) -> None:
    """Replaces the original segments by finished ones."""
    logs = [name for name in finished if name.endswith(LOG + SWAP)]
    if logs:
        bases = {_offset(name) for name in logs}
        first, end = min(bases), max(_end_offset(folder, name) for name in logs)
        for base_offset in {*files.logs, *(base_offset for base_offset, _ in files.indexes)}:
            if base_offset in bases or first <= base_offset < end:
                delete_segment_files(folder, base_offset)
        vanished = [o for o in files.snapshots if first <= o < end and o not in bases]
        snapshots.remove_stray(folder, vanished, ())
    # The log file gets its final name first: an index alone belongs to the log file in place.
    for name in sorted(finished, key=lambda name: (_offset(name), name not in logs)):
        _logger.info("%s/%s: put in place, the cleaner had finished it", folder, name)
        os.replace(f"{folder}/{name}", f"{folder}/{name.removesuffix(SWAP)}")


def delete_segment_files(folder: str, base_offset: int) -> None:
    for suffix in SEGMENT_SUFFIXES:
        with suppress(FileNotFoundError):
            os.unlink(segment_path(folder, base_offset, suffix))


def _offset(name: str) -> int:
    offset, _ = parse_file_name(name)
    assert offset is not None, name
    return offset


def _end_offset(folder: str, name: str) -> int:
    """Returns the offset after the last whole batch of a log file."""
    end_offset = _offset(name)
    fd = os.open(f"{folder}/{name}", os.O_RDONLY)
    try:
        with suppress(DamagedBatch):
            for _, header in file_records.read_headers(fd, 0, os.fstat(fd).st_size):
                end_offset = header.next_offset
    finally:
        os.close(fd)
    return end_offset
