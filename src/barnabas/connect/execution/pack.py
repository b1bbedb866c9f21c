"""The connectors that share a query: their items become its micro-batches.

An item that kills its worker, again and again, may end the query and the other items with it. So
after that, connectors of the lost batch run alone, one after another, until each has succeeded. The
one that ends the query alone has failed, and gets a query of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from barnabas.connect.execution.connector_run import ConnectorRun
from barnabas.spark.runtime.state import QueryState, QueryStatus
from barnabas.spark.runtime.supervisor import QuerySupervisor, SupervisedQuery
from barnabas.spark.runtime.work import WorkItem, WorkReport
from barnabas.spark.runtime.work_run import OnBatch, Planner

CreateQuery = Callable[[str, Planner, OnBatch], SupervisedQuery]
"""Creates a query by its name, planner and committer."""

FAILURES_TO_REPORT = 3
"""After that many failures of a query in a row, its tasks are FAILED; before, RESTARTING."""

STOP_TIMEOUT_S = 60.0


class Pack:
    """Implements `Executor`. Lives on the event loop; the query calls it from its threads."""

    def __init__(
        self,
        name: str,
        create_query: CreateQuery,
        supervisor: QuerySupervisor,
        isolate: Callable[[ConnectorRun], None],
    ) -> None:
        """`isolate` moves a connector to a query of its own."""
        self.name = name
        self._isolate = isolate
        self._supervisor = supervisor
        self._query = create_query(name, self._plan_in_thread, self._on_batch_in_thread)
        self._loop = asyncio.get_running_loop()
        self._runs: dict[str, ConnectorRun] = {}
        self._work = asyncio.Event()
        self._is_running = asyncio.Event()
        self._in_flight: list[str] = []
        """Owners of items of the batch that runs."""
        self._suspects: dict[str, None] = {}
        self._start: asyncio.Task[QueryStatus] | None = None
        self._interrupting = asyncio.Lock()
        self._is_stopping = False

    # For runs

    def add(self, run: ConnectorRun) -> None:
        self._runs[run.name] = run
        if self._start is None:
            self._start = asyncio.create_task(self._supervisor.start(self._query))

    def remove(self, run: ConnectorRun) -> None:
        if self._runs.get(run.name) is run:
            del self._runs[run.name]
            self._suspects.pop(run.name, None)

    @property
    def is_empty(self) -> bool:
        return not self._runs

    async def wait_until_running(self) -> None:
        await self._is_running.wait()

    def notify(self) -> None:
        self._work.set()

    async def interrupt(self, run: ConnectorRun) -> None:
        async with self._interrupting:
            if not run.has_items_in_flight:
                return  # they were interrupted for another connector
            try:
                await self._supervisor.stop(self.name, drain=False)
            finally:
                self._on_lost(None)
                await self._supervisor.start(self._query)

    async def stop(self) -> None:
        """Commits the batch that runs, and stops the query."""
        self._is_stopping = True
        self._work.set()
        if self._start is not None:
            await asyncio.gather(self._start, return_exceptions=True)
            await self._supervisor.remove(self.name, drain=True, timeout_s=STOP_TIMEOUT_S)
            self._start = None
        self._on_lost(None)

    # For the supervisor

    def on_status(self, status: QueryStatus) -> None:
        if status.state is QueryState.RUNNING:
            self._is_running.set()
            for run in list(self._runs.values()):
                run.on_query_up()
            return
        self._is_running.clear()
        if status.state in (QueryState.FAILED, QueryState.RESTARTING):
            if status.state is QueryState.FAILED:
                self._on_lost(status.trace)
            trace = status.trace if status.failures >= FAILURES_TO_REPORT else None
            for run in list(self._runs.values()):
                run.on_query_down(trace)

    # For the query

    def _plan_in_thread(self, timeout_s: float) -> Sequence[WorkItem]:
        return asyncio.run_coroutine_threadsafe(self._plan(timeout_s), self._loop).result()

    def _on_batch_in_thread(self, _: int, reports: Sequence[WorkReport]) -> None:
        asyncio.run_coroutine_threadsafe(self._on_reports(reports), self._loop).result()

    async def _plan(self, timeout_s: float) -> list[WorkItem]:
        self._on_lost(None)  # or they would have been reported
        deadline_s = self._loop.time() + timeout_s
        while True:
            self._work.clear()
            items = self._items()
            left_s = deadline_s - self._loop.time()
            if items or left_s <= 0 or self._is_stopping:
                self._in_flight = sorted({item.owner for item in items})
                return items
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self._work.wait()

    def _items(self) -> list[WorkItem]:
        if self._is_stopping:
            return []
        for name in list(self._suspects):
            alone = self._runs[name].plan()
            if alone:
                return alone
            del self._suspects[name]  # it has nothing to do, or waits after its failure
        return [item for run in list(self._runs.values()) for item in run.plan()]

    async def _on_reports(self, reports: Sequence[WorkReport]) -> None:
        by_owner: dict[str, list[WorkReport]] = {}
        for report in reports:
            by_owner.setdefault(report.owner, []).append(report)
        await asyncio.gather(
            *(
                self._runs[owner].on_reports(of_owner)
                for owner, of_owner in by_owner.items()
                if owner in self._runs
            )
        )
        for owner in by_owner:
            self._suspects.pop(owner, None)
        self._in_flight = []

    def _on_lost(self, trace: str | None) -> None:
        """The batch that ran is lost. With a trace, one of its items may have ended the query."""
        lost, self._in_flight = self._in_flight, []
        is_alone = len(lost) == 1
        for name in lost:
            run = self._runs.get(name)
            if run is None:
                continue
            run.on_lost(trace if is_alone else None)
            if trace is None:
                continue
            if is_alone:
                self._isolate(run)
            else:
                self._suspects[name] = None
