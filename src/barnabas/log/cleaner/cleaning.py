"""One cleaning of one log, in steps that run in a thread.

The first pass reads the dirty records and notes the last offset of each key. The second reads all
segments from the start of the log on, and writes the records that are kept to new segments. A group
of small segments becomes one. The event loop puts each finished group in place before the next
begins, if the log still has the segments that it was made from.

Between two steps nothing runs. So the event loop can end a cleaning at any time, and a step is
short enough for a broker that stops.
"""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter

from barnabas.log.cleaner._offset_map import OffsetMap
from barnabas.log.cleaner._records import BatchFilter
from barnabas.log.cleaner.cleanable import CleanableRange
from barnabas.log.cleaner.compaction_state import NO_HORIZON_MS
from barnabas.log.cleaner.map_builder import OffsetMapBuilder
from barnabas.log.cleaner.segment_cleaner import RetainedBatches, SegmentCleaner
from barnabas.log.cleaner.segment_writer import (
    CleanedSegment,
    CleanedSegmentWriter,
    remove_cleaned_files,
)
from barnabas.log.cleaner.source import (
    BatchReader,
    SourceFolder,
    SourceSegment,
    SourceSegments,
    group_segments,
)
from barnabas.log.cleaner.throttler import CleanerThrottler
from barnabas.log.cleaner.transactions import CleanedTransactions
from barnabas.log.directory.offset_checkpoints import Checkpoint
from barnabas.log.log import Log

STEP_BYTES = 8 << 20
"""What one step reads, about: tens of milliseconds."""

MAP_ENTRY_BYTES = 24


@dataclass(slots=True, frozen=True)
class CleanerLimits:
    """The memory of one cleaning."""

    map_bytes: int
    load_factor: float
    buffer_bytes: int


@dataclass(slots=True, frozen=True)
class FinishedGroup:
    """New segments, complete on disk, and the ones that they replace."""

    sources: Sequence[SourceSegment]
    cleaned: Sequence[CleanedSegment]


@dataclass(slots=True)
class CleaningStats:
    """What one cleaning did, for the log and the metrics."""

    map_keys: int = 0
    map_utilization: float = 0.0
    read_bytes: int = 0
    messages_read: int = 0
    messages_kept: int = 0
    invalid_records: int = 0
    source_bytes: int = 0
    cleaned_bytes: int = 0
    elapsed_s: float = 0.0


