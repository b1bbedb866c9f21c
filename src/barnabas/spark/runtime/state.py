"""The state of a supervised query."""

from __future__ import annotations

import enum
import traceback
from dataclasses import dataclass


class QueryState(enum.Enum):
    STARTING = "starting"
    """It is being started for the first time, or waits for its turn."""
    RUNNING = "running"
    FAILED = "failed"
    """It has ended with an error, and is started again after a backoff; or it did not stop in time,
    and is not started again."""
    RESTARTING = "restarting"
    """It is being started again after a failure, or waits for its turn."""
    STOPPED = "stopped"
    """It was stopped, or has ended without an error."""


@dataclass(slots=True, frozen=True)
class QueryStatus:
    name: str
    state: QueryState
    since_s: float
    """When the query came into this state, as a Unix time."""
    failures: int = 0
    """How often it has failed since it last ran for a while."""
    error: Exception | None = None
    """Why it has failed; None while it runs."""
    restart_at_s: float | None = None
    """When a failed query is started again, as a Unix time."""

    @property
    def trace(self) -> str | None:
        """Returns the last error with its traceback."""
        return None if self.error is None else "".join(traceback.format_exception(self.error))


def first_line(error: BaseException) -> str:
    """Returns what fits into a log line: Spark's errors contain the traces of other processes."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
