"""One run of a work query, from its start to its end: batches are planned, and their reports taken.

It decides when the planner and the committer are called, for queries on Spark and in a thread.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from barnabas.spark.runtime.errors import QueryError
from barnabas.spark.runtime.work import WorkItem, WorkReport
from barnabas.spark.runtime.work_execution import (
    PickledItem,
    PickledReport,
    load_report,
    pickle_item,
    unpicklable_item_report,
)

Planner = Callable[[float], Sequence[WorkItem]]
"""Returns the items of the next micro-batch; waits up to that many seconds for one, and then
returns none. Every call means that the items of earlier calls are reported or lost: plan lost ones
again. A query that stops ignores what a call returns later, and these items are lost too."""

OnBatch = Callable[[int, Sequence[WorkReport]], None]
"""Takes the number of a micro-batch and one report for each of its items, in the order of the
plan. The next batch is planned when it has returned."""


@dataclass(slots=True)
class WorkCallbacks:
    """The two callbacks of a query. One call at a time, also when a restarted query overlaps."""

    planner: Planner
    on_batch: OnBatch
    lock: threading.Lock = field(default_factory=threading.Lock)
    batches: itertools.count[int] = field(default_factory=itertools.count)
    """Numbers of batches, which are not used again after a restart."""


@dataclass(slots=True, frozen=True)
class PlannedBatch:
    number: int
    items: list[PickledItem]
    failed: list[tuple[int, WorkReport]]
    """Reports of items that cannot run, by index."""


class WorkRun:
    """The batches of a query between one start and its stop. Thread-safe."""

    def __init__(self, callbacks: WorkCallbacks, *, max_attempts: int) -> None:
        self.error: Exception | None = None
        """What a callback has raised. The query fails with it."""
        self._callbacks = callbacks
        self._max_attempts = max_attempts
        self._changed = threading.Condition()
        self._in_flight: PlannedBatch | None = None
        self._is_planning_allowed = True
        self._is_reporting_allowed = True
        self._is_in_on_batch = False

    def plan(self, timeout_s: float) -> PlannedBatch | None:
        """Returns the next batch, or None if there is none within the timeout."""
        with self._callbacks.lock:
            if not self._is_planning_allowed:
                return None
            try:
                items = self._callbacks.planner(timeout_s)
                if not items or not self._is_planning_allowed:
                    return None
                batch = self._pickle(items)
            except Exception as error:
                self.error = error
                raise
            with self._changed:
                if not self._is_planning_allowed:
                    return None
                self._in_flight = batch
        if batch.items:
            return batch
        self.complete([])
        return None

    def complete(self, reports: Sequence[PickledReport]) -> None:
        """Pass the reports of the batch in flight to the committer."""
        with self._callbacks.lock:
            with self._changed:
                batch = self._in_flight
                if batch is None or not self._is_reporting_allowed:
                    raise QueryError("the query was stopped before it reported this batch")
                self._is_in_on_batch = True
            try:
                self._callbacks.on_batch(batch.number, _in_order(batch, reports))
            except Exception as error:
                self.error = error
                raise
            finally:
                with self._changed:
                    self._is_in_on_batch = False
                    self._in_flight = None
                    self._changed.notify_all()

    def end_planning(self) -> None:
        """Plan no further batch."""
        with self._changed:
            self._is_planning_allowed = False

    def wait_until_idle(self, timeout_s: float, is_alive: Callable[[], bool]) -> bool:
        """Waits for the batch in flight. Returns whether it was reported."""
        deadline_s = time.monotonic() + timeout_s
        with self._changed:
            while self._in_flight is not None:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0 or not is_alive():
                    return False
                self._changed.wait(min(left_s, 0.2))
        return True

    def end_reporting(self, timeout_s: float) -> bool:
        """Call the committer no more. Returns whether it has returned within the timeout."""
        with self._changed:
            self._is_planning_allowed = self._is_reporting_allowed = False
            return self._changed.wait_for(lambda: not self._is_in_on_batch, max(timeout_s, 0))

    def _pickle(self, items: Sequence[WorkItem]) -> PlannedBatch:
        batch = PlannedBatch(next(self._callbacks.batches), [], [])
        for index, item in enumerate(items):
            try:
                pickled = pickle_item(
                    item, index=index, batch=batch.number, max_attempts=self._max_attempts
                )
            except Exception as error:
                batch.failed.append((index, unpicklable_item_report(item, error)))
            else:
                batch.items.append(pickled)
        return batch


def _in_order(batch: PlannedBatch, reports: Sequence[PickledReport]) -> list[WorkReport]:
    by_index = {report.index: report for report in reports}
    missing = [item for item in batch.items if item.index not in by_index]
    if missing or len(reports) != len(batch.items):
        owners = ", ".join(sorted({item.owner for item in missing})) or "none"
        raise QueryError(
            f"micro-batch {batch.number} has {len(batch.items)} items and {len(reports)} reports;"
            f" those of these owners are missing: {owners}"
        )
    loaded = [(item.index, load_report(by_index[item.index], item)) for item in batch.items]
    return [report for _, report in sorted([*batch.failed, *loaded], key=lambda entry: entry[0])]
