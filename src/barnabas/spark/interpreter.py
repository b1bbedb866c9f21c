"""`barnabas-spark-python`: the Python that Spark's workers run on, without Spark's zip files.

Spark puts a zip of PySpark before everything else on the path of each Python that it starts. What
is imported out of a zip is compiled anew every time: a second or so, for each of the five or six
processes of a pipeline and again for every streaming query that is started. The same PySpark lies
beside it as files, compiled once.
"""

import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from barnabas.spark import runner_forkserver

SCRIPT = "barnabas-spark-python"
_PATH = "PYTHONPATH"
_OURS = {"pyspark.daemon": "barnabas.spark.daemon"}
"""What we run for a module: for the driver's questions Spark starts its own, whatever is set."""


def main() -> None:
    """Do what this environment's Python does with the arguments that were given."""
    given = os.environ.get(_PATH, "").split(os.pathsep)
    kept = without_zips(given, sys.path)
    os.environ[_PATH] = os.pathsep.join(kept)
    match sys.argv[1:]:
        case ["-m", module, *arguments]:
            _run_here(_OURS.get(module, module), arguments, left_out=set(given) - set(kept))
        case arguments:
            os.execv(sys.executable, [sys.executable, *arguments])


def for_workers() -> str:
    """The script beside the Python that runs now; that Python itself where it is not installed."""
    script = Path(sys.executable).with_name(SCRIPT)
    return str(script) if script.exists() else sys.executable


def without_zips(path: Sequence[str], searched: Sequence[str]) -> list[str]:
    """The path without PySpark's zips, if what is in them is found in a folder that is searched.

    They are `pyspark/python/lib/*.zip` of an installed PySpark; py4j is installed beside it.
    """
    return [each for each in path if not (each and _is_zip_of(each, searched))]


def _run_here(module: str, arguments: list[str], left_out: set[str]) -> None:
    """As `python -m` does, but at once: that is how Spark starts all it starts."""
    sys.path[:] = [each for each in sys.path if each not in left_out]
    if not sys.flags.safe_path:
        sys.path[0] = str(Path.cwd())  # for the script's folder
    sys.argv[1:] = arguments
    if module == runner_forkserver.RUNNER:
        runner_forkserver.run()
    else:
        runpy.run_module(module, run_name="__main__", alter_sys=True)


def _is_zip_of(entry: str, searched: Sequence[str]) -> bool:
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
