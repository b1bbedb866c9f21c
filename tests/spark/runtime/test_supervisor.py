"""A supervisor knows which queries run, starts failed ones again, and stops them."""

import asyncio
import threading
from collections.abc import Awaitable, Callable

import pytest
from tests.wait import async_wait_until

from barnabas.spark.runtime.errors import QueryError, StopTimeoutError
from barnabas.spark.runtime.state import QueryState, QueryStatus
from barnabas.spark.runtime.supervisor import QuerySupervisor, RestartSettings

DEADLINE_S = 30.0


class SimulatedQuery:
    """Runs until the test ends it."""

    def __init__(self, name: str = "query", start_errors: list[Exception] | None = None) -> None:
        self.name = name
        self.starts = 0
        self.stops: list[bool] = []
        self.may_start = threading.Event()
        self.may_start.set()
        self.may_stop = threading.Event()
        self.may_stop.set()
        self._start_errors = start_errors or []
        self._ended = threading.Event()
        self._error: Exception | None = None

    def start(self) -> None:
        self.starts += 1
        assert self.may_start.wait(DEADLINE_S)
        if self._start_errors:
            raise self._start_errors.pop(0)
        self._ended.clear()

    def stop(self, *, drain: bool, timeout_s: float) -> None:
        self.stops.append(drain)
        assert self.may_stop.wait(DEADLINE_S)
        self._ended.set()

    def wait_for_end(self) -> Exception | None:
        self._ended.wait()
        return self._error

    def end(self, error: Exception | None) -> None:
        self._error = error
        self._ended.set()


