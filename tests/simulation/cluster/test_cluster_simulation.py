"""Some seeds of the simulated cluster; `python -m tests.simulation cluster` runs more."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SEEDS = os.environ.get("CLUSTER_SIMULATION_SEEDS", "8")


def test_a_cluster_keeps_its_promises_under_random_faults() -> None:
    result = _run("--seeds", SEEDS)
    assert result.returncode == 0, result.stdout + result.stderr


def test_two_runs_of_a_seed_have_the_same_events() -> None:
    first, again = _run("--seed", "3", "--trace"), _run("--seed", "3", "--trace")
    assert len(_events(first.stdout)) > 100
    assert _events(first.stdout) == _events(again.stdout)


def _run(*options: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tests.simulation", "cluster", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def _events(output: str) -> list[str]:
    """Returns the output without the real duration."""
    return re.sub(r" in [\d.]+ s$", "", output.strip()).splitlines()
