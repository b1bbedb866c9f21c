"""A work query on Spark runs items in parallel, reports all of them, and fails truthfully."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery
from tests.spark.runtime.directories import own_directories
from tests.spark.runtime.items import (
    KillWorker,
    RaiseError,
    RaiseUnpicklableError,
    ReturnContext,
    ReturnValue,
    WaitForFile,
)
from tests.spark.runtime.simulated_work import TIMEOUT_S, SimulatedWork
from tests.wait import wait_until

from barnabas.spark.runtime.errors import QueryError, StopTimeoutError, WorkItemError
from barnabas.spark.runtime.streaming_query import StreamingQueryDefinition
from barnabas.spark.runtime.work_query import SESSION_SETTINGS, WorkQuery

RUNNER = b"python_streaming_source_runner"


@pytest.fixture(scope="module")
def work() -> SimulatedWork:
    return SimulatedWork()


@pytest.fixture(scope="module")
def shared_query(spark: SparkSession, work: SimulatedWork) -> Iterator[WorkQuery]:
    query = WorkQuery(lambda: spark, "query", work.plan, work.on_batch)
    in_thread(query.start)  # as a supervisor does
    yield query
    query.stop(drain=False)


@pytest.fixture
def query(shared_query: WorkQuery, work: SimulatedWork) -> WorkQuery:
    """The query, started again if the test before ended it."""
    work.plan_error = work.commit_error = None
    work.drop()
    if not shared_query.is_running:
        shared_query.start()
    return shared_query


def test_items_of_a_batch_run_in_parallel_in_workers(
    work: SimulatedWork, query: WorkQuery, tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    reports = work.run(WaitForFile(first, second), WaitForFile(second, first))
    assert [report.result for report in reports] == ["ended", "ended"]
    batch, attempt, pid = work.run(ReturnContext())[0].result
    assert (batch, attempt) == (work.batches[-1], 0)
    assert pid != os.getpid()


def test_errors_are_reported_beside_results(work: SimulatedWork, query: WorkQuery) -> None:
    errors = RaiseError(KeyError("id")), RaiseUnpicklableError(), lambda _: None
    reports = work.run(ReturnValue("a"), *errors, ReturnValue("b"))
    assert [report.result for report in reports] == ["a", None, None, None, "b"]
    assert [report.owner for report in reports] == ["0", "1", "2", "3", "4"]
    assert isinstance(reports[1].error, KeyError)
    assert "items.py" in (reports[1].trace or "")
    assert isinstance(reports[2].error, WorkItemError)
    assert "the work item cannot be pickled" in str(reports[3].error)


def test_an_error_of_the_planner_fails_the_query(work: SimulatedWork, query: WorkQuery) -> None:
    work.plan_error = LookupError("no offsets")
    assert query.wait_for_end() is work.plan_error
    assert not query.is_running


def test_an_error_of_the_committer_fails_the_query(work: SimulatedWork, query: WorkQuery) -> None:
    work.commit_error = PermissionError("not authorized")
    work.add(ReturnValue(1))
    assert query.wait_for_end() is work.commit_error
    work.commit_error = None
    query.start()
    assert work.reports()[0].result == 1  # planned again


def test_a_killed_runner_fails_the_query(work: SimulatedWork, query: WorkQuery) -> None:
    work.run(ReturnValue("running"))
    (runner,) = runners()
    os.kill(runner, signal.SIGKILL)
    error = query.wait_for_end()
    assert error is not None
    assert not query.is_running
    query.start()
    assert work.run(ReturnValue("again"))[0].result == "again"


def test_a_killed_worker_fails_the_query_if_spark_does_not_repeat_tasks(
    work: SimulatedWork, query: WorkQuery
) -> None:
    work.add(KillWorker(None))
    assert "Python worker exited unexpectedly" in str(query.wait_for_end())
    work.drop()


def test_a_drained_query_reports_the_batch_that_runs(
    work: SimulatedWork, query: WorkQuery, tmp_path: Path
) -> None:
    started, may_end = tmp_path / "started", tmp_path / "may_end"
    work.add(WaitForFile(started, may_end))
    wait_until(started.exists)
    stopping = threading.Thread(target=query.stop)
    stopping.start()
    may_end.touch()
    stopping.join()
    assert work.reports()[0].result == "ended"
    assert query.wait_for_end() is None


def test_a_stopped_query_leaves_no_processes_and_files(
    work: SimulatedWork, query: WorkQuery, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    work.add(WaitForFile(started, tmp_path / "never"))
    worker = wait_until(lambda: started.exists() and started.read_text())
    directories = own_directories()
    assert directories
    query.stop(drain=False)
    assert not [path for path in directories if path.exists()]
    wait_until(lambda: not runners())
    wait_until(lambda: not command_of(Path("/proc", worker)))


def test_a_committer_that_does_not_return_is_reported_and_leaves_no_files(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SESSION_SETTINGS, "spark.sql.streaming.stopTimeout", "100")
    work, may_return, is_called = SimulatedWork(), threading.Event(), threading.Event()

    def on_batch(*_: object) -> None:
        is_called.set()
        assert may_return.wait(TIMEOUT_S)

    query = WorkQuery(lambda: spark, "blocked", work.plan, on_batch)
    others = own_directories()
    query.start()
    (directory,) = own_directories() - others
    work.add(ReturnValue(1))
    assert is_called.wait(TIMEOUT_S)
    with pytest.raises(StopTimeoutError):
        query.stop(timeout_s=0.1)
    assert query.is_running
    may_return.set()
    assert query.wait_for_end() is None
    assert not directory.exists()


def test_a_function_that_returns_a_query_can_be_started_stopped_and_fail(
    spark: SparkSession, tmp_path: Path
) -> None:
    def build(session: SparkSession) -> StreamingQuery:
        return (
            session.readStream.format("rate")
            .load()
            .writeStream.format("noop")
            .option("checkpointLocation", str(tmp_path))
            .start()
        )

    definition = StreamingQueryDefinition(lambda: spark, "rate", build)
    in_thread(definition.start)
    with pytest.raises(QueryError, match="already running"):
        definition.start()
    definition.stop(drain=True)
    assert definition.wait_for_end() is None
    definition.start()
    definition.stop(drain=False)


def in_thread(function: "object") -> None:
    thread = threading.Thread(target=function)  # type: ignore[arg-type]
    thread.start()
    thread.join()


def runners() -> list[int]:
    """Returns the processes of this test's Spark that run sources."""
    jvm = SparkSession.getActiveSession()
    assert jvm is not None
    root = jvm.sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    return [
        int(process.name)
        for process in Path("/proc").glob("[0-9]*")
        if RUNNER in command_of(process) and parent_of(process) == root
    ]


def command_of(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes()
    except OSError:
        return b""


def parent_of(process: Path) -> int | None:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None
