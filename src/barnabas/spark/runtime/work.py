"""Work items: what a work query runs on Spark, and what it reports.

A work query is a streaming query whose micro-batches are plans of work items. Each item runs as one
task, in a Python worker on an executor, where it reads and writes by itself. No data of it goes
through Spark; only its report does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, frozen=True)
class WorkItem:
    """One task of a micro-batch. It is pickled."""

    owner: str
    """Whose item it is, for example the name of a connector."""
    task: int
    run: Callable[[WorkContext], Any]
    """Called in the task; an object of a module that executors have. What it returns is pickled."""


@dataclass(slots=True, frozen=True)
class WorkContext:
    """Where an item runs."""

    batch: int
    attempt: int


@dataclass(slots=True, frozen=True)
class WorkReport:
    """What became of an item: either the result or the error is set."""

    owner: str
    task: int
    attempt: int
    result: Any = None
    error: Exception | None = None
    trace: str | None = None
    """The traceback of the error."""
