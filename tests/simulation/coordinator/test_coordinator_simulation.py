"""Some seeds of the simulation; `python -m tests.simulation coordinator --seeds 1000` runs more."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SEEDS = os.environ.get("SIMULATION_SEEDS", "20")


def test_groups_and_transactions_keep_their_promises_under_random_faults() -> None:
    command = [sys.executable, "-m", "tests.simulation", "coordinator", "--seeds", SEEDS]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
