"""A streaming query that a function builds, for a supervisor."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.spark.runtime.errors import QueryError
from barnabas.spark.runtime.query_handle import QueryHandle, activate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


class StreamingQueryDefinition:
    """Builds the query at each start. Its checkpoint is the function's own."""

    def __init__(
        self,
        session: Callable[[], SparkSession],
        name: str,
        build: Callable[[SparkSession], StreamingQuery],
    ) -> None:
        """Both functions are called in the thread of `start`."""
        self._session = session
        self._name = name
        self._build = build
        self._handle: QueryHandle | None = None
        self._is_stopped = False

    @property
    def name(self) -> str:
        return self._name

    def start(self) -> None:
        """Start the query, for the first time or after it has ended."""
        if self._handle is not None and self._handle.is_active():
            raise QueryError(f"query {self._name} is already running")
        session = self._session()
        activate(session)
        self._handle = QueryHandle(session, self._build(session))
        self._is_stopped = False

    def stop(self, *, drain: bool = True, timeout_s: float = 30.0) -> None:
        """Stop the query; with `drain` after the micro-batch that is running, within the timeout.

        A micro-batch that begins at that moment is repeated at the next start.
        """
        if self._handle is None:
            return
        if drain:
            self._handle.wait_until_idle(timeout_s)
        self._is_stopped = True
        self._handle.stop()

    def wait_for_end(self) -> Exception | None:
        """Waits until it has ended. Returns why, or None if it was stopped or is complete."""
        if self._handle is None:
            return None
        error = self._handle.wait_for_end()
        return None if self._is_stopped else error
