"""A running streaming query of Spark, and whether it still runs."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import StreamingQueryException

from barnabas.spark.runtime.errors import QueryError, SparkDiedError, StopTimeoutError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

CHECK_INTERVAL_S = 1
"""How often a query looks whether its session was stopped, of which Spark does not notify it. It is
notified at once of its own end, and of that of the JVM."""

STOP_TIMEOUT_MS = 10_000
"""How long Spark waits for the thread of a query that it stops."""

_DRAIN_POLL_S = 0.05
_PROCESSING = "Processing new data"
_CONNECTION_ERRORS = (Py4JError, OSError, EOFError)
"""What calls raise when the JVM has ended."""


class QueryHandle:
    """Call its methods from threads that may block."""

    def __init__(self, session: SparkSession, query: StreamingQuery) -> None:
        self._query = query
        self._context = session.sparkContext
        self._java_context = session.sparkContext._jsc.sc()

    def wait_for_end(self) -> Exception | None:
        """Waits until the query, its session or the JVM has ended. Returns an error, if any."""
        try:
            while not self._query.awaitTermination(CHECK_INTERVAL_S):
                if self._is_context_stopped():
                    with contextlib.suppress(QueryError):
                        self.stop()
                    return SparkDiedError("Spark's session was stopped")
        except StreamingQueryException as error:
            return error
        except _CONNECTION_ERRORS as error:
            return _connection_error(error)
        return SparkDiedError("Spark's session was stopped") if self._is_context_stopped() else None

    def is_active(self) -> bool:
        try:
            return bool(self._query.isActive) and not self._is_context_stopped()
        except _CONNECTION_ERRORS:
            return False

    def wait_until_idle(self, timeout_s: float) -> None:
        """Waits until no micro-batch runs. The next one may begin at any time."""
        deadline_s = time.monotonic() + timeout_s
        with contextlib.suppress(*_CONNECTION_ERRORS):
            while self._query.status["message"] == _PROCESSING and self.is_active():
                if time.monotonic() >= deadline_s:
                    return
                time.sleep(_DRAIN_POLL_S)

    def stop(self) -> None:
        """Stop the query, in the middle of a micro-batch if one runs.

        Raises StopTimeoutError if its thread does not end.
        """
        try:
            self._query.stop()
        except _CONNECTION_ERRORS as error:
            if "TimeoutException" in str(error):
                raise StopTimeoutError(
                    f"query {self._query.name} has not stopped within {STOP_TIMEOUT_MS} ms"
                ) from error
        except Exception as error:  # PySpark converts some errors of the JVM
            raise QueryError(f"query {self._query.name} did not stop: {error}") from error

    def _is_context_stopped(self) -> bool:
        return self._context._jsc is None or bool(self._java_context.isStopped())


def _connection_error(error: Exception) -> SparkDiedError:
    died = SparkDiedError("Spark's JVM has ended")
    died.__cause__ = error
    return died


def activate(session: SparkSession) -> None:
    """Make it the session of this thread. Without one, Spark does not find Python data sources."""
    jvm = session._jvm
    assert jvm is not None
    sessions = getattr(jvm, "org.apache.spark.sql.classic.SparkSession")
    sessions.setActiveSession(session._jsparkSession)
