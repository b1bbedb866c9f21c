"""A planner and a committer that a test controls."""

import contextlib
import queue
from collections.abc import Sequence

from barnabas.spark.runtime.work import WorkItem, WorkReport

TIMEOUT_S = 60.0


class SimulatedWork:
    """Plans the batches that a test adds, again if they are lost, and keeps the reports."""

    def __init__(self) -> None:
        self.plan_error: Exception | None = None
        self.commit_error: Exception | None = None
        self.batches: list[int] = []
        self._unreported: Sequence[WorkItem] = []
        self._plans: queue.Queue[Sequence[WorkItem]] = queue.Queue()
        self._reports: queue.Queue[Sequence[WorkReport]] = queue.Queue()

    def plan(self, timeout_s: float) -> Sequence[WorkItem]:
        if self.plan_error is not None:
            raise self.plan_error
        if not self._unreported:
            with contextlib.suppress(queue.Empty):
                self._unreported = self._plans.get(timeout=timeout_s)
        return self._unreported

    def on_batch(self, batch: int, reports: Sequence[WorkReport]) -> None:
        if self.commit_error is not None:
            raise self.commit_error
        self._unreported = []
        self.batches.append(batch)
        self._reports.put(reports)

    def add(self, *work: object) -> None:
        """Have these run as the tasks of one batch; the owners are "0", "1" and so on."""
        self._plans.put([WorkItem(str(task), task, run) for task, run in enumerate(work)])  # type: ignore[arg-type]

    def reports(self) -> Sequence[WorkReport]:
        """Waits for the reports of the next batch."""
        return self._reports.get(timeout=TIMEOUT_S)

    def run(self, *work: object) -> Sequence[WorkReport]:
        self.add(*work)
        return self.reports()

    def drop(self) -> None:
        """Have what is lost not planned again."""
        self._unreported = []

    @property
    def is_all_taken(self) -> bool:
        return self._reports.empty()
