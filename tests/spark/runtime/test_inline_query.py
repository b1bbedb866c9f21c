"""A work query in a thread keeps the promises of one on Spark."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.spark.runtime.items import RaiseError, ReturnContext, ReturnValue, WaitForFile
from tests.spark.runtime.simulated_work import SimulatedWork
from tests.wait import wait_until

from barnabas.spark.runtime.errors import QueryError, StopTimeoutError, WorkItemError
from barnabas.spark.runtime.inline_query import InlineWorkQuery


@pytest.fixture
def work() -> SimulatedWork:
    return SimulatedWork()


@pytest.fixture
def query(work: SimulatedWork) -> Iterator[InlineWorkQuery]:
    query = InlineWorkQuery("query", work.plan, work.on_batch, idle_wait_s=0.01)
    query.start()
    yield query
    query.stop(drain=False)


def test_items_run_and_are_reported_in_order(work: SimulatedWork, query: InlineWorkQuery) -> None:
    reports = work.run(ReturnValue("a"), RaiseError(ValueError("bad")), ReturnValue("c"))
    assert [(report.owner, report.task, report.result) for report in reports] == [
        ("0", 0, "a"),
        ("1", 1, None),
        ("2", 2, "c"),
    ]
    assert isinstance(reports[1].error, ValueError)


def test_an_item_that_cannot_be_pickled_fails_alone(
    work: SimulatedWork, query: InlineWorkQuery
) -> None:
    reports = work.run(ReturnValue(1), lambda _: None, ReturnValue(3))
    assert [report.result for report in reports] == [1, None, 3]
    assert isinstance(reports[1].error, WorkItemError)
    assert "the work item cannot be pickled" in str(reports[1].error)
    (report,) = work.run(lambda _: None)
    assert report.error is not None


def test_batches_are_numbered_across_restarts(work: SimulatedWork, query: InlineWorkQuery) -> None:
    assert work.run(ReturnContext())[0].result[0] == 0
    query.stop()
    query.start()
    assert work.run(ReturnContext())[0].result[0] == 1
    assert work.batches == [0, 1]


def test_an_error_of_the_planner_ends_the_query(
    work: SimulatedWork, query: InlineWorkQuery
) -> None:
    work.plan_error = LookupError("no offsets")
    assert query.wait_for_end() is work.plan_error


def test_an_error_of_the_committer_ends_the_query(
    work: SimulatedWork, query: InlineWorkQuery
) -> None:
    work.commit_error = PermissionError("not authorized")
    work.add(ReturnValue(1))
    assert query.wait_for_end() is work.commit_error
    work.commit_error = None
    query.start()
    assert work.reports()[0].result == 1  # planned again


def test_a_drained_query_reports_the_batch_that_runs_and_plans_no_other(
    work: SimulatedWork, query: InlineWorkQuery, tmp_path: Path
) -> None:
    started, may_end = tmp_path / "started", tmp_path / "may_end"
    work.add(WaitForFile(started, may_end))
    work.add(ReturnValue("next"))
    wait_until(started.exists)
    stopping = threading.Thread(target=query.stop)
    stopping.start()
    may_end.touch()
    stopping.join()
    assert work.reports()[0].result == "ended"
    assert query.wait_for_end() is None
    assert work.is_all_taken


def test_a_query_that_is_stopped_without_draining_reports_nothing_more(
    work: SimulatedWork, query: InlineWorkQuery, tmp_path: Path
) -> None:
    started, may_end = tmp_path / "started", tmp_path / "may_end"
    work.add(WaitForFile(started, may_end))
    wait_until(started.exists)
    query.stop(drain=False)
    assert query.wait_for_end() is None
    assert work.batches == []
    may_end.touch()
    query.start()
    assert work.reports()[0].result == "ended"  # planned again
    assert work.batches == [1]


def test_a_committer_that_does_not_return_is_reported() -> None:
    work, may_return, is_called = SimulatedWork(), threading.Event(), threading.Event()

    def on_batch(*_: object) -> None:
        is_called.set()
        assert may_return.wait(60)

    query = InlineWorkQuery("query", work.plan, on_batch, idle_wait_s=0.01)
    query.start()
    work.add(ReturnValue(1))
    assert is_called.wait(60)
    with pytest.raises(StopTimeoutError, match="the committer of query query"):
        query.stop(timeout_s=0.01)
    may_return.set()


def test_a_running_query_is_not_started_twice(query: InlineWorkQuery) -> None:
    with pytest.raises(QueryError, match="already running"):
        query.start()
