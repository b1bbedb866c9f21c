"""Recovering the batches past the recovery point: they may be incomplete, damaged or lost."""

import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.log.errors import CorruptLog
from barnabas.log.producers import replay, snapshots
from barnabas.log.segments.closed_segments import is_gap_of_compaction
from barnabas.log.segments.scan import ValidBatches
from barnabas.log.segments.segment import LogSegment
from barnabas.wire.records.batch import read_header

if TYPE_CHECKING:
    from barnabas.log.recovery import LoadedLog

_logger = logging.getLogger(__name__)


class TailRecovery:
    """Scans the segments from the first unverified one on; the log ends at the first damage."""

    def __init__(
        self, loaded: "LoadedLog", file_bytes: Mapping[int, int], first_unverified: int
    ) -> None:
        self._loaded = loaded
        self._file_bytes = file_bytes  # by base offset
        self._first = first_unverified
        first, *later = loaded.segments[first_unverified:]
        sizes = (file_bytes[segment.base_offset] for segment in (first, *later))
        self._total_bytes = sum(sizes) - first.size_bytes
        self._scanned_bytes = 0

    def run(self) -> None:
        loaded, segments = self._loaded, self._loaded.segments
        for number in range(self._first, len(segments)):
            segment = segments[number]
            if number > self._first:
                if self._is_missing_before(number):
                    self._delete_from(number)
                    return
                segment.reset()
                snapshots.write(loaded.params.folder, segment.base_offset, loaded.producers)
                loaded.snapshot_offset = segment.base_offset
            limit = segments[number + 1].base_offset if number + 1 < len(segments) else None
            reason = self._scan(segment, limit)
            loaded.log_end_offset = segment.next_offset
            if reason:
                self._require_above_recovery_point(segment, reason)
                # The rest first: if the broker crashes in between, the damage is found again.
                self._delete_from(number + 1)
                self._truncate(segment, reason)
                return
            if limit is not None:
                segment.seal()
                segment.next_offset = limit

    def _scan(self, segment: LogSegment, limit: int | None) -> str:
        """Counts the valid batches of a segment; returns why it has others, or ""."""
        loaded = self._loaded
        file_bytes, verified_bytes = self._file_bytes[segment.base_offset], segment.size_bytes
        if not verified_bytes:
            segment.transaction_index.clear()
        scan = ValidBatches(segment, file_bytes, limit, loaded.leader_epochs.latest_epoch)
        for walk, view in scan:
            segment.on_batches_scanned(walk)
            for epoch, offset in walk.leader_epochs:
                loaded.leader_epochs.assign(epoch, offset)
            for position in walk.producer_batches:
                self._replay(segment, view[position:])
            if scan.is_progress_due():
                self._report_progress(segment.size_bytes - verified_bytes)
        self._scanned_bytes += file_bytes - verified_bytes
        return scan.reason

    def _replay(self, segment: LogSegment, batch: memoryview) -> None:
        header = read_header(batch)
        content = batch[: header.size_bytes]
        aborted = replay.replay_batch(self._loaded.producers, header, content)
        if aborted is not None:
            segment.transaction_index.append(aborted)

    def _report_progress(self, scanned_bytes: int) -> None:
        params = self._loaded.params
        if params.progress is not None:
            params.progress(params.name, self._scanned_bytes + scanned_bytes, self._total_bytes)

    def _is_missing_before(self, number: int) -> bool:
        """Returns whether records are missing between the end of the log and a segment."""
        loaded, segment = self._loaded, self._loaded.segments[number]
        end_offset = loaded.log_end_offset
        if segment.base_offset <= end_offset or loaded.params.may_have_gaps:
            return False
        before = loaded.segments[number - 1]
        if is_gap_of_compaction(before, segment):
            return False
        reason = f"the records up to offset {segment.base_offset - 1} are missing"
        self._require_above_recovery_point(before, reason)
        _logger.warning(
            "%s: %s after it; the log ends at offset %d", before.path(), reason, end_offset
        )
        return True

    def _require_above_recovery_point(self, segment: LogSegment, reason: str) -> None:
        recovery_point = self._loaded.params.recovery_point
        if self._loaded.log_end_offset < recovery_point:
            raise CorruptLog(
                segment.path(),
                segment.size_bytes,
                f"{reason}, though everything up to offset {recovery_point} was on disk",
            )

    def _delete_from(self, number: int) -> None:
        loaded = self._loaded
        if number == len(loaded.segments):
            return
        _logger.warning("%s: the segments after the damage are deleted", loaded.params.name)
        for later in reversed(loaded.segments[number:]):
            later.delete_files()
        del loaded.segments[number:]
        loaded.segments[-1].next_offset = loaded.log_end_offset

    def _truncate(self, segment: LogSegment, reason: str) -> None:
        _logger.warning(
            "%s: %s at byte %d; truncated by %d bytes, the log ends at offset %d",
            segment.path(),
            reason,
            segment.size_bytes,
            self._file_bytes[segment.base_offset] - segment.size_bytes,
            segment.next_offset,
        )
        os.ftruncate(segment.file().fd, segment.size_bytes)
