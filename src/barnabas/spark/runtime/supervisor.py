"""Starts streaming queries, starts them again when they fail, and always knows which ones run.

A query blocks, so each runs in a thread of its own: first `start`, then `wait_for_end`. The
supervisor's state is owned by the event loop, and read there without waiting.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from barnabas.client.backoff import Backoff
from barnabas.spark.runtime.errors import QueryError, StopTimeoutError
from barnabas.spark.runtime.state import QueryState, QueryStatus, first_line

log = logging.getLogger(__name__)

OnChange = Callable[[QueryStatus], None]
Wait = Callable[[asyncio.Event, float], Awaitable[None]]

_NO_SPREAD = (1.0, 1.0)


class SupervisedQuery(Protocol):
    """`WorkQuery`, `InlineWorkQuery` or `StreamingQueryDefinition`. All methods may block."""

    @property
    def name(self) -> str: ...

    def start(self) -> None:
        """Start it, for the first time or after it has ended. Raises if it does not start."""

    def stop(self, *, drain: bool, timeout_s: float) -> None:
        """Stop it; with `drain` after the micro-batch that is running, within the timeout."""

    def wait_for_end(self) -> Exception | None:
        """Waits until it has ended. Returns why, or None if it was stopped or is complete."""


@dataclass(slots=True, frozen=True)
class RestartSettings:
    """When a query that failed is started again."""

    first_backoff_s: float = 1.0
    max_backoff_s: float = 60.0
    reset_after_s: float = 60.0
    """After which time without a failure the next backoff is the first again."""
    stop_margin_s: float = 20.0
    """How long a stop may take beyond its timeout, before it is reported as failed."""


class QuerySupervisor:
    """Use it from one event loop."""

    def __init__(
        self,
        settings: RestartSettings | None = None,
        *,
        on_change: OnChange = lambda status: None,
        clock: Callable[[], float] = time.time,
        wait: Wait | None = None,
    ) -> None:
        """`on_change` is called on the loop with each new status.

        `clock` returns the Unix time. `wait` waits for an event for at most some seconds.
        """
        self._context = _Context(
            settings or RestartSettings(), on_change, clock, wait or _wait, asyncio.Lock()
        )
        self._queries: dict[str, _Supervision] = {}

    async def start(self, query: SupervisedQuery) -> QueryStatus:
        """Starts a query, and returns its status when the first attempt has succeeded or failed.

        Raises QueryError if a query of this name is not stopped.
        """
        supervision = self._queries.get(query.name)
        if supervision is not None and not supervision.is_over:
            raise QueryError(f"query {query.name} is already supervised")
        supervision = self._queries[query.name] = _Supervision(query, self._context)
        await supervision.wait_for_first_attempt()
        return supervision.status

    async def stop(self, name: str, *, drain: bool = True, timeout_s: float = 30.0) -> None:
        """Stops a query; with `drain` after the micro-batch that is running, within the timeout.

        Raises StopTimeoutError if the query may still run.
        """
        await self._queries[name].stop(drain=drain, timeout_s=timeout_s)

    async def restart(
        self, name: str, *, drain: bool = True, timeout_s: float = 30.0
    ) -> QueryStatus:
        """Stops a query and starts it at once, also if it waits for a backoff."""
        await self.stop(name, drain=drain, timeout_s=timeout_s)
        return await self.start(self._queries[name].query)

    async def remove(self, name: str, *, drain: bool = True, timeout_s: float = 30.0) -> None:
        """Stops a query, and forgets it."""
        await self.stop(name, drain=drain, timeout_s=timeout_s)
        del self._queries[name]

    def status(self, name: str) -> QueryStatus:
        return self._queries[name].status

    def statuses(self) -> list[QueryStatus]:
        return [supervision.status for supervision in self._queries.values()]

    async def close(self, *, drain: bool = True, timeout_s: float = 30.0) -> None:
        """Stops all queries at the same time. Logs those that do not stop."""
        stops = [self.stop(name, drain=drain, timeout_s=timeout_s) for name in self._queries]
        for error in await asyncio.gather(*stops, return_exceptions=True):
            if isinstance(error, BaseException):
                log.warning("%s", first_line(error))


@dataclass(slots=True, frozen=True)
class _Context:
    settings: RestartSettings
    on_change: OnChange
    clock: Callable[[], float]
    wait: Wait
    turn: asyncio.Lock
    """Queries start one after another: each start takes most of a core."""


class _Supervision:
    """Supervises one query until it is stopped, in one task."""

    def __init__(self, query: SupervisedQuery, context: _Context) -> None:
        self.query = query
        self.status = QueryStatus(query.name, QueryState.STARTING, context.clock())
        self._context = context
        settings = context.settings
        self._backoff = Backoff(
            settings.first_backoff_s * 1000, settings.max_backoff_s * 1000, spread=_NO_SPREAD
        )
        self._is_attempted = asyncio.Event()
        self._is_stopping = asyncio.Event()
        self._stop_query: Callable[[], None] = lambda: query.stop(drain=False, timeout_s=0)
        self._stop_error: Exception | None = None
        self._notify()
        self._task = asyncio.create_task(self._supervise(), name=f"supervisor of {query.name}")

    @property
    def is_over(self) -> bool:
        return self._task.done()

    async def wait_for_first_attempt(self) -> None:
        await self._is_attempted.wait()

    async def stop(self, *, drain: bool, timeout_s: float) -> None:
        if not self._is_stopping.is_set():
            self._stop_query = lambda: self.query.stop(drain=drain, timeout_s=timeout_s)
            self._is_stopping.set()
        deadline_s = timeout_s + self._context.settings.stop_margin_s
        try:
            await asyncio.wait_for(asyncio.shield(self._task), deadline_s)
        except TimeoutError:
            error = StopTimeoutError(f"query {self.query.name} has not stopped in {deadline_s:g} s")
            self._change(QueryState.FAILED, error)
            raise error from None
        if self._stop_error is not None:
            raise self._stop_error

    async def _supervise(self) -> None:
        while not self._is_stopping.is_set():
            error = await self._run()
            if error is None or self._is_stopping.is_set():
                break
            await self._back_off(error)
        if self._stop_error is None:
            self._change(QueryState.STOPPED)
        else:
            self._change(QueryState.FAILED, self._stop_error)
        self._is_attempted.set()

    async def _run(self) -> Exception | None:
        """Starts the query when it is its turn, and waits for its end. Returns why it ended."""
        async with self._context.turn:
            if self._is_stopping.is_set():
                return None
            thread = _QueryThread(self.query)
            error = await thread.started
        if error is not None:
            return error
        self._change(QueryState.RUNNING)
        self._is_attempted.set()
        started_at_s = self.status.since_s
        await self._wait_for_end_or_stop(thread.ended)
        if not thread.ended.done():
            self._stop_error = await _in_thread(self._stop_query)
            if self._stop_error is not None:
                return None
        error = await thread.ended
        if self._context.clock() - started_at_s >= self._context.settings.reset_after_s:
            self._backoff.reset()
        return error

    async def _wait_for_end_or_stop(self, ended: asyncio.Future[Exception | None]) -> None:
        stopping = asyncio.create_task(self._is_stopping.wait())
        waiting: set[asyncio.Future[Any]] = {ended, stopping}
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopping.cancel()

    async def _back_off(self, error: Exception) -> None:
        pause_s = self._backoff.next_ms() / 1000
        self._change(QueryState.FAILED, error, restart_at_s=self._context.clock() + pause_s)
        log.warning(
            "query %s failed, and is started again in %g s: %s",
            self.query.name,
            pause_s,
            first_line(error),
        )
        self._is_attempted.set()
        await self._context.wait(self._is_stopping, pause_s)
        if not self._is_stopping.is_set():
            self._change(QueryState.RESTARTING, error)

    def _change(
        self, state: QueryState, error: Exception | None = None, restart_at_s: float | None = None
    ) -> None:
        now_s, failures = self._context.clock(), self._backoff.failures
        self.status = QueryStatus(self.query.name, state, now_s, failures, error, restart_at_s)
        self._notify()

    def _notify(self) -> None:
        try:
            self._context.on_change(self.status)
        except Exception:
            log.exception("the listener of query %s has failed", self.query.name)


class _QueryThread:
    """Runs a query in a thread. It does not keep the process from ending."""

    def __init__(self, query: SupervisedQuery) -> None:
        loop = asyncio.get_running_loop()
        self.started: asyncio.Future[Exception | None] = loop.create_future()
        self.ended: asyncio.Future[Exception | None] = loop.create_future()

        def work() -> None:
            error = _error_of(query.start)
            _resolve(loop, self.started, error)
            if error is None:
                _resolve(loop, self.ended, _wait_for_end(query))

        threading.Thread(target=work, name=f"query {query.name}", daemon=True).start()


async def _in_thread(function: Callable[[], None]) -> Exception | None:
    """Returns what the function has raised."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Exception | None] = loop.create_future()
    work = threading.Thread(target=lambda: _resolve(loop, result, _error_of(function)), daemon=True)
    work.start()
    return await result


def _wait_for_end(query: SupervisedQuery) -> Exception | None:
    try:
        return query.wait_for_end()
    except Exception as error:
        return error


def _error_of(function: Callable[[], None]) -> Exception | None:
    try:
        function()
    except Exception as error:
        return error
    return None


def _resolve(
    loop: asyncio.AbstractEventLoop,
    future: asyncio.Future[Exception | None],
    result: Exception | None,
) -> None:
    def resolve() -> None:
        if not future.done():  # it is cancelled when the loop ends
            future.set_result(result)

    with contextlib.suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(resolve)


async def _wait(event: asyncio.Event, timeout_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), timeout_s)
