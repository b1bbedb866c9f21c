"""A daemon for Spark's Python workers that imports their modules before it forks them.

Spark starts `python -m <spark.python.daemon.module> <worker module>`, and the daemon forks the
workers. Spark's own daemon imports nothing, so every worker imports pyarrow, PySpark and the
client itself, and after each task its garbage collection visits all of their objects: 20 to
50 ms, in which the worker accepts no other task.
"""

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from socket import socket

from pyspark import daemon

_SOURCE_MODULES = ("barnabas.spark.source.batch", "barnabas.spark.source.stream")
_SINK_MODULES = ("barnabas.spark.sink.writer",)
_WORK_MODULES = ("barnabas.spark.runtime.work_source",)
PRELOADED = {
    "pyspark.worker": (
        "pandas",
        "pyarrow",
        "pyspark.sql.worker.plan_data_source_read",
        "pyspark.sql.worker.write_into_data_source",
        "barnabas.spark.source.task",
        *_SOURCE_MODULES,
        *_SINK_MODULES,
        *_WORK_MODULES,
    ),
    "pyspark.sql.worker.create_data_source": (
        "barnabas.spark.source.declared_schema",
        *_WORK_MODULES,
    ),
    "pyspark.sql.worker.plan_data_source_read": (*_SOURCE_MODULES, *_WORK_MODULES),
    "pyspark.sql.worker.write_into_data_source": _SINK_MODULES,
    "pyspark.sql.worker.commit_data_source_write": _SINK_MODULES,
    "pyspark.sql.worker.python_streaming_sink_runner": _SINK_MODULES,
}
"""The modules to import before forking, by worker module: tasks, and the driver's own workers."""

PRELOAD_VARIABLE = "BARNABAS_PRELOAD"
"""The variable with more modules for tasks, separated by commas: `spark.executorEnv.NAME` sets it.
A worker that had no task for a minute ends, so what is missing here is imported again and again."""


def main() -> None:
    """Run Spark's daemon until Spark closes our standard input."""
    with _stdout_to_stderr():
        worker = sys.argv[1]
        for module in (worker, *PRELOADED.get(worker, ()), *_additional_modules(worker)):
            # A worker that needs a missing package fails in a task, where the error is visible.
            with contextlib.suppress(ImportError):
                import_module(module)
    gc.collect()
    gc.freeze()  # garbage collections of the workers skip the shared objects
    daemon.worker = ignore_broken_pipe(daemon.worker)  # type: ignore[assignment]
    daemon.manager()


def _additional_modules(worker: str) -> list[str]:
    if worker != "pyspark.worker":
        return []
    return [module for module in os.environ.get(PRELOAD_VARIABLE, "").split(",") if module]


def ignore_broken_pipe(worker: Callable[[socket, bool], int]) -> Callable[[socket, bool], int]:
    """Wrap `worker`: Spark closes a connection after the last byte it needs, which is no error."""

    def serve(connection: socket, authenticated: bool) -> int:
        try:
            return worker(connection, authenticated)
        except BrokenPipeError:
            return 1

    return serve


@contextlib.contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """Spark reads the daemon's port from standard output, so imports must not print there."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


if __name__ == "__main__":
    main()
