"""The settings of a Spark session that make pipelines on topics fast, each with its reason.

    spark = configure(SparkSession.builder).getOrCreate()

The gains were measured with small micro-batches, 100 records a second into `foreachBatch`, where
nearly all of the time is Spark's own work.
"""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.spark.interpreter import worker_python
from barnabas.spark.prerequisites import (
    PrerequisiteError,
    has_barnabas,
    require_all,
    warn_if_uncompiled,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKER_PYTHON = "PYSPARK_PYTHON"
"""The variable that names the Python of Spark's workers."""

DRIVER_PYTHON = "PYSPARK_DRIVER_PYTHON"
"""The variable that names the program `pyspark` starts, such as `jupyter`. If it is set, Spark's
JVM runs data sources with that program, in executors too."""

DEFAULT_PYTHON = "python3"
"""What Spark runs, from the PATH, if neither variable is set: often another Python than the
driver's, in which Spark does not find the data source (DATA_SOURCE_NOT_FOUND)."""


@dataclass(slots=True, frozen=True)
class SparkSetting:
    name: str
    value: str
    reason: str


_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"

SETTINGS = (
    SparkSetting(
        "spark.sql.streaming.checkpointFileManagerClass",
        f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
        "starts fewer processes to write a checkpoint's files on a local disk, where Hadoop starts"
        " one for each mode it sets: 25 ms a log entry instead of 110",
    ),
    SparkSetting(
        "spark.python.unix.domain.socket.enabled",
        "true",
        "passes rows between the JVM and Python without TCP, its copies and its secrets",
    ),
    SparkSetting(
        "spark.python.daemon.module",
        "barnabas.spark.daemon",
        "forks workers that have already imported the modules of tasks, and do not spend 20 to"
        " 50 ms on a garbage collection after each",
    ),
)


def settings() -> dict[str, str]:
    """Returns the settings by name, for `SparkSession.builder.config(map=...)`."""
    return {setting.name: setting.value for setting in SETTINGS}


def configure(builder: "SparkSession.Builder") -> "SparkSession.Builder":
    """Returns the builder with the settings; later calls to the builder override them.

    Call it before the first session of the process: Spark's JVM takes its Python from the
    environment when it starts.

    Raises PrerequisiteError if Spark cannot start on this machine, or would run data sources with
    a Python that has no Barnabas.
    """
    require_all()
    warn_if_uncompiled()
    _set_python()
    for setting in SETTINGS:
        builder = builder.config(setting.name, setting.value)
    return builder


def _set_python() -> None:
    """Makes Spark run data sources and tasks with the Python of the driver, or the user's."""
    default = worker_python()
    os.environ.pop(DRIVER_PYTHON, None)  # only Spark's JVM would read it now
    python = os.environ.setdefault(WORKER_PYTHON, default)
    if python != default and not has_barnabas(python):
        raise PrerequisiteError(
            f"{WORKER_PYTHON} is {python}, which has no Barnabas, so Spark would not find the data"
            f" source: unset {WORKER_PYTHON}, or install barnabas[spark] with that Python"
        )
    running = _python_of_running_jvm()
    if running not in (None, default, python) and not has_barnabas(running):
        raise PrerequisiteError(
            f"Spark's JVM is already running, with {running}, which has no Barnabas, so Spark does"
            " not find the data source: restart this program or notebook, and call configure()"
            " before the first session"
        )


def _python_of_running_jvm() -> str | None:
    """Returns the Python that Spark's JVM runs data sources with, or None without a JVM."""
    from pyspark import SparkContext

    if SparkContext._jvm is None:
        return None
    variables = SparkContext._jvm.java.lang.System.getenv()
    return str(variables.get(DRIVER_PYTHON) or variables.get(WORKER_PYTHON) or DEFAULT_PYTHON)