class Cleaning:
    """The steps of one cleaning. `step` and `discard` run in a thread, all else on the loop."""

    def __init__(
        self,
        log: Log,
        cleanable: CleanableRange,
        limits: CleanerLimits,
        throttler: CleanerThrottler,
        now_ms: int,
    ) -> None:
        self.log = log
        self.cleanable = cleanable
        self.is_done = False
        self.finished_group: FinishedGroup | None = None
        """Set when the event loop has to put a group in place before the next step."""
        self.first_dirty_offset = cleanable.first_dirty_offset
        """Where the dirty part begins once this cleaning is done."""
        self.earliest_horizon_ms = NO_HORIZON_MS
        """When the next tombstones or markers can be removed, once this cleaning is done."""
        self.sources = SourceSegments(log, cleanable.end_offset)
        self.stats = CleaningStats()
        self._config = log.config
        self._limits = limits
        self._throttler = throttler
        self._now_ms = now_ms
        self._started_s = perf_counter()
        self._all_bases = [segment.base_offset for segment in log.segments.ordered]
        producers = log.producers.entries.values()
        self._retained = RetainedBatches(
            [producer.last_offset for producer in producers if producer.batches],
            {p.producer_id: p.epoch for p in producers if not p.batches},
            cleanable.end_offset,
        )
        self._folder = SourceFolder(log.path)
        self._reader = BatchReader(limits.buffer_bytes)
        self._writers: list[CleanedSegmentWriter] = []  # not in place yet
        self._step_bytes = 0
        self._first_checkpoint = self._begin_first_checkpoint()
        self._steps = self._run()

    @property
    def has_reached_end(self) -> bool:
        """Whether nothing is left to be cleaned; otherwise the map was full before."""
        return self.first_dirty_offset >= self.cleanable.end_offset

    def step(self) -> None:
        """Goes on until enough was read, a group is finished, or the cleaning is done."""
        self.finished_group = None
        self._step_bytes = 0
        if next(self._steps, self) is self:
            self.is_done = True
            self.stats.elapsed_s = perf_counter() - self._started_s

    def discard(self) -> None:
        """Removes what was written and is not in place."""
        self._close_files()
        with suppress(OSError):
            remove_cleaned_files(self._folder.fd)

    def close(self) -> None:
        self._close_files()
        self._folder.close()

    def _close_files(self) -> None:
        self._steps.close()
        for writer in self._writers:
            writer.close()

    def _begin_first_checkpoint(self) -> Checkpoint | None:
        """Returns what must be on disk before the segments of the log are first replaced."""
        key, offsets = (self.log.topic, self.log.partition), self.log.directory.cleaner_offsets
        if offsets.is_on_disk(key):
            return None
        offsets.put(key, self.first_dirty_offset)
        return offsets.begin_checkpoint()

    def _run(self) -> Generator[None, None, None]:
        if self._first_checkpoint is not None:
            self._first_checkpoint.write()
        remove_cleaned_files(self._folder.fd)
        offset_map = self._new_map()
        self.sources.needed_from = self.cleanable.first_dirty_offset
        yield from self._build_map(offset_map)
        yield  # then the loop knows which segments retention has deleted
        self.sources.needed_from = 0
        self.first_dirty_offset = offset_map.latest_offset + 1
        batch_filter = BatchFilter(
            offset_map,
            now_ms=self._now_ms,
            delete_retention_ms=self._config.delete_retention_ms,
            retained_offsets=sorted(self._retained.last_offsets),
            end_offset=self._retained.end_offset,
        )
        cleaner = SegmentCleaner(
            batch_filter,
            self._new_transactions(),
            self._retained,
            self._new_writer,
            now_ms=self._now_ms,
            buffer_bytes=self._limits.buffer_bytes,
        )
        for group in self._groups():
            yield from self._clean_group(cleaner, group)
        self._folder.sync()  # the checkpoint must not claim segments that a power loss takes back
        self.earliest_horizon_ms = batch_filter.earliest_horizon_ms
        self.stats.messages_read = batch_filter.messages_read
        self.stats.messages_kept = batch_filter.messages_kept
        self.stats.invalid_records = batch_filter.invalid_records

    def _new_map(self) -> OffsetMap:
        """Each offset has at most one record: a small dirty part needs only a small map."""
        offsets = max(self.cleanable.end_offset - self.cleanable.first_dirty_offset, 0)
        needed_bytes = MAP_ENTRY_BYTES * (int((offsets + 1) / self._limits.load_factor) + 2)
        return OffsetMap(min(needed_bytes, self._limits.map_bytes), self._limits.load_factor)

    def _new_transactions(self, first_offset: int = 0) -> CleanedTransactions:
        """Returns the transactions for a pass from an offset on: those before it have ended."""
        aborted = self._folder.aborted_transactions(self._all_bases)
        return CleanedTransactions(
            transaction for transaction in aborted if transaction.last_offset >= first_offset
        )

    def _new_writer(self, base_offset: int) -> CleanedSegmentWriter:
        writer = CleanedSegmentWriter(
            self._folder.fd,
            base_offset,
            self._config.index_interval_bytes,
            self._throttler.on_bytes,
        )
        self._writers.append(writer)
        return writer

    def _build_map(self, offset_map: OffsetMap) -> Iterator[None]:
        first_dirty_offset = self.cleanable.first_dirty_offset
        dirty = [source for source in self.sources.left if source.next_offset > first_dirty_offset]
        transactions = self._new_transactions(dirty[0].base_offset if dirty else 0)
        builder = OffsetMapBuilder(offset_map, transactions, first_dirty_offset)
        for source in dirty:
            yield from self._read(source, builder.add_chunk, until=lambda: builder.is_full)
            if builder.is_full:
                break
            builder.skip_to(source.next_offset)
        self.stats.map_keys = len(offset_map)
        self.stats.map_utilization = MAP_ENTRY_BYTES * len(offset_map) / self._limits.map_bytes

    def _groups(self) -> list[list[SourceSegment]]:
        """Everything up to the new first dirty offset, the clean part too."""
        return group_segments(
            self._folder,
            [s for s in self.sources.left if s.base_offset < self.first_dirty_offset],
            segment_bytes=self._config.segment_bytes,
            index_bytes=self._config.segment_index_bytes,
        )

    def _clean_group(
        self, cleaner: SegmentCleaner, group: Sequence[SourceSegment]
    ) -> Iterator[None]:
        cleaner.begin_group(group[0].base_offset)
        for source in group:
            yield from self._read(source, cleaner.clean_chunk)
        modified_ns = self._folder.modified_ns(group[-1])
        cleaned = [writer.finish(modified_ns) for writer in cleaner.writers]
        self.stats.source_bytes += sum(source.size_bytes for source in group)
        self.stats.cleaned_bytes += sum(segment.size_bytes for segment in cleaned)
        self.finished_group = FinishedGroup(group, cleaned)
        yield
        self._writers = []
        self.sources.on_replaced(len(group))

    def _read(
        self,
        source: SourceSegment,
        process: Callable[[memoryview], int],
        until: Callable[[], bool] = lambda: False,
    ) -> Iterator[None]:
        """Reads a segment chunk by chunk; `process` returns how much of a chunk it has used."""
        with self._folder.open_log_file(source) as fd:
            position = 0
            while position < source.size_bytes and not until():
                chunk = self._reader.read(fd, position, source.size_bytes)
                count = process(chunk)
                position += count
                self.stats.read_bytes += count
                self._throttler.on_bytes(count)
                # Otherwise the event loop, when it wakes up, may wait for the end of a time slice.
                os.sched_yield()
                self._step_bytes += count
                if self._step_bytes >= STEP_BYTES:
                    yield
