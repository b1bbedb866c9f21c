"""What the runs of all simulations have in common: a folder in memory, and an outcome."""

import tempfile
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from unittest.mock import patch

from tests.simulation.world.events import Events, Violation

MEMORY = Path("/dev/shm")
"""The folder of files in memory, on machines that have one."""


@dataclass(slots=True, frozen=True)
class Failure:
    """Why a run failed."""

    promise: str
    """The name of the checker."""
    text: str
    traceback: str
    """Of an exception that is not a violation, or that caused one."""

    @classmethod
    def of(cls, exception: BaseException) -> "Failure":
        if not isinstance(exception, Violation):
            text = f"{type(exception).__name__}: {exception}"
            return cls("exception", text, _format(exception))
        cause = exception.__cause__
        return cls(exception.promise, str(exception), _format(cause) if cause else "")

    def __str__(self) -> str:
        return f"{self.promise}: {self.text}"


@dataclass(slots=True, frozen=True)
class Outcome:
    """The outcome of a run: the same for the same seed, if PYTHONHASHSEED is the same.

    It references no object of the run, so that the memory of the run can be freed.
    """

    seed: int
    failure: Failure | None
    simulated_ms: int
    events: int
    digest: int
    """Equal for two runs with the same events."""
    trace: list[str]
    """The last events, if the run failed or was traced."""
    work: Counter[str]
    """How much the run has done: requests, frames, commits."""
    responses: Counter[str] = field(default_factory=Counter)
    """The responses by API and error code."""

    @classmethod
    def of(
        cls,
        seed: int,
        events: Events,
        simulated_ms: int,
        work: Counter[str],
        *,
        responses: Counter[str] | None = None,
        is_traced: bool = False,
    ) -> "Outcome":
        failure = Failure.of(events.failure) if events.failure is not None else None
        trace = events.trace() if is_traced or failure is not None else []
        return cls(
            seed,
            failure,
            simulated_ms,
            events.count,
            events.digest,
            trace,
            work,
            responses or Counter(),
        )


@contextmanager
def seeded_folder(seed: int) -> Iterator[Path]:
    """A temporary folder, while `os.urandom` returns bytes of the seed."""
    within = MEMORY if MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-simulation-", dir=within) as folder,
        patch("os.urandom", Random(seed).randbytes),
    ):
        yield Path(folder)


def _format(exception: BaseException) -> str:
    return "".join(traceback.format_exception(exception)).rstrip()
