"""A service with its own Spark, run by test_session.py. Prints nothing but its results, as JSON."""

import asyncio
import json
import logging
import os
import queue
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.spark.runtime.directories import own_directories
from tests.spark.runtime.items import IsImported, KillWorker, ReturnValue
from tests.wait import async_wait_until

from barnabas.spark.runtime.session import ServiceSession
from barnabas.spark.runtime.state import QueryState, QueryStatus
from barnabas.spark.runtime.supervisor import QuerySupervisor, RestartSettings
from barnabas.spark.runtime.work import WorkItem, WorkReport
from barnabas.spark.runtime.work_query import WorkQuery

RESTARTS = RestartSettings(first_backoff_s=0.1)


async def main(folder: Path) -> dict[str, Any]:
    session = ServiceSession(
        {"spark.master": "local[2, 3]", "spark.sql.warehouse.dir": str(folder / "warehouse")},
        app_name="test",
        preload=("barnabas.spark.progress",),
    )
    plans: queue.Queue[list[WorkItem]] = queue.Queue()
    batches: queue.Queue[Sequence[WorkReport]] = queue.Queue()
    changes: list[QueryStatus] = []

    def plan(timeout_s: float) -> list[WorkItem]:
        try:
            return plans.get(timeout=timeout_s)
        except queue.Empty:
            return []

    async def run(*items: WorkItem) -> list[str]:
        plans.put(list(items))
        reports = await asyncio.to_thread(batches.get)
        return [repr(report.error or report.result) for report in reports]

    async def recover(damage: Callable[[], None]) -> list[str]:
        """Returns why the query has failed, and the results of the next batch."""
        seen = len(changes)
        await asyncio.to_thread(damage)
        failed = await async_wait_until(lambda: [c for c in changes[seen:] if c.error])
        await async_wait_until(lambda: supervisor.status("query").state is QueryState.RUNNING)
        return [str(failed[0].error), *await run(WorkItem("other", 1, ReturnValue("again")))]

    query = WorkQuery(session, "query", plan, lambda _, reports: batches.put(reports))
    supervisor = QuerySupervisor(RESTARTS, on_change=changes.append)
    results: dict[str, Any] = {}
    status = await supervisor.start(query)
    assert status.state is QueryState.RUNNING, status.trace
    marker = folder / "marker"
    results["killed"] = await run(
        WorkItem("once", 0, KillWorker(marker)),
        WorkItem("always", 0, KillWorker(None)),
        WorkItem("other", 0, ReturnValue("done")),
    )
    jvm = session().sparkContext._gateway.proc.pid  # type: ignore[union-attr]
    results["JVM killed"] = await recover(lambda: os.kill(jvm, signal.SIGKILL))
    results["session stopped"] = await recover(session().stop)
    results["is preloaded"] = await run(WorkItem("other", 0, IsImported("barnabas.spark.progress")))
    results["directories"] = [str(path) for path in own_directories()]
    await supervisor.close()
    await asyncio.to_thread(session.close)
    results["left"] = [path.name for path in folder.iterdir() if path != marker]
    return results


if __name__ == "__main__":
    logging.basicConfig(filename=sys.argv[2], level=logging.INFO)
    print(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
