"""Everything that an item does becomes its report."""

import pickle

from tests.spark.runtime.items import (
    ExitProcess,
    RaiseError,
    RaiseUnpicklableError,
    ReturnContext,
    ReturnUnpicklable,
    ReturnValue,
)

from barnabas.spark.runtime.errors import WorkerLostError, WorkItemError
from barnabas.spark.runtime.work import WorkItem, WorkReport
from barnabas.spark.runtime.work_execution import load_report, pickle_item, run_item


def run(work: object, *, attempt: int = 0, max_attempts: int = 1) -> WorkReport:
    item = WorkItem("owner", 3, work)  # type: ignore[arg-type]
    pickled = pickle_item(item, index=0, batch=7, max_attempts=max_attempts)
    report = run_item(pickle.loads(pickle.dumps(pickled)), attempt)
    return load_report(pickle.loads(pickle.dumps(report)), pickled)


def test_a_result_is_reported_with_owner_task_and_attempt() -> None:
    assert run(ReturnValue({"rows": 5})) == WorkReport("owner", 3, 0, result={"rows": 5})
    report = run(ReturnContext(), attempt=1, max_attempts=2)
    assert (report.attempt, report.result[:2]) == (1, (7, 1))


def test_an_error_is_reported_with_its_traceback() -> None:
    report = run(RaiseError(KeyError("column")))
    assert isinstance(report.error, KeyError)
    assert report.error.args == ("column",)
    assert "items.py" in (report.trace or "")


def test_an_error_that_cannot_be_pickled_is_reported_with_its_text() -> None:
    report = run(RaiseUnpicklableError())
    assert isinstance(report.error, WorkItemError)
    assert str(report.error) == "UnpicklableError: 7: disk on fire"
    assert "raise UnpicklableError" in (report.trace or "")


def test_a_result_that_cannot_be_pickled_is_an_error() -> None:
    report = run(ReturnUnpicklable())
    assert isinstance(report.error, WorkItemError)
    assert str(report.error).startswith("the result cannot be pickled: ")


def test_an_item_that_exits_is_an_error() -> None:
    assert str(run(ExitProcess()).error) == "SystemExit: 3"


def test_the_last_attempt_reports_that_the_item_killed_the_others() -> None:
    report = run(ReturnValue(1), attempt=2, max_attempts=2)
    assert isinstance(report.error, WorkerLostError)
    assert "task 3 of owner, 2 times" in str(report.error)
