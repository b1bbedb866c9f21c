"""What the runs of all simulations have in common: a folder in memory, and an outcome."""

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from unittest.mock import patch

from tests.simulation.world.events import Events

MEMORY = Path("/dev/shm")
"""The folder of files in memory, on machines that have one."""


@dataclass(slots=True, frozen=True)
class Outcome:
    """The outcome of a run: the same for the same seed, if PYTHONHASHSEED is the same."""

    seed: int
    events: Events
    simulated_ms: int
    work: Counter[str]
    """How much the run has done: requests, frames, commits."""
    responses: Counter[str] = field(default_factory=Counter)
    """The responses by API and error code."""

    @property
    def failure(self) -> BaseException | None:
        return self.events.failure


@contextmanager
def seeded_folder(seed: int) -> Iterator[Path]:
    """A temporary folder, while `os.urandom` returns bytes of the seed."""
    within = MEMORY if MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-simulation-", dir=within) as folder,
        patch("os.urandom", Random(seed).randbytes),
    ):
        yield Path(folder)
