"""A connector that is a streaming query of its own, such as `connector.class=spark`.

Its class has `runs_own_query = True`. Its data passes through Spark, and its positions are in the
checkpoint of the query.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.connect.execution.settings import task_settings
from barnabas.connect.execution.task_states import TaskStates
from barnabas.connect.execution.work import EngineServices
from barnabas.connect.model import State, StatusListener, TargetState
from barnabas.connect.plugins import find_connector
from barnabas.spark.runtime.errors import StopTimeoutError
from barnabas.spark.runtime.state import QueryState, QueryStatus
from barnabas.spark.runtime.streaming_query import StreamingQueryDefinition
from barnabas.spark.runtime.supervisor import QuerySupervisor

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

log = logging.getLogger("barnabas.connect")

DRAIN_TIMEOUT_S = 60.0

_STATES = {
    QueryState.STARTING: State.UNASSIGNED,
    QueryState.RUNNING: State.RUNNING,
    QueryState.FAILED: State.FAILED,
    QueryState.RESTARTING: State.RESTARTING,
}


class OwnQueryRun:
    """Has the methods of `ConnectorRun` that the engine calls.

    The supervisor starts the query again after failures. `build_query(session, config, worker)` of
    the connector is called at each start, in a thread.
    """

    def __init__(
        self,
        name: str,
        config: Mapping[str, str],
        session: Callable[[], SparkSession],
        services: EngineServices,
        supervisor: QuerySupervisor,
        listener: StatusListener,
    ) -> None:
        self.name = name
        self.query_name = f"connector {name}"
        self._config = config
        self._session = session
        self._worker = services.worker
        self._supervisor = supervisor
        self._listener = listener
        settings = task_settings({}, services.worker.originals)
        self.states = TaskStates(
            settings,
            lambda task, state, trace: listener.on_task_status(name, task, state, trace),
        )
        self._start: asyncio.Task[QueryStatus] | None = None

    def begin(self, *, is_restart: bool = False) -> None:
        definition = StreamingQueryDefinition(self._session, self.query_name, self._build)
        self._listener.on_task_configs(self.name, [dict(self._config)])
        self._start = asyncio.create_task(self._supervisor.start(definition))

    async def halt(self) -> None:
        if self._start is None:
            return
        await asyncio.gather(self._start, return_exceptions=True)
        self._start = None
        try:
            await self._supervisor.remove(self.query_name, drain=True, timeout_s=DRAIN_TIMEOUT_S)
        except StopTimeoutError as error:
            log.warning("%s: %s", self.name, error)

    def report_target(self, target: TargetState) -> None:
        is_paused = target is TargetState.PAUSED
        if not is_paused:
            self.states.resize(0)
            self._listener.on_task_configs(self.name, [])
        state = State.PAUSED if is_paused else State.STOPPED
        self._listener.on_connector_status(self.name, state)
        self.states.set_all(state)

    async def restart(self, *, connector: bool, tasks: Sequence[int]) -> None:
        """The query is both the connector and its task."""
        self._report(State.RESTARTING, None)
        await self.halt()
        self.begin(is_restart=True)

    def on_status(self, status: QueryStatus) -> None:
        state = _STATES.get(status.state)
        if state is not None:
            self._report(state, status.trace if state is State.FAILED else None)

    def _report(self, state: State, trace: str | None) -> None:
        self._listener.on_connector_status(self.name, state, trace)
        self.states.set_count(1, state)
        self.states.set_all(state, trace)

    def _build(self, session: SparkSession) -> StreamingQuery:
        connector: Any = find_connector(self._config.get("connector.class", ""), self._config)()
        connector.configure(self._config)
        query: StreamingQuery = connector.build_query(session, self._config, self._worker)
        return query
