"""A read that goes on: how far each micro-batch goes is decided in the driver, one by one."""

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

_LAST_COMMIT_S = 5.0

_QUIET_LOOK_S = 1.0
"""How often partitions are looked at where nothing comes: there may be new ones, or fewer."""


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """What Spark asks for; the driver's part is made where it is first needed."""

    def __init__(self, options: SourceOptions, shape: RowDecoder) -> None:
        self._options = options
        self._shape = shape
        self._loss = options.loss
        self._driver: _Driver | None = None

    # In the driver

    def initialOffset(self) -> Document:  # noqa: N802
        return to_document(self._in_driver().begin())

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
        self._in_driver().end_now()

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

    def _in_driver(self) -> _Driver:
        if self._driver is None:
            self._driver = _Driver(self._options, self._loss)
        return self._driver

    # In the executors

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        from barnabas.spark.source.task import read  # the driver starts sooner without

        read_task = read(partition.value, self._options.client, self._loss)
        return map(self._shape.apply, read_task)


class _Driver:
    """The state of one query's source."""

    def __init__(self, options: SourceOptions, loss: DataLossPolicy) -> None:
        self.ends: dict[SourcePartition, int] | None = None  # of all partitions, when last asked
        self._options = options
        self._loss = loss
        self._broker = SourceClusterClient(connect(options.client))
        self._pace = AdmissionPacer(options.limits)
        self._last: dict[SourcePartition, int] | None = None  # where Trigger.AvailableNow ends
        self._first: dict[SourcePartition, int] | None = None  # where it begins, until it advances
        self._anchor: dict[SourcePartition, int] | None = None  # where "latest" was when it began
        self._is_anchored = False
        self._committed: dict[SourcePartition, int] = {}
        self._may_wait = True
        self._waited_in_vain = False
        self._look_by_s = -math.inf  # while nothing comes
        self._committing: Future[None] | None = None

    def begin(self) -> dict[SourcePartition, int]:
        """The offsets to start from, where there is no checkpoint."""
        options = self._options
        first = resolve(
            options.starting,
            self._broker.partitions(options.topics),
            self._broker.offsets,
            named="startingOffsets",
            is_late_latest=options.is_late_latest,
        )
        self._first = first
        if depends_on_now(options.starting):
            self._anchor = first
            if self._last is not None:
                self._last = _farther(self._last, first)
        return first

    def end_now(self) -> None:
        """Read what there is now, and nothing after."""
        self._last = self._look()
        if self._anchor is not None:
            self._last = _farther(self._last, self._anchor)

    def advance(
        self, start: dict[SourcePartition, int], *, is_limited: bool
    ) -> dict[SourcePartition, int]:
        """Where the next micro-batch ends; at `start` if there is to be none."""
        self._first = None
        if start == self._anchor and not self._is_anchored:
            # Spark writes down where a batch ends, not where the first begins: so the first is
            # empty, and its end tells whoever starts the query again what "latest" was.
            self._is_anchored = True
            return start
        if self._last is not None:
            return self._limit(start, self._last) if is_limited else self._last
        may_wait = self._may_wait and self._options.long_poll_ms > 0
        self._may_wait = True
        if not (may_wait and self._is_quiet(start)):
            ends = self._look(start)
            end = self._limit(start, ends) if is_limited else ends
            if end != start or not may_wait:
                return end
        ends = self._wait(start)
        return self._limit(start, ends) if is_limited else ends

    def ranges(
        self, start: dict[SourcePartition, int], end: dict[SourcePartition, int]
    ) -> list[OffsetRange]:
        """What the micro-batch between these reads."""
        if start == self._first:
            # The first batch of an earlier run again, which did not know of partitions made since.
            start = {each: start[each] for each in start.keys() & end.keys()}
            if self._anchor is not None:  # it was empty; "latest" is another offset by now
                start = {each: min(offset, end[each]) for each, offset in start.items()}
        new = end.keys() - start.keys()
        begins = self._broker.earliest(new) if new else {}
        return ranges_between(start, end, begins, self._loss)

    def commit(self, end: dict[SourcePartition, int]) -> None:
        """A batch is done, of this source or of another in the same query."""
        self._may_wait = end != self._committed
        self._committed = end
        group_id = self._options.commit_group_id
        if group_id is not None and self._may_wait:
            self._committing = self._broker.commit_soon(group_id, end)

    def stop(self) -> None:
        if self._committing is not None:
            wait([self._committing], _LAST_COMMIT_S)

    def _is_quiet(self, start: dict[SourcePartition, int]) -> bool:
        """Whether nothing came when last waited for, and partitions were looked at just now."""
        return self._waited_in_vain and start == self.ends and time.monotonic() < self._look_by_s

    def _wait(self, start: Offsets) -> dict[SourcePartition, int]:
        """The ends once there is news, or the time is over."""
        assert self.ends is not None
        grown = self._broker.wait_for_records(self.ends, self._options.long_poll_ms)
        if grown is None:
            return self._look(start)
        self._waited_in_vain = not grown
        self.ends = self.ends | grown
        return self.ends

    def _look(self, start: Offsets | None = None) -> dict[SourcePartition, int]:
        self._waited_in_vain = False
        self._look_by_s = time.monotonic() + _QUIET_LOOK_S
        may_be_gone = not self._loss.fails
        partitions = self._broker.partitions(self._options.topics, may_be_gone=may_be_gone)
        self.ends = self._broker.latest(partitions, read=start)
        return self.ends

    def _limit(
        self, start: dict[SourcePartition, int], ends: dict[SourcePartition, int]
    ) -> dict[SourcePartition, int]:
        limits = self._options.limits
        new = ends.keys() - start.keys()
        begins = start | (self._broker.earliest(new) if new else {})
        if self._last is None and self._pace.should_wait(
            available_records(begins, ends), time.monotonic()
        ):
            return start
        if limits.max_offsets is None:
            return ends
        return apply_rate_limit(begins, ends, limits.max_offsets)


def _farther(ends: Offsets, others: Offsets) -> dict[SourcePartition, int]:
    """Asked one after the other, partitions and what is latest may have grown in between."""
    return {
        each: max(ends.get(each, 0), others.get(each, 0)) for each in ends.keys() | others.keys()
    }
