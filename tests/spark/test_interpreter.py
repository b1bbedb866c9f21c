"""Workers import PySpark from files that are compiled once, where it is the same PySpark."""

import os
import subprocess
import sys
from pathlib import Path

import pyspark

from barnabas.spark.interpreter import SCRIPT, for_workers, without_zips

LIBRARIES = Path(pyspark.__file__).parent / "python" / "lib"
ZIPS = sorted(str(each) for each in LIBRARIES.glob("*.zip"))


def test_zips_of_the_pyspark_that_is_installed_are_left_out() -> None:
    assert len(ZIPS) == 2
    assert without_zips([*ZIPS, "/jobs", ""], sys.path) == ["/jobs", ""]


def test_zips_of_another_pyspark_stay(tmp_path: Path) -> None:
    other = tmp_path / "pyspark" / "python" / "lib" / "pyspark.zip"
    assert without_zips([str(other), "/jobs.zip"], sys.path) == [str(other), "/jobs.zip"]


def test_the_script_runs_python_with_the_pyspark_that_lies_in_files() -> None:
    assert Path(for_workers()).name == SCRIPT
    done = subprocess.run(
        [for_workers(), "-c", "import pyspark, sys; print(pyspark.__file__, sys.argv[1])", "told"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(ZIPS)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [pyspark.__file__, "told"]


def test_the_daemon_that_spark_starts_of_itself_is_ours() -> None:
    done = subprocess.run(
        [
            for_workers(),
            "-c",
            "import sys; print(*sys.argv[1:])",
            "pyspark.daemon",
            "pyspark.worker",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["barnabas.spark.daemon", "pyspark.worker"]
