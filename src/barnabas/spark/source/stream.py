"""A streaming read: the driver decides where each micro-batch ends."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from barnabas.spark.source.admission import (
    AdmissionPacer,
    apply_rate_limit,
    available_records,
    ranges_between,
)
from barnabas.spark.source.cluster_client import SourceClusterClient
from barnabas.spark.source.connection import connect
from barnabas.spark.source.data_loss import DataLossPolicy
from barnabas.spark.source.offset_bounds import depends_on_now, resolve
from barnabas.spark.source.offsets import (
    Document,
    OffsetRange,
    Offsets,
    SourcePartition,
    from_document,
    to_document,
)
from barnabas.spark.source.options import SourceOptions
from barnabas.spark.source.row_decoder import RowDecoder
from barnabas.spark.source.task_planner import TaskRanges, plan

if TYPE_CHECKING:
    import pyarrow as pa

log = logging.getLogger(__name__)

_FINAL_COMMIT_TIMEOUT_S = 5.0

_IDLE_REFRESH_INTERVAL_S = 1.0
"""How often the partitions are listed while no records arrive: there may be new ones, or fewer."""


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The reader that Spark calls; the driver's state is created when it is first needed."""

    def __init__(self, options: SourceOptions, row_decoder: RowDecoder) -> None:
        self._options = options
        self._row_decoder = row_decoder
        self._data_loss_policy = options.data_loss_policy
        self._driver: _StreamDriver | None = None

    # In the driver

    def initialOffset(self) -> Document:  # noqa: N802
        return to_document(self._in_driver().initial_offsets())

    def latestOffset(self, start: Document, limit: ReadLimit) -> Document:  # noqa: N802
        is_limited = not isinstance(limit, ReadAllAvailable)
        return to_document(self._in_driver().advance(from_document(start), is_limited=is_limited))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        limits = self._options.limits
        if limits.max_offsets is not None:
            return ReadMaxRows(limits.max_offsets)
        if limits.min_offsets is not None:
            return ReadMinRows(limits.min_offsets)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._in_driver().fix_end()

    def reportLatestOffset(self) -> Document | None:  # noqa: N802
        ends = self._in_driver().ends
        return None if ends is None else to_document(ends)

    def partitions(self, start: Document, end: Document) -> list[InputPartition]:
        driver = self._in_driver()
        ranges = driver.ranges(from_document(start), from_document(end))
        return [TaskRanges(task) for task in plan(ranges, self._options.sizing)]

    def commit(self, end: Document) -> None:
        self._in_driver().commit(from_document(end))

    def stop(self) -> None:
        if self._driver is not None:
            self._driver.stop()

    def _in_driver(self) -> _StreamDriver:
        if self._driver is None:
            self._driver = _StreamDriver(self._options, self._data_loss_policy)
        return self._driver

    # In the executors

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from barnabas.spark.source.task import (
            read,  # not in the driver, which starts faster without it
        )

        read_task = read(partition.value, self._options.client, self._data_loss_policy)
        return map(self._row_decoder.apply, read_task)


