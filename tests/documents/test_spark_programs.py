"""The programs on Spark of all pages run as printed, each alone, on a fresh broker.

Each runs in a process of its own, without an activated environment: `python3` of the PATH is not
the Python of the driver. Environment variables make the JVM small; the programs are not changed.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.documents.pages import (
    PAGES,
    ROOT,
    TIMEOUT_S,
    Fence,
    printed,
    programs,
    with_addresses,
)

TUTORIAL = ROOT / "examples" / "orders" / "README.md"
"""Its fences are steps of one program."""

SMALL_JVM = {
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "PYSPARK_SUBMIT_ARGS": "--master local[2] --conf spark.ui.enabled=false pyspark-shell",
    "SPARK_LOCAL_IP": "127.0.0.1",
}


def spark_programs() -> list[Fence]:
    """Returns the programs of all pages; the steps of the tutorial are one program."""
    steps = programs(TUTORIAL)
    tutorial = Fence(TUTORIAL, 0, "python", "".join(step.text for step in steps))
    pages = (page for page in PAGES if page != TUTORIAL)
    alone = [fence for page in pages for fence in programs(page) if "SparkSession" in fence.text]
    return [*alone, tutorial]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables of a user who starts the Python of their environment without activating it."""
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho 'python3 of the PATH was started' >&2\nexit 1\n")
    other.chmod(0o755)
    java = Path(shutil.which("java") or "java").parent
    path = os.pathsep.join(map(str, (other.parent, java, "/usr/bin", "/bin")))
    kept = {name: os.environ[name] for name in ("JAVA_HOME", "PYTHONPATH") if name in os.environ}
    return {**SMALL_JVM, **kept, "PATH": path, "HOME": str(tmp_path)}


@pytest.mark.timeout(TIMEOUT_S + 20)
@pytest.mark.parametrize("program", spark_programs(), ids=lambda program: program.id)
def test_a_program_on_spark_runs_alone_as_printed(
    program: Fence, addresses: dict[str, str], environment: dict[str, str], tmp_path: Path
) -> None:
    file = tmp_path / "test_program.py"
    file.write_text(with_addresses(program.text, addresses))
    is_test = "\ndef test_" in program.text
    done = subprocess.run(
        [sys.executable, *(["-m", "pytest", "-q"] if is_test else []), file],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for line in printed(program.text):
        assert line in done.stdout.splitlines()
