"""The settings of a Spark session that make pipelines on topics quick, each with its reason.

    spark = configure(SparkSession.builder).getOrCreate()

What a setting gains was measured with small micro-batches, 100 records a second into
`foreachBatch`, where Spark's own work is nearly all there is.
"""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.spark.interpreter import for_workers
from barnabas.spark.prerequisites import require_all

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS_PYTHON = "PYSPARK_PYTHON"
"""Where Spark's workers find the Python they run on, unless the variable is set already."""

SHELL = "PYSPARK_DRIVER_PYTHON"
"""What `pyspark` starts, as `jupyter`. Spark's JVM takes it for a Python if it is set, and runs
data sources on it, in executors too."""


@dataclass(slots=True, frozen=True)
class SparkSetting:
    name: str
    value: str
    why: str


_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"

SETTINGS = (
    SparkSetting(
        "spark.sql.streaming.checkpointFileManagerClass",
        f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
        "starts fewer processes to write a checkpoint's files on a local disk, where Hadoop has one"
        " for each mode it sets: 25 ms a log entry where there were 110",
    ),
    SparkSetting(
        "spark.python.unix.domain.socket.enabled",
        "true",
        "passes rows between the JVM and Python without TCP, its copies and its secrets",
    ),
    SparkSetting(
        "spark.python.daemon.module",
        "barnabas.spark.daemon",
        "forks workers that have imported already what tasks use, and do not spend 20 to 50 ms on"
        " a garbage collection after each",
    ),
)


def settings() -> dict[str, str]:
    """By name, as for `SparkSession.builder.config(map=...)`."""
    return {setting.name: setting.value for setting in SETTINGS}


def configure(builder: "SparkSession.Builder") -> "SparkSession.Builder":
    """The builder with the settings; what is set on it afterwards wins.

    PrerequisiteError says in a line why Spark would not start.
    """
    require_all()
    os.environ.setdefault(WORKERS_PYTHON, for_workers())
    os.environ.pop(SHELL, None)  # it is started; what is started now is a JVM
    for setting in SETTINGS:
        builder = builder.config(setting.name, setting.value)
    return builder
