"""One connector of this instance: its lifecycle and the states that are reported of it.

    begin     UNASSIGNED ─▶ RUNNING ──error──▶ FAILED ──backoff──▶ RESTARTING ─▶ RUNNING
    halt      items in flight are committed, then everything is closed

An error of a task fails the task only (`task_states.py`). The connector fails if it cannot start,
plan or recover; nothing of it runs then.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from barnabas.connect.connector import SinkConnector
from barnabas.connect.errors import InvalidConfigError, RetriableError
from barnabas.connect.execution.record_errors import ErrorSummary
from barnabas.connect.execution.settings import TaskSettings, task_settings
from barnabas.connect.execution.sink_work import SinkWork
from barnabas.connect.execution.source_work import SourceWork
from barnabas.connect.execution.task_states import TaskStates
from barnabas.connect.execution.work import ConnectorWork, EngineServices, RunContext
from barnabas.connect.model import State, StatusListener, TargetState
from barnabas.connect.plugins import find_connector
from barnabas.spark.runtime.work import WorkItem, WorkReport

if TYPE_CHECKING:
    from barnabas.connect.connector import Connector

log = logging.getLogger("barnabas.connect")

RECOVERY_TIMEOUT_S = 10.0
"""How long a connector that ends may take to abort what its last commit has left open."""

DRAIN_TIMEOUT_S = 60.0
"""How long items in flight may take when a connector ends. Then their query is interrupted."""


class Executor(Protocol):
    """What runs the items: a pack, with the query that it shares."""

    async def wait_until_running(self) -> None: ...
    def add(self, run: ConnectorRun) -> None: ...
    def remove(self, run: ConnectorRun) -> None: ...
    def notify(self) -> None:
        """There is something to plan."""

    async def interrupt(self, run: ConnectorRun) -> None:
        """Ends the items in flight of all connectors, if there are some of this one."""


class ConnectorRun:
    def __init__(
        self,
        name: str,
        config: Mapping[str, str],
        services: EngineServices,
        executor: Executor,
        listener: StatusListener,
    ) -> None:
        self.name = name
        self._config = config
        self._services = services
        self._executor = executor
        self._listener = listener
        self._settings = _task_settings(config, services.worker.originals)
        self.states = TaskStates(self._settings, self._on_task_state)
        self._work: ConnectorWork | None = None
        self._lifecycle: asyncio.Task[None] | None = None
        self._recovery = asyncio.Event()
        """Whether `recover` has to follow before anything is planned."""
        self._recovered = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._is_ending = False
        self._topics: set[str] = set()
        self._state: State | None = None

    # Lifecycle

    def begin(self, *, is_restart: bool = False) -> None:
        """Starts the connector in the background."""
        assert self._lifecycle is None, "halt() comes before begin()"
        self._is_ending = False
        self._set_state(State.RESTARTING if is_restart else State.UNASSIGNED)
        self._executor.add(self)
        self._lifecycle = asyncio.create_task(self._live(), name=f"connector {self.name}")

    async def halt(self) -> None:
        """Returns when the items in flight are committed, and nothing of the connector runs."""
        self._is_ending = True
        try:
            async with asyncio.timeout(DRAIN_TIMEOUT_S):
                await self._idle.wait()
        except TimeoutError:
            log.warning("%s: items run for too long and are interrupted", self.name)
            await self._executor.interrupt(self)
        if self._recovery.is_set() and self._work is not None:
            # Or readers wait for transactions that are neither committed nor aborted.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RECOVERY_TIMEOUT_S):
                    await self._recovered.wait()
        lifecycle, self._lifecycle = self._lifecycle, None
        if lifecycle is not None:
            lifecycle.cancel()
            await asyncio.gather(lifecycle, return_exceptions=True)
        self._executor.remove(self)

    def move_to(self, executor: Executor) -> None:
        """Lets another query run the items, from the next one on."""
        self._executor.remove(self)
        self._executor = executor
        executor.add(self)

    def report_target(self, target: TargetState) -> None:
        """Reports a connector that is paused or stopped."""
        if target is TargetState.STOPPED:
            self.states.resize(0)
            self._listener.on_task_configs(self.name, [])
            self._set_state(State.STOPPED)
        elif target is TargetState.PAUSED:
            self._set_state(State.PAUSED)
            self.states.set_all(State.PAUSED)

    async def restart(self, *, connector: bool, tasks: Sequence[int]) -> None:
        if connector:
            self._set_state(State.RESTARTING)
        for task in tasks:
            if task < len(self.states):
                self.states.restart(task)
        if connector:
            await self.halt()
            self.begin(is_restart=True)
        self._executor.notify()

    async def _live(self) -> None:
        """Starts the connector, and starts it again after errors."""
        failures = 0
        while True:
            work, trace = None, ""
            try:
                await self._executor.wait_until_running()
                await self._idle.wait()  # items of the work before must not be reported to this one
                work = self._create_work()
                await work.start()
                self._on_started(work)
                failures = 0
                await self._serve(work)
            except Exception as error:
                trace = "".join(traceback.format_exception(error))
                log.warning("%s: failed: %s", self.name, error)
            finally:
                self._work = None
                self._recovered.set()  # or never: the next start recovers
                await self._stop(work)
            self._set_state(State.FAILED, trace)
            self.states.set_all(State.FAILED, trace)
            if not self._settings.restart_initial_ms:
                return
            longest_ms = max(self._settings.restart_max_ms, self._settings.restart_initial_ms)
            pause_ms = min(self._settings.restart_initial_ms << min(failures, 20), longest_ms)
            failures += 1
            await asyncio.sleep(pause_ms / 1000)
            self._set_state(State.RESTARTING)

    def _create_work(self) -> ConnectorWork:
        found = find_connector(self._config.get("connector.class", ""), self._config)
        context = RunContext(
            name=self.name,
            config=self._config,
            connector=found,
            services=self._services,
            states=self.states,
            on_work=lambda: self._executor.notify(),
            on_tasks=self._on_tasks,
            on_topic=self._on_topic,
            on_task_error=self._on_task_error,
        )
        return SinkWork(context) if issubclass(found, SinkConnector) else SourceWork(context)

    def _on_started(self, work: ConnectorWork) -> None:
        self._recovery.clear()
        self._work = work
        self._set_state(State.RUNNING)
        self.states.on_started()
        self._executor.notify()

    async def _serve(self, work: ConnectorWork) -> None:
        """Runs until the connector fails or is cancelled."""
        poll = asyncio.create_task(work.poll())
        try:
            while True:
                recovery = asyncio.create_task(self._recovery.wait())
                try:
                    await asyncio.wait({poll, recovery}, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    recovery.cancel()
                if poll.done():
                    poll.result()
                await work.recover()
                self._recovery.clear()
                self._recovered.set()
                self._executor.notify()
        finally:
            poll.cancel()
            await asyncio.gather(poll, return_exceptions=True)

    async def _stop(self, work: ConnectorWork | None) -> None:
        if work is None:
            return
        try:
            await work.stop()
        except Exception:
            log.exception("%s: stopping the connector failed", self.name)

    # Items

    @property
    def has_items_in_flight(self) -> bool:
        return not self._idle.is_set()

    def plan(self) -> list[WorkItem]:
        """Returns the items to run next. It fails the connector rather than to raise."""
        if self._work is None or self._is_ending or self._recovery.is_set():
            return []
        try:
            items = self._work.plan()
        except Exception as error:
            for task in range(len(self.states)):
                self._on_task_error(task, error)
            return []
        if items:
            self._idle.clear()
        return items

    async def on_reports(self, reports: Sequence[WorkReport]) -> None:
        """Commits what was written. Raises nothing."""
        work = self._work
        written = [report for report in reports if report.error is None]
        try:
            if work is None:
                return  # the connector has failed meanwhile
            await work.commit(written)
        except Exception as error:
            self._begin_recovery()
            for report in written:
                self._on_task_error(report.task, error)
        else:
            for report in written:
                self._log_errors(report.result.errors)
                if report.task < len(self.states):
                    self.states.on_success(report.task)
        finally:
            for report in reports:
                if report.error is not None:
                    self._on_task_error(report.task, report.error, report.trace)
            self._idle.set()

    def on_lost(self, trace: str | None = None) -> None:
        """The items in flight were lost with their query. With a trace, they have ended it."""
        if self._idle.is_set():
            return
        if self._work is not None and self._work.on_lost():
            self._begin_recovery()
        if trace is not None:
            for task in range(len(self.states)):
                self.states.on_failure(task, trace)
        self._idle.set()

    def _begin_recovery(self) -> None:
        self._recovered.clear()
        self._recovery.set()

    # Reporting

    def on_query_down(self, trace: str | None) -> None:
        """The query does not run. With a trace, it has failed several times."""
        if self._work is not None:
            self.states.on_query_down(trace)

    def on_query_up(self) -> None:
        if self._work is not None:
            self.states.on_query_up()

    def _on_task_error(self, task: int, error: Exception, trace: str | None = None) -> None:
        if task >= len(self.states):
            return
        if isinstance(error, RetriableError):
            pause_s = self.states.on_retriable_error(task)
            log.warning("%s-%d: is retried in %.1f s: %s", self.name, task, pause_s, error)
            return
        log.error("%s-%d: task failed: %s", self.name, task, error)
        self.states.on_failure(task, trace or "".join(traceback.format_exception(error)))

    def _on_tasks(self, count: int) -> None:
        self.states.resize(count)
        config = {**self._config, "task.class": self._config.get("connector.class", "")}
        self._listener.on_task_configs(self.name, [config] * count)

    def _on_topic(self, topic: str) -> None:
        if topic not in self._topics:
            self._topics.add(topic)
            self._listener.on_topic_used(self.name, topic)

    def _on_task_state(self, task: int, state: State, trace: str | None) -> None:
        self._listener.on_task_status(self.name, task, state, trace)

    def _set_state(self, state: State, trace: str | None = None) -> None:
        if state is not self._state or trace is not None:
            self._state = state
            self._listener.on_connector_status(self.name, state, trace)

    def _log_errors(self, errors: ErrorSummary) -> None:
        for line in errors.lines:
            log.error("%s", line)
        if errors.failed > len(errors.lines) and errors.lines:
            log.error("%s: %d records failed in all", self.name, errors.failed)


def _task_settings(config: Mapping[str, str], worker: Mapping[str, str]) -> TaskSettings:
    """Invalid settings fail the start of the connector, and are not used."""
    try:
        return task_settings(config, worker)
    except InvalidConfigError:
        return task_settings({}, worker)


def connector_class(config: Mapping[str, str]) -> type[Connector] | None:
    """Returns the class of a connector, or None if there is none: its start reports why."""
    with contextlib.suppress(Exception):
        return find_connector(config.get("connector.class", ""), config)
    return None