class _StreamDriver:
    """The state of a query's source in the driver."""

    def __init__(self, options: SourceOptions, data_loss_policy: DataLossPolicy) -> None:
        self.ends: dict[SourcePartition, int] | None = None
        """The last known log ends of all partitions."""
        self._options = options
        self._data_loss_policy = data_loss_policy
        self._cluster = SourceClusterClient(connect(options.client))
        self._pacer = AdmissionPacer(options.limits)
        self._final: dict[SourcePartition, int] | None = None
        """Where Trigger.AvailableNow ends."""
        self._initial: dict[SourcePartition, int] | None = None
        """The initial offsets, until the first advance."""
        self._initial_latest: dict[SourcePartition, int] | None = None
        """What "latest" resolved to at the start, if the initial offsets depend on it."""
        self._is_initial_recorded = False
        self._committed: dict[SourcePartition, int] = {}
        self._may_wait = True
        self._was_last_wait_empty = False
        self._refresh_at_s = -math.inf
        self._pending_commit: Future[None] | None = None

    def initial_offsets(self) -> dict[SourcePartition, int]:
        """Returns the offsets to start from without a checkpoint."""
        options = self._options
        first = resolve(
            options.starting,
            self._cluster.partitions(options.topics),
            self._cluster.offsets,
            option="startingOffsets",
            is_late_latest=options.is_late_latest,
        )
        self._initial = first
        if depends_on_now(options.starting):
            self._initial_latest = first
            if self._final is not None:
                self._final = _later_offsets(self._final, first)
        return first

    def fix_end(self) -> None:
        """Fix the end of the query at the current log ends."""
        self._final = self._refresh_ends()
        if self._initial_latest is not None:
            self._final = _later_offsets(self._final, self._initial_latest)

    def advance(
        self, start: dict[SourcePartition, int], *, is_limited: bool
    ) -> dict[SourcePartition, int]:
        """Returns where the next micro-batch ends; `start` if there is none."""
        self._initial = None
        if start == self._initial_latest and not self._is_initial_recorded:
            # Spark's checkpoint has the end of a batch, not the start of the first. So the first
            # batch is empty, and its end tells a restarted query what "latest" was.
            self._is_initial_recorded = True
            return start
        if self._final is not None:
            return self._limit(start, self._final) if is_limited else self._final
        may_wait = self._may_wait and self._options.long_poll_ms > 0
        self._may_wait = True
        if not (may_wait and self._is_idle(start)):
            ends = self._refresh_ends(start)
            end = self._limit(start, ends) if is_limited else ends
            if end != start or not may_wait:
                return end
        ends = self._wait_for_records(start)
        return self._limit(start, ends) if is_limited else ends

    def ranges(
        self, start: dict[SourcePartition, int], end: dict[SourcePartition, int]
    ) -> list[OffsetRange]:
        """Returns the ranges of the micro-batch between `start` and `end`."""
        if start == self._initial:
            # The first batch of an earlier run is repeated; partitions may be newer than it.
            start = {key: start[key] for key in start.keys() & end.keys()}
            if self._initial_latest is not None:  # it was empty; "latest" has moved since
                start = {key: min(offset, end[key]) for key, offset in start.items()}
        new = end.keys() - start.keys()
        starts = self._cluster.earliest(new) if new else {}
        return ranges_between(start, end, starts, self._data_loss_policy)

    def commit(self, end: dict[SourcePartition, int]) -> None:
        """A batch of the query is complete, with rows of this source or only of another."""
        self._may_wait = end != self._committed
        self._committed = end
        group_id = self._options.commit_group_id
        if group_id is not None and self._may_wait:
            self._pending_commit = self._cluster.commit_async(group_id, end)

    def stop(self) -> None:
        if self._pending_commit is not None:
            wait([self._pending_commit], _FINAL_COMMIT_TIMEOUT_S)

    def _is_idle(self, start: dict[SourcePartition, int]) -> bool:
        """Whether the last wait found no records, and the partitions were listed recently."""
        return (
            self._was_last_wait_empty
            and start == self.ends
            and time.monotonic() < self._refresh_at_s
        )

    def _wait_for_records(self, start: Offsets) -> dict[SourcePartition, int]:
        """Returns the log ends when there are new records, or after the long poll."""
        assert self.ends is not None
        grown = self._cluster.wait_for_records(self.ends, self._options.long_poll_ms)
        if grown is None:
            return self._refresh_ends(start)
        self._was_last_wait_empty = not grown
        self.ends = self.ends | grown
        return self.ends

    def _refresh_ends(self, start: Offsets | None = None) -> dict[SourcePartition, int]:
        self._was_last_wait_empty = False
        self._refresh_at_s = time.monotonic() + _IDLE_REFRESH_INTERVAL_S
        may_be_gone = not self._data_loss_policy.fail_on_data_loss
        partitions = self._cluster.partitions(self._options.topics, may_be_gone=may_be_gone)
        self.ends = self._cluster.latest(partitions, read=start)
        return self.ends

    def _limit(
        self, start: dict[SourcePartition, int], ends: dict[SourcePartition, int]
    ) -> dict[SourcePartition, int]:
        limits = self._options.limits
        new = ends.keys() - start.keys()
        starts = start | (self._cluster.earliest(new) if new else {})
        if self._final is None and self._pacer.should_wait(
            available_records(starts, ends), time.monotonic()
        ):
            return start
        if limits.max_offsets is None:
            return ends
        return apply_rate_limit(starts, ends, limits.max_offsets)


def _later_offsets(ends: Offsets, others: Offsets) -> dict[SourcePartition, int]:
    """Returns the later offset of each partition: logs may grow between two requests for ends."""
    return {key: max(ends.get(key, 0), others.get(key, 0)) for key in ends.keys() | others.keys()}
