"""`barnabas spark`: printing settings, and starting Spark with them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.conftest import Barnabas

from barnabas.spark.interpreter import worker_python
from barnabas.spark.session import settings


def test_settings_are_printed_with_their_reasons(barnabas: Barnabas) -> None:
    lines = barnabas("spark").stdout.splitlines()
    assert {line for line in lines if line and not line.startswith("# ")} == {
        f"{name} {value}" for name, value in settings().items()
    }


def test_settings_are_printed_as_json(barnabas: Barnabas) -> None:
    assert json.loads(barnabas("spark", "--json").stdout) == settings()


def test_settings_are_written_in_the_format_of_spark_defaults(
    barnabas: Barnabas, tmp_path: Path
) -> None:
    path = tmp_path / "spark-defaults.conf"
    assert barnabas("spark", "--write", path).exit_code == 0
    written = dict(
        line.split(None, 1) for line in path.read_text().splitlines() if line and line[0] != "#"
    )
    assert written == settings()


def test_an_existing_file_is_not_overwritten(barnabas: Barnabas, tmp_path: Path) -> None:
    path = tmp_path / "spark-defaults.conf"
    path.write_text("spark.master local[*]\n")
    result = barnabas("spark", "--write", path)
    assert result.exit_code == 1
    assert "already exists" in result.stderr
    assert path.read_text() == "spark.master local[*]\n"


@pytest.mark.parametrize("arguments", [("shell",), ("submit", "app.py")])
def test_without_java_spark_is_not_started(
    barnabas: Barnabas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = barnabas("spark", *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: Spark needs Java, but")
    assert result.stderr.count("\n") == 1


def test_submit_executes_spark_submit_with_the_settings_and_this_python(
    barnabas: Barnabas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, list[str]]] = []
    monkeypatch.setenv("JAVA_HOME", java(tmp_path))
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setattr(os, "execv", lambda path, command: started.append((str(path), command)))
    assert barnabas("spark", "submit", "--master", "local[1]", "app.py", "--help").exit_code == 0
    ((path, command),) = started
    assert path.endswith("/bin/spark-submit")
    assert command[1:-4] == [f"--conf={name}={value}" for name, value in settings().items()]
    assert command[-4:] == ["--master", "local[1]", "app.py", "--help"]
    assert os.environ["PYSPARK_PYTHON"] == worker_python()


def test_a_custom_driver_shell_does_not_run_data_sources(
    barnabas: Barnabas, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    monkeypatch.setenv("JAVA_HOME", java(tmp_path))
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", "jupyter")
    monkeypatch.setattr(os, "execv", lambda path, command: started.append(command))
    assert barnabas("spark", "shell").exit_code == 0
    assert started[0][-1] == "--conf=spark.pyspark.driver.python=jupyter"
    assert "PYSPARK_DRIVER_PYTHON" not in os.environ


def test_settings_are_printed_without_importing_pyspark(tmp_path: Path) -> None:
    (tmp_path / "pyspark.py").write_text("raise ImportError('no pyspark')")
    done = subprocess.run(
        [sys.executable, "-m", "barnabas.cli", "spark", "--json"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert json.loads(done.stdout) == settings()


def java(home: Path) -> str:
    program = home / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"21.0.1\"' >&2\n")
    program.chmod(0o755)
    return str(home)
