"""Runs connectors on Spark.

Each connector has a `ConnectorRun` in the driver, which plans items and commits what they have
done. Connectors share a query (`Pack`); a connector with `barnabas.query=dedicated` has its own.
All state is owned by the event loop; calls of connectors and plain clients run in threads.

Why each row is there once, for a source that writes exactly once (`spark/sink/protocol.py` has
the steps) and a sink that keeps positions with its data. In these cases, other sources and sinks
repeat what was written since the last commit.

- *A task is killed.* Its transaction was not decided on, and is aborted. The positions are in the
  transaction too, so the rows are read again. A sink's writer has committed nothing.
- *A worker, or the whole query, is killed.* The same for all items of the micro-batch: none is
  committed before `on_batch`. The next plan recovers first (`SourceCommitter.recover`).
- *The driver is killed before its decision.* The next driver aborts everything that is undecided.
- *The driver is killed between its decision and EndTxn.* The next one reads the decision, and
  completes it before it reads positions. A transaction that timed out before has lost rows and
  position together, so it is read again.
- *Two drivers at once.* The start of one fences the other: its decision fails, and so does the
  transaction with a sink's offsets, before the connector commits. Tasks of the fenced driver may
  still write, in transactions that nobody decides on.
- *A connector is paused, moved or changed.* No further item is planned, the items in flight are
  committed, and only then the method returns. Other connectors go on.
- *A commit has failed, and its outcome is not known.* Nothing is planned until `recover` has found
  out what was committed.

Positions are read when no transaction in the offset topic is open that was open before, since
readers of committed records do not see what follows an open transaction.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from barnabas.connect.execution.blocking import BlockingCalls
from barnabas.connect.execution.connector_run import ConnectorRun, connector_class
from barnabas.connect.execution.log_ends import LogEnds
from barnabas.connect.execution.offsets import ConnectorOffsets
from barnabas.connect.execution.own_query import OwnQueryRun
from barnabas.connect.execution.pack import CreateQuery, Pack
from barnabas.connect.execution.work import EngineServices, SourcePositionStore, WorkerSettings
from barnabas.connect.model import StatusListener, StoredOffset, TargetState
from barnabas.spark.runtime.state import QueryStatus
from barnabas.spark.runtime.supervisor import QuerySupervisor, SupervisedQuery
from barnabas.spark.runtime.work_run import OnBatch, Planner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("barnabas.connect")

SHARED = "connectors"
"""The name of the query that connectors share."""

DEDICATED = "dedicated"


class SparkConnectorEngine:
    """Implements `ConnectorEngine`."""

    def __init__(
        self,
        worker: WorkerSettings,
        positions: SourcePositionStore,
        listener: StatusListener,
        session: Callable[[], SparkSession],
        *,
        create_query: CreateQuery | None = None,
        log_ends: LogEnds | None = None,
    ) -> None:
        """`session` is called in threads, and returns the session that runs."""
        self._session = session
        self._listener = listener
        self._create_query = create_query or self._create_work_query
        self._is_inline = create_query is not None
        self._services = EngineServices(worker, positions, BlockingCalls(), log_ends or LogEnds())
        self._supervisor = QuerySupervisor(on_change=self._on_query_change)
        self._packs: dict[str, Pack] = {}
        self._runs: dict[str, ConnectorRun | OwnQueryRun] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._offsets = ConnectorOffsets(self._services)

    async def start(self) -> None:
        if not self._is_inline:
            await self._services.blocking.run(self._session)

    async def stop(self) -> None:
        releases = [self.release_connector(name) for name in list(self._runs)]
        for error in await asyncio.gather(*releases, return_exceptions=True):
            if isinstance(error, Exception):
                log.error("a connector did not end", exc_info=error)
        await asyncio.gather(*(pack.stop() for pack in self._packs.values()))
        self._packs.clear()
        await self._supervisor.close()
        await self._services.log_ends.close()
        self._services.blocking.close()

    async def run_connector(
        self, name: str, config: Mapping[str, str], target: TargetState
    ) -> None:
        async with self._lock(name):
            previous = self._runs.get(name)
            if previous is not None:
                await self._halt(previous)
            run = self._runs[name] = self._create_run(name, config)
            if previous is not None:
                run.states.adopt(previous.states)
            if target is TargetState.STARTED:
                run.begin()
            else:
                run.report_target(target)

    async def release_connector(self, name: str) -> None:
        async with self._lock(name):
            run = self._runs.get(name)
            if run is not None:
                await self._halt(run)

    async def _halt(self, run: ConnectorRun | OwnQueryRun) -> None:
        """Ends the connector. After an error it may still run, and the next call ends it."""
        await run.halt()
        del self._runs[run.name]
        await self._remove_empty_pack(run.name)

    async def restart(self, name: str, *, connector: bool, tasks: Sequence[int]) -> None:
        async with self._lock(name):
            run = self._runs.get(name)
            if run is not None:
                await run.restart(connector=connector, tasks=tasks)

    async def offsets(self, name: str, config: Mapping[str, str]) -> list[StoredOffset]:
        return await self._offsets.read(name, config)

    async def alter_offsets(
        self, name: str, config: Mapping[str, str], offsets: Sequence[StoredOffset] | None
    ) -> bool:
        async with self._lock(name):
            return await self._offsets.alter(name, config, offsets)

    def _lock(self, name: str) -> asyncio.Lock:
        return self._locks.setdefault(name, asyncio.Lock())

    def _create_run(self, name: str, config: Mapping[str, str]) -> ConnectorRun | OwnQueryRun:
        found = connector_class(config)
        if getattr(found, "runs_own_query", False):
            return OwnQueryRun(
                name, config, self._session, self._services, self._supervisor, self._listener
            )
        is_dedicated = config.get("barnabas.query", "").strip().lower() == DEDICATED
        pack = self._pack(f"{SHARED}-{name}" if is_dedicated else SHARED)
        return ConnectorRun(name, config, self._services, pack, self._listener)

    def _pack(self, name: str) -> Pack:
        if name not in self._packs:
            self._packs[name] = Pack(name, self._create_query, self._supervisor, self._isolate)
        return self._packs[name]

    def _isolate(self, run: ConnectorRun) -> None:
        log.warning("%s: has ended the query that it shares, and gets one of its own", run.name)
        run.move_to(self._pack(f"{SHARED}-{run.name}"))

    async def _remove_empty_pack(self, name: str) -> None:
        """Stops the query of a connector that had one of its own."""
        pack = self._packs.get(f"{SHARED}-{name}")
        if pack is not None and pack.is_empty:
            del self._packs[pack.name]
            await pack.stop()

    def _on_query_change(self, status: QueryStatus) -> None:
        pack = self._packs.get(status.name)
        if pack is not None:
            pack.on_status(status)
            return
        for run in self._runs.values():
            if isinstance(run, OwnQueryRun) and run.query_name == status.name:
                run.on_status(status)

    def _create_work_query(self, name: str, planner: Planner, on_batch: OnBatch) -> SupervisedQuery:
        from barnabas.spark.runtime.work_query import WorkQuery

        return WorkQuery(self._session, name, planner, on_batch)
