"""Some seeds of the simulation; `python -m tests.simulation --seeds 1000` runs more of them."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SEEDS = os.environ.get("SIMULATION_SEEDS", "20")


def test_groups_and_transactions_keep_their_promises_whatever_goes_wrong() -> None:
    command = [sys.executable, "-m", "tests.simulation", "--seeds", SEEDS]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