class SimulatedTime:
    """Pauses end at once, and move the clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.pauses: list[float] = []

    def clock(self) -> float:
        return self.now_s

    async def wait(self, event: asyncio.Event, timeout_s: float) -> None:
        self.pauses.append(timeout_s)
        self.now_s += timeout_s
        await asyncio.sleep(0)


def run(test: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), DEADLINE_S))  # type: ignore[arg-type]


def test_a_query_is_running_once_it_has_started_and_stopped_once_it_has_ended() -> None:
    states: list[QueryState] = []

    async def scenario() -> None:
        supervisor = QuerySupervisor(on_change=lambda status: states.append(status.state))
        query = SimulatedQuery()
        assert (await supervisor.start(query)).state is QueryState.RUNNING
        await supervisor.stop("query", drain=True)
        assert query.stops == [True]
        assert supervisor.status("query").state is QueryState.STOPPED

    run(scenario)
    assert states == [QueryState.STARTING, QueryState.RUNNING, QueryState.STOPPED]


def test_a_failed_query_has_the_trace_and_is_restarted_after_backoffs_that_double() -> None:
    time, changes = SimulatedTime(), list[QueryStatus]()

    async def scenario() -> None:
        supervisor = QuerySupervisor(on_change=changes.append, clock=time.clock, wait=time.wait)
        query = SimulatedQuery(start_errors=[ValueError(f"error {n}") for n in range(8)])
        status = await supervisor.start(query)
        assert status.state is QueryState.FAILED
        assert "ValueError: error 0" in (status.trace or "")
        assert "raise self._start_errors" in (status.trace or "")
        assert status.restart_at_s == 1.0
        await async_wait_until(lambda: supervisor.status("query").state is QueryState.RUNNING)
        assert supervisor.status("query").error is None
        assert supervisor.status("query").failures == 8
        await supervisor.close()

    run(scenario)
    assert time.pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    states = [status.state for status in changes]
    assert states[:5] == [
        QueryState.STARTING,
        QueryState.FAILED,
        QueryState.RESTARTING,
        QueryState.FAILED,
        QueryState.RESTARTING,
    ]


def test_the_backoff_begins_again_after_the_query_ran_for_a_while() -> None:
    time = SimulatedTime()

    async def scenario() -> None:
        supervisor = QuerySupervisor(clock=time.clock, wait=time.wait)
        query = SimulatedQuery()
        await supervisor.start(query)
        for ran_for_s in (10.0, 10.0, 60.0, 10.0):
            starts = query.starts
            time.now_s += ran_for_s
            query.end(ConnectionError("lost"))
            await async_wait_until(lambda starts=starts: query.starts > starts)  # type: ignore[misc]
            await async_wait_until(lambda: supervisor.status("query").state is QueryState.RUNNING)
        await supervisor.close()

    run(scenario)
    assert time.pauses == [1, 2, 1, 2]


def test_a_query_that_is_complete_is_not_restarted() -> None:
    async def scenario() -> None:
        supervisor = QuerySupervisor()
        query = SimulatedQuery()
        await supervisor.start(query)
        query.end(None)
        await async_wait_until(lambda: supervisor.status("query").state is QueryState.STOPPED)
        assert query.starts == 1

    run(scenario)


def test_a_stop_ends_a_backoff() -> None:
    async def scenario() -> None:
        supervisor = QuerySupervisor(RestartSettings(first_backoff_s=3600, max_backoff_s=3600))
        await supervisor.start(SimulatedQuery(start_errors=[ValueError()]))
        await supervisor.stop("query")
        assert supervisor.status("query").state is QueryState.STOPPED

    run(scenario)


def test_a_restart_does_not_wait_for_the_backoff() -> None:
    async def scenario() -> None:
        supervisor = QuerySupervisor(RestartSettings(first_backoff_s=3600, max_backoff_s=3600))
        await supervisor.start(SimulatedQuery(start_errors=[ValueError()]))
        assert (await supervisor.restart("query")).state is QueryState.RUNNING
        await supervisor.close()

    run(scenario)


def test_queries_start_one_after_another() -> None:
    async def scenario() -> None:
        supervisor = QuerySupervisor()
        first, second = SimulatedQuery("first"), SimulatedQuery("second")
        first.may_start.clear()
        starts = [asyncio.create_task(supervisor.start(query)) for query in (first, second)]
        await async_wait_until(lambda: first.starts)
        assert second.starts == 0
        assert supervisor.status("second").state is QueryState.STARTING
        first.may_start.set()
        assert [(await start).state for start in starts] == [QueryState.RUNNING] * 2
        await supervisor.close()

    run(scenario)


def test_a_query_that_waits_for_its_turn_is_stopped_without_a_start() -> None:
    async def scenario() -> None:
        supervisor = QuerySupervisor()
        first, second = SimulatedQuery("first"), SimulatedQuery("second")
        first.may_start.clear()
        starts = [asyncio.create_task(supervisor.start(query)) for query in (first, second)]
        await async_wait_until(lambda: first.starts)
        stop = asyncio.create_task(supervisor.stop("second"))
        await asyncio.sleep(0)
        first.may_start.set()
        await stop
        assert second.starts == 0
        assert [(await start).state for start in starts] == [QueryState.RUNNING, QueryState.STOPPED]
        await supervisor.close()

    run(scenario)


def test_a_query_that_does_not_stop_in_time_is_reported_as_failed() -> None:
    async def scenario() -> None:
        supervisor = QuerySupervisor(RestartSettings(stop_margin_s=0))
        query = SimulatedQuery()
        await supervisor.start(query)
        query.may_stop.clear()
        with pytest.raises(StopTimeoutError, match="query query has not stopped"):
            await supervisor.stop("query", timeout_s=0.01)
        assert supervisor.status("query").state is QueryState.FAILED
        with pytest.raises(QueryError, match="already supervised"):
            await supervisor.start(query)
        query.may_stop.set()
        await async_wait_until(lambda: supervisor.status("query").state is QueryState.STOPPED)

    run(scenario)


def test_a_listener_that_raises_does_not_disturb_the_query() -> None:
    def raising(_: QueryStatus) -> None:
        raise ValueError

    async def scenario() -> None:
        supervisor = QuerySupervisor(on_change=raising)
        assert (await supervisor.start(SimulatedQuery())).state is QueryState.RUNNING
        await supervisor.remove("query")
        assert supervisor.statuses() == []

    run(scenario)
