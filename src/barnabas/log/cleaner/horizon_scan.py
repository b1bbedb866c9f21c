"""Finds the earliest delete horizon of a log that was cleaned before the broker started.

Without it, tombstones of a log that nobody writes to would stay for ever: nothing would make the
log dirty again.
"""

from collections.abc import Generator

from barnabas.log.cleaner.compaction_state import NO_HORIZON_MS
from barnabas.log.cleaner.source import SourceFolder, SourceSegments
from barnabas.log.log import Log
from barnabas.log.segments import file_records

STEP_BATCHES = 512


class HorizonScan:
    """Reads the headers of the clean part of a log, in steps that run in a thread."""

    finished_group = None

    def __init__(self, log: Log, first_dirty_offset: int) -> None:
        self.log = log
        self.is_done = False
        self.earliest_horizon_ms = NO_HORIZON_MS
        self.sources = SourceSegments(log, first_dirty_offset)
        self._folder = SourceFolder(log.path)
        self._steps = self._run()

    def step(self) -> None:
        if next(self._steps, self) is self:
            self.is_done = True

    def discard(self) -> None:
        """Ends the scan."""
        self._steps.close()

    def close(self) -> None:
        self._folder.close()

    def _run(self) -> Generator[None, None, None]:
        count = 0
        for source in self.sources.left:
            with self._folder.open_log_file(source) as fd:
                for _, header in file_records.read_headers(fd, 0, source.size_bytes):
                    horizon_ms = header.delete_horizon_ms
                    if horizon_ms is not None and not (0 <= self.earliest_horizon_ms <= horizon_ms):
                        self.earliest_horizon_ms = horizon_ms
                    count += 1
                    if count % STEP_BATCHES == 0:
                        yield
