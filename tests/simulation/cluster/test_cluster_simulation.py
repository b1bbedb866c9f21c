"""Some seeds of the simulated cluster; run more by `python -m tests.simulation.cluster`."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SEEDS = os.environ.get("CLUSTER_SIMULATION_SEEDS", "8")


def test_a_cluster_keeps_its_promises_whatever_goes_wrong() -> None:
    result = _run("--seeds", SEEDS)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_seed_always_tells_the_same_story() -> None:
    first, again = _run("--seed", "3", "--trace"), _run("--seed", "3", "--trace")
    assert len(_story(first.stdout)) > 100
    assert _story(first.stdout) == _story(again.stdout)


def _run(*options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.simulation.cluster", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _story(output: str) -> list[str]:
    """All that happened, but for how long it took us."""
    return re.sub(r" in [\d.]+ s$", "", output.strip()).splitlines()
