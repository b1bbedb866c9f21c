"""A work query without Spark, in a thread: for tests of planners and committers, and for trials."""

from __future__ import annotations

import threading

from barnabas.spark.runtime.errors import QueryError, StopTimeoutError
from barnabas.spark.runtime.work_execution import run_item
from barnabas.spark.runtime.work_run import OnBatch, PlannedBatch, Planner, WorkCallbacks, WorkRun

IDLE_WAIT_S = 2.0
"""How long the planner may wait for work."""

STOP_TIMEOUT_S = 30.0


class InlineWorkQuery:
    """Has the interface and the promises of `WorkQuery`. Runs items one after another."""

    def __init__(
        self, name: str, planner: Planner, on_batch: OnBatch, *, idle_wait_s: float = IDLE_WAIT_S
    ) -> None:
        self._name = name
        self._callbacks = WorkCallbacks(planner, on_batch)
        self._idle_wait_s = idle_wait_s
        self._run: WorkRun | None = None
        self._ended = threading.Event()
        self._ended.set()

    @property
    def name(self) -> str:
        return self._name

    def start(self) -> None:
        """Start the query, for the first time or after it has ended."""
        if not self._ended.is_set():
            raise QueryError(f"query {self._name} is already running")
        self._run = WorkRun(self._callbacks, max_attempts=1)
        self._ended = threading.Event()
        threading.Thread(
            target=self._work, args=(self._run, self._ended), name=self._name, daemon=True
        ).start()

    def stop(self, *, drain: bool = True, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stop the query; with `drain` after the batch that is running, within the timeout.

        The committer is not called any more when this has returned. Raises StopTimeoutError if it
        does not return.
        """
        run, ended = self._run, self._ended
        if run is None:
            return
        run.end_planning()
        if drain:
            run.wait_until_idle(timeout_s, lambda: not ended.is_set())
        is_idle = run.end_reporting(timeout_s)
        ended.set()
        if not is_idle:
            raise StopTimeoutError(f"the committer of query {self._name} has not returned")

    def wait_for_end(self) -> Exception | None:
        """Waits until the query has ended. Returns why, or None if it was stopped."""
        run = self._run
        self._ended.wait()
        return None if run is None else run.error

    def _work(self, run: WorkRun, ended: threading.Event) -> None:
        try:
            while not ended.is_set():
                batch = run.plan(self._idle_wait_s)
                if batch is not None:
                    _run_batch(run, batch, ended)
        except Exception:
            pass  # `run.error` has it, or the query was stopped
        finally:
            ended.set()


def _run_batch(run: WorkRun, batch: PlannedBatch, ended: threading.Event) -> None:
    reports = []
    for item in batch.items:
        reports.append(run_item(item, attempt=0))
        if ended.is_set():
            return
    run.complete(reports)
