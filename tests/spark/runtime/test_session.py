"""A service's session is silent, survives the death of its JVM, and leaves nothing behind."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from barnabas.spark.runtime.errors import QueryError
from barnabas.spark.runtime.session import ServiceSession, service_settings

ROOT = Path(__file__).parents[3]
TIMEOUT_S = 280


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """A service that has ended: its items killed workers, and its JVM was killed."""
    folder = tmp_path_factory.mktemp("service")
    temporary = folder / "tmp"
    temporary.mkdir()
    environment = os.environ | {
        "TMPDIR": str(temporary),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    environment.pop("PYSPARK_PYTHON", None)
    completed = subprocess.run(
        [sys.executable, "-m", "tests.spark.runtime.program", temporary, folder / "log"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return completed, folder


@pytest.fixture(scope="module")
def results(service: tuple[subprocess.CompletedProcess[str], Path]) -> dict[str, Any]:
    completed, folder = service
    assert completed.returncode == 0, completed.stderr + (folder / "log").read_text()
    found: dict[str, Any] = json.loads(completed.stdout)
    return found


def test_nothing_of_spark_is_printed(
    service: tuple[subprocess.CompletedProcess[str], Path], results: dict[str, Any]
) -> None:
    assert service[0].stderr == ""


def test_an_item_that_kills_its_worker_is_repeated_and_then_reported(
    results: dict[str, Any],
) -> None:
    once, always, other = results["killed"]
    assert once == "'attempt 1'"
    assert always.startswith("WorkerLostError(")
    assert "task 0 of always, 2 times" in always
    assert other == "'done'"


def test_a_query_fails_with_its_jvm_or_session_and_starts_again_on_a_new_one(
    results: dict[str, Any],
) -> None:
    assert results["JVM killed"] == ["Spark's JVM has ended", "'again'"]
    assert results["session stopped"] == ["Spark's session was stopped", "'again'"]


def test_modules_are_imported_before_workers_are_forked(results: dict[str, Any]) -> None:
    assert results["is preloaded"] == ["True"]


def test_no_files_and_processes_are_left(
    service: tuple[subprocess.CompletedProcess[str], Path], results: dict[str, Any]
) -> None:
    assert results["left"] == []
    assert processes_with(str(service[1])) == []
    assert len(results["directories"]) == 2  # sockets, and the checkpoint
    assert not [path for path in results["directories"] if Path(path).exists()]


def test_spark_connect_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(QueryError, match=r"spark\.remote=sc://host is not supported"):
        ServiceSession({"spark.remote": "sc://host"}, app_name="test")
    with pytest.raises(QueryError, match=r"foreachBatch runs in the server"):
        ServiceSession({"spark.api.mode": "connect"}, app_name="test")
    monkeypatch.setenv("SPARK_REMOTE", "sc://host")
    with pytest.raises(QueryError, match="unset SPARK_REMOTE"):
        ServiceSession({}, app_name="test")


def test_settings_have_defaults_that_the_user_overrides() -> None:
    settings = service_settings(
        {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": "-XX:+UseG1GC"},
        ["-XX:+UseSerialGC"],
    )
    assert settings["spark.master"] == "local[*, 3]"
    assert settings["spark.driver.memory"] == "2g"
    assert settings["spark.driver.host"] == "127.0.0.1"
    assert settings["spark.driver.extraJavaOptions"] == "-XX:+UseSerialGC -XX:+UseG1GC"


def test_the_driver_of_a_cluster_listens_on_the_address_that_spark_chooses() -> None:
    assert "spark.driver.host" not in service_settings({"spark.master": "spark://host:7077"})


def processes_with(text: str) -> list[str]:
    """Returns the command lines and environments of processes that contain the text."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            content = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:
            continue
        if text.encode() in content:
            found.append(f"{process.name}: {content[:200]!r}")
    return found
