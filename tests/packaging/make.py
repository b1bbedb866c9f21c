"""`make` in this tree, with the environment that runs the tests."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def make(*arguments: str) -> str:
    """Runs `make` and returns its output; nothing is installed into the environment."""
    inherited = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "PYTHONPATH"}
    result = subprocess.run(
        ["make", f"BIN={BIN}", *arguments],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in inherited},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert result.returncode == 0, result.stdout
    return result.stdout
