"""Runs a work item in a task: everything that it raises becomes its report."""

from __future__ import annotations

import pickle
import traceback
from dataclasses import dataclass

from barnabas.spark.runtime.errors import WorkerLostError, WorkItemError
from barnabas.spark.runtime.work import WorkContext, WorkItem, WorkReport


@dataclass(slots=True, frozen=True)
class PickledItem:
    """An item on its way to a task. Processes between need not import what it runs."""

    index: int
    """The index of the item in its batch."""
    owner: str
    task: int
    batch: int
    max_attempts: int
    """How often the item may run. Spark starts one attempt more, which reports the loss."""
    content: bytes


@dataclass(slots=True, frozen=True)
class PickledReport:
    """A report on its way to the driver, without objects of other modules."""

    index: int
    attempt: int
    content: bytes
    """The result, or the error."""
    trace: str | None
    """The traceback of the error; None if `content` is a result."""


def pickle_item(item: WorkItem, *, index: int, batch: int, max_attempts: int) -> PickledItem:
    """Raises what pickle raises."""
    content = pickle.dumps(item.run, -1)
    return PickledItem(index, item.owner, item.task, batch, max_attempts, content)


def run_item(item: PickledItem, attempt: int) -> PickledReport:
    """Runs the item. Raises nothing but KeyboardInterrupt."""
    try:
        if attempt >= item.max_attempts:
            raise WorkerLostError(
                f"the Python worker or the executor died each time it ran task {item.task} of"
                f" {item.owner}, {attempt} times: it may have used too much memory, or crashed in a"
                " native library"
            )
        result = pickle.loads(item.content)(WorkContext(item.batch, attempt))
    except (Exception, SystemExit) as error:
        return _error_report(item.index, attempt, error)
    try:
        return PickledReport(item.index, attempt, pickle.dumps(result, -1), None)
    except Exception as error:
        unpicklable = WorkItemError(f"the result cannot be pickled: {error}")
        unpicklable.__cause__ = error
        return _error_report(item.index, attempt, unpicklable)


def load_report(report: PickledReport, item: PickledItem) -> WorkReport:
    """Returns the report of the item. Content that cannot be unpickled becomes its error."""
    try:
        content = pickle.loads(report.content)
    except Exception as error:
        unloadable = WorkItemError(f"the result cannot be unpickled: {_describe(error)}")
        trace = report.trace or _format(error)
        return WorkReport(item.owner, item.task, report.attempt, None, unloadable, trace)
    if report.trace is None:
        return WorkReport(item.owner, item.task, report.attempt, result=content)
    return WorkReport(item.owner, item.task, report.attempt, error=content, trace=report.trace)


def unpicklable_item_report(item: WorkItem, error: Exception) -> WorkReport:
    """Returns the report of an item that could not be sent to a task."""
    unpicklable = WorkItemError(f"the work item cannot be pickled: {_describe(error)}")
    return WorkReport(item.owner, item.task, 0, error=unpicklable, trace=_format(error))


def _error_report(index: int, attempt: int, error: BaseException) -> PickledReport:
    trace = _format(error)
    try:
        content = pickle.dumps(error if isinstance(error, Exception) else _plain(error), -1)
        pickle.loads(content)  # an exception may pickle, and then not load without its arguments
    except Exception:
        content = pickle.dumps(_plain(error), -1)
    return PickledReport(index, attempt, content, trace)


def _plain(error: BaseException) -> WorkItemError:
    return WorkItemError(_describe(error))


def _describe(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "(its text raises an error)"
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _format(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
