"""Loading a log from its folder, and recovering it after an unclean shutdown.

After a clean shutdown, only the tail of the active segment and the newest producer snapshot are
read. Otherwise everything from the recovery point on is read batch by batch and its checksums are
verified. The log then ends after the last whole and valid batch, and indexes, producers and leader
epochs are rebuilt from the batches.
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
from barnabas.log.segments.scan import ValidBatches
from barnabas.log.segments.segment import LogSegment

RecoveryProgress: TypeAlias = Callable[[str, int, int], None]
"""Called with the name of the log, the bytes scanned so far, and the bytes to scan in total."""


_logger = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class LogLoadParams:
    """What is known about a log before its folder is read."""

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
        segments = [_new_segment(params, params.log_start_offset)]
    for segment, successor in pairwise(segments):
        segment.next_offset = successor.base_offset
    first_unverified = _first_unverified(params, segments)
    verified = segments[:first_unverified]
    epochs = _load_epochs(folder, verified)
    upto = verified[-1].next_offset if verified else segments[0].base_offset
    producers, snapshot_offset = replay.load_producer_state(
        params.name, folder, verified, files.snapshots, upto
    )
    _check_transactions(params, verified, files)
    loaded = LoadedLog(
        params, segments, epochs, producers, snapshot_offset, params.log_start_offset, upto, upto
    )
    if first_unverified < len(segments):
        _recover(loaded, first_unverified)
    _check_end(loaded)
    _reconcile_offsets(loaded)
    kept = [loaded.snapshot_offset, *(segment.base_offset for segment in segments)]
    snapshots.remove_stray(folder, files.snapshots, kept)
    return loaded


def create_empty_log(params: LogLoadParams) -> LoadedLog:
    """Returns an empty log in an empty folder."""
    offset = params.log_start_offset
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
    """Returns the number of the first segment to scan; the number of segments if there is none."""
    active = segments[-1]
    if not active.is_on_disk:
        return len(segments)
    if active.load_tail(indexes_complete=params.is_clean) and (
        params.is_clean or active.next_offset == params.recovery_point
    ):
        return len(segments)
    bases = [segment.base_offset for segment in segments]
    return max(bisect_right(bases, params.recovery_point) - 1, 0)


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
    params: LogLoadParams, verified: Sequence[LogSegment], files: LogFiles
) -> None:
    """Rebuilds damaged transaction indexes: without them aborted records would be read."""
    with_index = {base for base, suffix in files.indexes if suffix == TRANSACTION_INDEX}
    for number, segment in enumerate(verified):
        if segment.base_offset in with_index and not segment.transaction_index.load():
            replay.rebuild_transaction_index(
                params.name, params.folder, verified, files.snapshots, number
            )


def _recover(loaded: LoadedLog, first_unverified: int) -> None:
    """Scans the segments from the first unverified one on; the log ends at the first damage."""
    params, segments = loaded.params, loaded.segments
    total_bytes = sum(segment.size_bytes for segment in segments[first_unverified:])
    scanned_bytes = 0
    for number in range(first_unverified, len(segments)):
        segment = segments[number]
        limit = segment.next_offset if number + 1 < len(segments) else None
        if number > first_unverified:
            snapshots.write(params.folder, segment.base_offset, loaded.producers)
            loaded.snapshot_offset = segment.base_offset
        size_bytes = segment.size_bytes
        is_whole = _recover_segment(loaded, segment, limit, scanned_bytes, total_bytes)
        loaded.log_end_offset = segment.next_offset
        scanned_bytes += size_bytes
        if not is_whole and number + 1 < len(segments):
            _logger.warning("%s: the segments after the damage are deleted", params.name)
            for later in segments[number + 1 :]:
                later.close()
                delete_segment_files(params.folder, later.base_offset)
            del segments[number + 1 :]
            return
        if limit is not None:
            segment.next_offset = limit


def _recover_segment(
    loaded: LoadedLog, segment: LogSegment, limit: int | None, scanned_bytes: int, total_bytes: int
) -> bool:
    """Scans a segment and truncates it after its valid batches; returns whether all are valid."""
    params = loaded.params
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
        if scan.is_progress_due() and params.progress is not None:
            params.progress(params.name, scanned_bytes + segment.size_bytes, total_bytes)
    if segment.size_bytes == file_bytes:
        segment.seal()
        return True
    if segment.next_offset < params.recovery_point:
        raise CorruptLog(
            segment.path(),
            segment.size_bytes,
            f"{scan.reason}, though everything up to offset {params.recovery_point} was on disk",
        )
    _logger.warning(
        "%s: %s at byte %d; truncated by %d bytes, the log ends at offset %d",
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


def _reconcile_offsets(loaded: LoadedLog) -> None:
    """Makes start offset, end offset, leader epochs and recovery point agree."""
    params, segments = loaded.params, loaded.segments
    loaded.log_start_offset = max(params.log_start_offset, segments[0].base_offset)
    if loaded.log_start_offset > loaded.log_end_offset:
        _logger.warning(
            "%s: the log start offset is %d, but its records end before %d; emptied",
            params.name,
            loaded.log_start_offset,
            loaded.log_end_offset,
        )
        for segment in segments:
            segment.close()
            delete_segment_files(params.folder, segment.base_offset)
        segments[:] = [_new_segment(params, loaded.log_start_offset)]
        loaded.log_end_offset = loaded.log_start_offset
        loaded.producers.reset(())
    loaded.leader_epochs.truncate_from_end(loaded.log_end_offset + 1)
    loaded.leader_epochs.truncate_from_start(loaded.log_start_offset)
    loaded.leader_epochs.save()
    loaded.recovery_point = min(params.recovery_point, loaded.log_end_offset)
    if params.is_clean:
        loaded.recovery_point = loaded.log_end_offset


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
    `.cleaned`: then all originals exist, and it is removed too.
    """
    for name in (*files.deleted, *files.cleaned):
        os.unlink(f"{folder}/{name}")
    if files.swaps:
        _finish_swaps(folder, files)
        files = list_log_files(folder)
    for base_offset, suffix in files.indexes:
        if base_offset not in files.logs:
            path = segment_path(folder, base_offset, suffix)
            _logger.warning("%s: removed an index without a log file", path)
            os.unlink(path)
    return files


def _finish_swaps(folder: str, files: LogFiles) -> None:
    unfinished_from = min(map(_offset, files.cleaned), default=None)
    finished = []
    for name in files.swaps:
        if unfinished_from is not None and _offset(name) >= unfinished_from:
            os.unlink(f"{folder}/{name}")
        else:
            finished.append(name)
    for name in finished:
        if name.endswith(LOG + SWAP):
            first, end = _offset(name), _end_offset(f"{folder}/{name}", _offset(name))
            for base_offset in files.logs:
                if first <= base_offset < end:
                    delete_segment_files(folder, base_offset)
    for name in finished:
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


def _end_offset(path: str, base_offset: int) -> int:
    """Returns the offset after the last whole batch of a log file."""
    end_offset = base_offset
    fd = os.open(path, os.O_RDONLY)
    try:
        with suppress(DamagedBatch):
            for _, header in file_records.read_headers(fd, 0, os.fstat(fd).st_size):
                end_offset = header.next_offset
    finally:
        os.close(fd)
    return end_offset
