"""Finds the earliest delete horizon of a log that was cleaned before the broker started.

Without it, tombstones of a log that nobody writes to would stay for ever: nothing would make the
log dirty again. A horizon stays in its batch when the tombstones are gone, so one that has passed
matters only if there is a tombstone left. Markers that are due go when the log is dirty again.
"""

import os
from collections.abc import Generator

from barnabas.log.cleaner._records import has_tombstones
from barnabas.log.cleaner.compaction_state import NO_HORIZON_MS
from barnabas.log.cleaner.source import SourceFolder, SourceSegments
from barnabas.log.cleaner.throttler import CleanerThrottler
from barnabas.log.log import Log
from barnabas.log.segments import file_records
from barnabas.wire.records.batch import HEADER_BYTES, BatchHeader
from barnabas.wire.records.read import MAX_DECOMPRESSED_BYTES, record_bytes

STEP_BYTES = 1 << 20
"""What one step reads, about: headers, and the batches whose horizon has passed."""


class HorizonScan:
    """Reads the clean part of a log, in steps that run in a thread."""

    finished_group = None

    def __init__(
        self, log: Log, first_dirty_offset: int, throttler: CleanerThrottler, now_ms: int
    ) -> None:
        self.log = log
        self.is_done = False
        self.earliest_horizon_ms = NO_HORIZON_MS
        self.sources = SourceSegments(log, first_dirty_offset)
        self._folder = SourceFolder(log.path)
        self._throttler = throttler
        self._now_ms = now_ms
        self._step_bytes = 0
        self._steps = self._run()

    def step(self) -> None:
        self._step_bytes = 0
        if next(self._steps, self) is self:
            self.is_done = True

    def discard(self) -> None:
        """Ends the scan."""
        self._steps.close()

    def close(self) -> None:
        self._folder.close()

    def _run(self) -> Generator[None, None, None]:
        for source in self.sources.left:
            with self._folder.open_log_file(source) as fd:
                for position, header in file_records.read_headers(fd, 0, source.size_bytes):
                    self._on_bytes(HEADER_BYTES)
                    horizon_ms = header.delete_horizon_ms
                    if horizon_ms is not None and self._is_due(fd, position, header, horizon_ms):
                        self.earliest_horizon_ms = horizon_ms
                        if horizon_ms <= self._now_ms:
                            return  # the cleaning that is due now finds the others
                    if self._step_bytes >= STEP_BYTES:
                        yield

    def _is_due(self, fd: int, position: int, header: BatchHeader, horizon_ms: int) -> bool:
        """Whether this horizon is the next that a cleaning has to wait for."""
        if horizon_ms > self._now_ms:
            return not 0 <= self.earliest_horizon_ms <= horizon_ms
        if header.is_control:
            return False
        self._on_bytes(header.size_bytes)
        batch = os.pread(fd, header.size_bytes, position)
        records = record_bytes(batch, 0, header, MAX_DECOMPRESSED_BYTES)
        return has_tombstones(records, header.record_count)

    def _on_bytes(self, count: int) -> None:
        self._step_bytes += count
        self._throttler.on_bytes(count)
