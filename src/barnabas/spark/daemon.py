"""Spark's daemon of Python workers, with what they use imported before it forks them.

Spark starts `python -m <spark.python.daemon.module> <worker module>` and has each worker forked
from it. Its own daemon imports nothing, so that every worker imports pyarrow, PySpark and the
client for itself, and after each task walks through all of that in a garbage collection: 20 to
50 ms, in which the worker takes no other task.
"""

import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from socket import socket

from pyspark import daemon

_READING = ("barnabas.spark.source.batch", "barnabas.spark.source.stream")
_WRITING = ("barnabas.spark.sink.writer",)
PRELOADED = {
    "pyspark.worker": (
        "pyarrow",
        "pyspark.sql.worker.plan_data_source_read",
        "pyspark.sql.worker.write_into_data_source",
        "barnabas.spark.source.task",
        *_READING,
        *_WRITING,
    ),
    "pyspark.sql.worker.create_data_source": ("barnabas.spark.source.declared_schema",),
    "pyspark.sql.worker.plan_data_source_read": _READING,
    "pyspark.sql.worker.write_into_data_source": _WRITING,
    "pyspark.sql.worker.commit_data_source_write": _WRITING,
    "pyspark.sql.worker.python_streaming_sink_runner": _WRITING,
}
"""What is used besides it, by the module that is to run: tasks, and what the driver asks of us."""


def main() -> None:
    """Serve Spark until it closes our standard input."""
    with _standard_output_kept_clean():
        worker = sys.argv[1]
        for module in (worker, *PRELOADED.get(worker, ())):
            # A worker that needs what is not installed says so in a task, where it is seen.
            with contextlib.suppress(ImportError):
                import_module(module)
    gc.collect()
    gc.freeze()  # the children's collections pass over what they share
    daemon.worker = quiet_when_hung_up(daemon.worker)  # type: ignore[assignment]
    daemon.manager()


def quiet_when_hung_up(worker: Callable[[socket, bool], int]) -> Callable[[socket, bool], int]:
    """Spark closes a connection as soon as it has its answer: that is no error to tell of."""

    def serve(connection: socket, authenticated: bool) -> int:
        try:
            return worker(connection, authenticated)
        except BrokenPipeError:
            return 1  # there is nobody to work for

    return serve


@contextlib.contextmanager
def _standard_output_kept_clean() -> Iterator[None]:
    """Spark reads from it where the daemon listens, and nothing else may come before."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


if __name__ == "__main__":
    main()
