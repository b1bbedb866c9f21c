"""A session made with our settings has them, with this environment's Python in its workers."""

import os
import sys

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from barnabas.spark.session import DRIVER_PYTHON, WORKER_PYTHON, configure, settings


def test_workers_run_the_python_of_the_driver_and_come_from_our_daemon(spark: SparkSession) -> None:
    found = udf(lambda _: f"{sys.prefix} {'barnabas.spark.source.batch' in sys.modules}")
    rows = spark.range(4).select(found("id").alias("found")).distinct().collect()
    assert [row.found for row in rows] == [f"{sys.prefix} True"]


def test_a_session_has_the_settings(spark: SparkSession) -> None:
    assert {name: spark.conf.get(name) for name in settings()} == settings()


def test_data_sources_do_not_run_on_the_users_driver_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(WORKER_PYTHON, sys.executable)
    monkeypatch.setenv(DRIVER_PYTHON, "jupyter")
    configure(SparkSession.Builder())
    assert DRIVER_PYTHON not in os.environ
