"""A streaming query whose micro-batches are plans of work items."""

from __future__ import annotations

import pickle
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.spark.runtime.errors import QueryError, StopTimeoutError
from barnabas.spark.runtime.planner_server import PlannerServer
from barnabas.spark.runtime.query_handle import STOP_TIMEOUT_MS, QueryHandle, activate
from barnabas.spark.runtime.temporary_directory import LockedDirectory, fast_folder
from barnabas.spark.runtime.work_run import OnBatch, Planner, WorkCallbacks, WorkRun
from barnabas.spark.runtime.work_source import DIRECTORY_OPTION, FORMAT, SCHEMA, WorkDataSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

IDLE_WAIT_S = 2.0
"""How long the planner may wait for work: while there is none, Spark asks this often."""

STOP_TIMEOUT_S = 30.0

SESSION_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.streaming.stopTimeout": str(STOP_TIMEOUT_MS),
}
"""Settings of the session that each query has for itself: its plan is always the same, and its
checkpoint is never read."""

_LOCAL_MASTER = re.compile(r"local(\[[^,\]]*(,\s*(?P<max_failures>\d+)\s*)?\])?")


class WorkQuery:
    """Runs work items on Spark.

    The planner and the committer are called one at a time, in threads of this process. Items of a
    micro-batch run in parallel. If an item raises, its report has the error. If it kills its
    worker, Spark runs it again, and the last attempt that Spark allows reports WorkerLostError
    instead. If Spark allows one attempt only, as with `local[*]`, the query fails. An item whose
    query was stopped without draining, or has failed, may run for some more seconds.
    """

    def __init__(
        self,
        session: Callable[[], SparkSession],
        name: str,
        planner: Planner,
        on_batch: OnBatch,
        *,
        idle_wait_s: float = IDLE_WAIT_S,
    ) -> None:
        """`session` is called at each start, in the thread of `start`."""
        self._session = session
        self._name = name
        self._callbacks = WorkCallbacks(planner, on_batch)
        self._idle_wait_s = idle_wait_s
        self._running: _Running | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def is_running(self) -> bool:
        """Whether it was started and is not known to have ended: by `stop` or `wait_for_end`."""
        return self._running is not None and not self._running.is_closed

    def start(self) -> None:
        """Start the query, for the first time or after it has ended. Blocks for about a second."""
        if self.is_running:
            raise QueryError(f"query {self._name} is already running")
        session = self._session()
        run = WorkRun(self._callbacks, max_attempts=_max_attempts(session))
        directory = LockedDirectory("work-query", fast_folder())
        server = PlannerServer(directory.path, lambda: run.plan(self._idle_wait_s), self._name)
        try:
            handle = _start(session, self._name, directory, run)
        except BaseException:
            server.close()
            directory.remove()
            raise
        self._running = _Running(run, directory, server, handle)

    def stop(self, *, drain: bool = True, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stop the query; with `drain` after the micro-batch that is running, within the timeout.

        The committer is not called any more when this has returned. Raises StopTimeoutError if it
        does not return; then `wait_for_end` waits for it.
        """
        running = self._running
        if running is None:
            return
        run = running.run
        run.end_planning()
        if drain:
            run.wait_until_idle(timeout_s, running.handle.is_active)
        running.is_stopped = True
        is_idle = run.end_reporting(timeout_s)
        try:
            running.handle.stop()
        except StopTimeoutError:
            running.server.close()  # Spark still writes to the directory: see wait_for_end
            raise
        running.close()
        if not is_idle:
            raise StopTimeoutError(f"the committer of query {self._name} has not returned")

    def wait_for_end(self) -> Exception | None:
        """Waits until the query has ended. Returns why, or None if it was stopped."""
        running = self._running
        if running is None:
            return None
        error = running.handle.wait_for_end()
        running.run.end_reporting(0)
        running.close()
        if running.is_stopped:
            return None
        return running.run.error or error or QueryError("the query was stopped in Spark")


@dataclass(slots=True)
class _Running:
    run: WorkRun
    directory: LockedDirectory
    server: PlannerServer
    handle: QueryHandle
    is_stopped: bool = False
    is_closed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def close(self) -> None:
        with self.lock:
            self.server.close()
            self.directory.remove()
            self.is_closed = True


def _start(
    parent: SparkSession, name: str, directory: LockedDirectory, run: WorkRun
) -> QueryHandle:
    session = parent.newSession()
    activate(session)
    for setting, value in SESSION_SETTINGS.items():
        session.conf.set(setting, value)
    session.dataSource.register(WorkDataSource)

    def report(frame: DataFrame, _: int) -> None:
        run.complete([pickle.loads(row[0]) for row in frame.collect()])

    query = (
        session.readStream.format(FORMAT)
        .schema(SCHEMA)
        .option(DIRECTORY_OPTION, str(directory.path))
        .load()
        .writeStream.foreachBatch(report)
        .option("checkpointLocation", (directory.path / "checkpoint").as_uri())
        .queryName(name)
        .start()
    )
    return QueryHandle(session, query)


def _max_attempts(session: SparkSession) -> int:
    """Returns how often an item may run: the last attempt that Spark allows reports the loss."""
    context = session.sparkContext
    allowed = int(context.getConf().get("spark.task.maxFailures", "4"))
    if local := _LOCAL_MASTER.fullmatch(context.master or ""):
        allowed = int(local["max_failures"] or 1)
    return max(1, allowed - 1)
