"""A session made with our settings has them, with this environment's Python in its workers."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from barnabas.spark.prerequisites import PrerequisiteError
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


@pytest.fixture
def other_python(tmp_path: Path) -> str:
    """A Python without Barnabas."""
    script = tmp_path / "python3"
    script.write_text(f'#!/bin/sh\nunset PYTHONPATH\nexec {sys.executable} -S "$@"\n')
    script.chmod(0o755)
    return str(script)


def test_a_worker_python_without_barnabas_is_rejected(
    monkeypatch: pytest.MonkeyPatch, other_python: str
) -> None:
    monkeypatch.setenv(WORKER_PYTHON, other_python)
    with pytest.raises(PrerequisiteError, match=rf"{other_python}.*unset PYSPARK_PYTHON"):
        configure(SparkSession.Builder())


def test_a_jvm_that_runs_a_python_without_barnabas_is_reported(
    monkeypatch: pytest.MonkeyPatch, other_python: str
) -> None:
    monkeypatch.setenv(WORKER_PYTHON, sys.executable)
    monkeypatch.setenv("PATH", str(Path(other_python).parent), prepend=os.pathsep)
    monkeypatch.setattr(SparkContext, "_jvm", jvm_with({}))
    with pytest.raises(PrerequisiteError, match=r"already running, with python3.*restart"):
        configure(SparkSession.Builder())
    monkeypatch.setattr(SparkContext, "_jvm", jvm_with({WORKER_PYTHON: sys.executable}))
    configure(SparkSession.Builder())


def jvm_with(variables: dict[str, str]) -> SimpleNamespace:
    system = SimpleNamespace(getenv=lambda: variables)
    return SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(System=system)))
