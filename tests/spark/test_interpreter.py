"""Workers import PySpark from files that are compiled once, where it is the same PySpark."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from barnabas.spark.interpreter import SCRIPT_NAME, main, without_zips, worker_python

LIBRARIES = Path(pyspark.__file__).parent / "python" / "lib"
ZIPS = sorted(str(each) for each in LIBRARIES.glob("*.zip"))


def test_zips_of_the_installed_pyspark_are_removed() -> None:
    assert len(ZIPS) == 2
    assert without_zips([*ZIPS, "/jobs", ""], sys.path) == ["/jobs", ""]


def test_zips_of_another_pyspark_stay(tmp_path: Path) -> None:
    other = tmp_path / "pyspark" / "python" / "lib" / "pyspark.zip"
    assert without_zips([str(other), "/jobs.zip"], sys.path) == [str(other), "/jobs.zip"]


def test_the_script_runs_python_with_pyspark_from_files() -> None:
    assert Path(worker_python()).name == SCRIPT_NAME
    done = subprocess.run(
        [
            worker_python(),
            "-c",
            "import pyspark, sys; print(pyspark.__file__, sys.argv[1])",
            "argument",
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(ZIPS)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [pyspark.__file__, "argument"]


def test_a_module_runs_as_python_would_run_it(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("import sys; print(__name__, sys.argv, sys.path)")
    ran = [
        subprocess.run(
            [python, "-m", "job", "-m", "argument"],
            env={**os.environ, "PYTHONPATH": "/jobs"},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for python in (worker_python(), sys.executable)
    ]
    assert ran[0] == ran[1]


def test_a_module_runs_with_pyspark_from_files(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text("import os, pyspark; print(pyspark.__file__, os.environ)")
    done = subprocess.run(
        [worker_python(), "-m", "job"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(ZIPS)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(pyspark.__file__)
    assert ZIPS[0] not in done.stdout


def test_sparks_own_daemon_module_is_replaced_by_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, list[str]]] = []
    monkeypatch.setattr("runpy.run_module", lambda name, **_: ran.append((name, sys.argv[1:])))
    monkeypatch.setattr("sys.argv", [SCRIPT_NAME, "-m", "pyspark.daemon", "pyspark.worker"])
    monkeypatch.setattr("sys.path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "")
    main()
    assert ran == [("barnabas.spark.daemon", ["pyspark.worker"])]
