"""Plants bugs into copies of the source: for every bug, a checker must fail.

    python -m tests.simulation.planted raft|coordinator|cluster [--seeds 200] [NAME ...]

A bug is an edit of one file. `test_planted.py` checks that every edit still matches the source.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
SIMULATIONS = ("raft", "coordinator", "cluster")
PLANTED_BUG = "PLANTED_BUG"
"""The environment variable with the name of the bug that a process has in its source."""


class Bug(NamedTuple):
    """An edit of one file of the package."""

    name: str
    path: str
    good: str
    bad: str

    def matches(self, text: str) -> bool:
        return text.count(self.good) == 1


def bugs_of(simulation: str) -> list[Bug]:
    bugs: list[Bug] = import_module(f"tests.simulation.{simulation}.bugs").BUGS
    return bugs


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.planted")
    parser.add_argument("simulation", choices=SIMULATIONS)
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to try for a bug")
    parser.add_argument("--first", type=int, default=0, help="the first of the seeds")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_intermixed_args()
    missed = 0
    for bug in bugs_of(options.simulation):
        if options.names and bug.name not in options.names:
            continue
        finding = find(bug, options.simulation, options.first, options.seeds)
        missed += finding is None
        print(f"{bug.name:<30} {finding or 'not found'}", flush=True)
    return int(missed > 0)


def find(bug: Bug, simulation: str, first: int, seeds: int) -> str | None:
    """Returns the checker and the seed that find the bug."""
    arguments = ["--first", str(first), "--seeds", str(seeds), "--bug", bug.name, "--trace", "0"]
    result = run_with_bug(bug, [simulation, *arguments], stdout=subprocess.PIPE)
    failure = re.search(r"seed (\d+) failed: (.+?): (.{0,100})", result.stdout)
    return f"{failure[2]} by seed {failure[1]}: {failure[3]}" if failure is not None else None


def run_with_bug(
    bug: Bug, arguments: Sequence[str], stdout: int | None = None
) -> "subprocess.CompletedProcess[str]":
    """Runs `python -m tests.simulation` with the bug in a copy of the source."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(SOURCE / "barnabas", copy / "barnabas")
        plant(bug, copy)
        command = [sys.executable, "-m", "tests.simulation", *arguments]
        path = f"{copy}{os.pathsep}{ROOT}"
        environment = {**os.environ, "PYTHONPATH": path, PLANTED_BUG: bug.name}
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=stdout, text=True)
        try:
            output, _ = process.communicate()
        except KeyboardInterrupt:  # which the process has received too
            output, _ = process.communicate()
        return subprocess.CompletedProcess(command, process.returncode, output or "")


def plant(bug: Bug, source: Path) -> None:
    """Makes the edit, and removes the compiled version of the file.

    A lane may have several compiled modules (`_fetch_reads.py`), which only work together.
    """
    path = source / "barnabas" / bug.path
    text = path.read_text()
    if not bug.matches(text):
        raise SystemExit(f"{bug.name} does not match {bug.path} any more")
    path.write_text(text.replace(bug.good, bug.bad))
    name = path.stem if not path.stem.startswith("_") else f"_{path.stem.split('_')[1]}"
    for compiled in path.parent.glob(f"{name}[._]*.so"):
        compiled.unlink()


if __name__ == "__main__":
    sys.exit(main())
