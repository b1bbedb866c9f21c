"""Plants bugs into copies of the source: for every bug, a checker must fail.

    python -m tests.simulation.planted raft|coordinator|cluster [--seeds 300] [NAME ...]

A bug is an edit of one file. `test_planted.py` checks that every edit still matches the source.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
SIMULATIONS = ("raft", "coordinator", "cluster")


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
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds to try for a bug")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_intermixed_args()
    missed = 0
    for bug in bugs_of(options.simulation):
        if options.names and bug.name not in options.names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "src"
            shutil.copytree(SOURCE / "barnabas", copy / "barnabas")
            finding = find(copy, options.simulation, options.seeds) if plant(bug, copy) else None
        missed += finding is None
        print(f"{bug.name:<30} {finding or 'not found'}", flush=True)
    return 1 if missed else 0


def plant(bug: Bug, source: Path) -> bool:
    """Makes the edit. Returns False if it does not match."""
    path = source / "barnabas" / bug.path
    text = path.read_text()
    if not bug.matches(text):
        print(f"{bug.name} does not match {bug.path} any more")
        return False
    path.write_text(text.replace(bug.good, bug.bad))
    return True


def find(source: Path, simulation: str, seeds: int) -> str | None:
    """Returns the checker and the seed that find the bug."""
    command = [sys.executable, "-m", "tests.simulation", simulation]
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
    result = subprocess.run(
        [*command, "--seeds", str(seeds), "--trace", "0"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    failure = re.search(r"seed (\d+) failed: (.+?): (.{0,100})", result.stdout)
    if failure is not None:
        return f"{failure[2]} by seed {failure[1]}: {failure[3]}"
    return (result.stderr or "?")[-300:] if result.returncode else None


if __name__ == "__main__":
    sys.exit(main())
