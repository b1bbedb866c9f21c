"""The settings of a Spark session that make pipelines on topics fast, each with its reason.

    spark = configure(SparkSession.builder).getOrCreate()

The gains were measured with small micro-batches, 100 records a second into `foreachBatch`, where
nearly all of the time is Spark's own work.
"""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.spark.interpreter import worker_python
from barnabas.spark.prerequisites import require_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKER_PYTHON = "PYSPARK_PYTHON"
"""The variable that names the Python of Spark's workers."""

DRIVER_PYTHON = "PYSPARK_DRIVER_PYTHON"
"""The variable that names the program `pyspark` starts, such as `jupyter`. If it is set, Spark's
JVM runs data sources with that program, in executors too."""


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

    Raises PrerequisiteError if Spark cannot start on this machine.
    """
    require_all()
    os.environ.setdefault(WORKER_PYTHON, worker_python())
    os.environ.pop(DRIVER_PYTHON, None)  # only Spark's JVM would read it now
    for setting in SETTINGS:
        builder = builder.config(setting.name, setting.value)
    return builder
