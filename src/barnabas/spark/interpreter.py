"""`barnabas-spark-python`: the Python for Spark's workers, without Spark's zip files.

Spark puts a zip of PySpark first on the path of each Python that it starts. Python compiles
modules from a zip on every import: about a second for each of the five or six processes of a
pipeline, and again for every streaming query. The installed PySpark has the same modules as files,
which are compiled once.
"""

import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from barnabas.spark import runner_forkserver

SCRIPT_NAME = "barnabas-spark-python"
_PATH = "PYTHONPATH"
_REPLACEMENTS = {"pyspark.daemon": "barnabas.spark.daemon"}
"""Modules that we replace: for the driver's workers Spark starts its own daemon, without regard to
`spark.python.daemon.module`."""


def main() -> None:
    """Run this environment's Python with the arguments of the command line."""
    path = os.environ.get(_PATH, "").split(os.pathsep)
    kept = without_zips(path, sys.path)
    os.environ[_PATH] = os.pathsep.join(kept)
    match sys.argv[1:]:
        case ["-m", module, *arguments]:
            _run_here(_REPLACEMENTS.get(module, module), arguments, removed=set(path) - set(kept))
        case arguments:
            os.execv(sys.executable, [sys.executable, *arguments])


def worker_python() -> str:
    """Returns the script beside the current Python, or that Python if it is not installed."""
    script = Path(sys.executable).with_name(SCRIPT_NAME)
    return str(script) if script.exists() else sys.executable


def without_zips(path: Sequence[str], searched: Sequence[str]) -> list[str]:
    """Returns `path` without PySpark's zips, if their content is installed in a searched folder.

    The zips are `pyspark/python/lib/*.zip` of an installed PySpark; py4j is installed beside it.
    """
    return [entry for entry in path if not (entry and _is_installed_zip(entry, searched))]


def _run_here(module: str, arguments: list[str], removed: set[str]) -> None:
    """Run `python -m module` in this process, which is how Spark starts all of its modules."""
    sys.path[:] = [entry for entry in sys.path if entry not in removed]
    if not sys.flags.safe_path:
        sys.path[0] = str(Path.cwd())  # replaces the script's folder
    sys.argv[1:] = arguments
    if module == runner_forkserver.RUNNER:
        runner_forkserver.run()
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def _is_installed_zip(entry: str, searched: Sequence[str]) -> bool:
    file = Path(entry)
    if file.suffix != ".zip" or not file.name.startswith(("pyspark", "py4j")):
        return False
    package = file.parent.parent.parent  # of pyspark/python/lib/pyspark.zip
    installed = package.parent
    return (
        package.name == "pyspark"
        and str(installed) in searched
        and (installed / "py4j").is_dir()
        and (package / "__init__.py").is_file()
    )
