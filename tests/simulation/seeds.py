"""Runs many seeds of a simulation on all cores, with a progress line."""

import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from multiprocessing import get_context

from tests.simulation.world.run import Outcome

PROGRESS_S = 0.2
PROGRESS_WITHOUT_TERMINAL_S = 30.0


@dataclass(slots=True)
class Summary:
    """What many seeds have done, so far."""

    first: int
    seeds: int
    done: int = 0
    failed: list[int] = field(default_factory=list)
    is_interrupted: bool = False
    work: Counter[str] = field(default_factory=Counter)
    responses: Counter[str] = field(default_factory=Counter)
    start_s: float = field(default_factory=time.monotonic)

    def add(self, outcome: Outcome) -> None:
        self.done += 1
        self.work += outcome.work
        self.responses += outcome.responses
        if outcome.failure is not None:
            self.failed.append(outcome.seed)

    @property
    def progress(self) -> str:
        elapsed_s = time.monotonic() - self.start_s
        rate = self.done / elapsed_s if elapsed_s else 0.0
        left_s = (self.seeds - self.done) / rate if rate else 0.0
        return (
            f"{self.done} of {self.seeds} seeds, {len(self.failed)} failed, "
            f"{rate:.1f} seeds/s, {left_s:.0f} s left"
        )

    def __str__(self) -> str:
        failed = f" ({', '.join(map(str, self.failed))})" if self.failed else ""
        work = "".join(f", {number} {name}" for name, number in self.work.items())
        stopped = "interrupted: " if self.is_interrupted else ""
        return (
            f"{stopped}{self.done} seeds from {self.first}, {len(self.failed)} failed{failed}"
            f"{work} in {time.monotonic() - self.start_s:.1f} s"
        )


def run_seeds(
    simulation: str,
    first: int,
    seeds: int,
    *,
    max_failures: int,
    processes: int,
    on_failure: Callable[[Outcome], None],
) -> Summary:
    """Runs the seeds in order, until so many have failed. Ctrl-C ends it early."""
    summary = Summary(first, seeds)
    progress = _ProgressLine(summary)
    executor = ProcessPoolExecutor(processes, get_context("fork"), _ignore_interrupts)
    try:
        for outcome in executor.map(partial(run_seed, simulation), range(first, first + seeds)):
            summary.add(outcome)
            if outcome.failure is not None:
                progress.clear()
                on_failure(outcome)
            if len(summary.failed) >= max_failures:
                break
            progress.show()
    except KeyboardInterrupt:
        summary.is_interrupted = True
    finally:
        progress.clear()
        executor.shutdown(cancel_futures=True)
    return summary


def run_seed(simulation: str, seed: int, *, is_traced: bool = False) -> Outcome:
    run = import_module(f"tests.simulation.{simulation}.run").run
    outcome: Outcome = run(seed, is_traced=is_traced)
    return outcome


def _ignore_interrupts() -> None:
    """Ctrl-C is sent to every process of the terminal; only the first one handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class _ProgressLine:
    """One line that is written again and again; without a terminal, a line now and then."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary
        self._is_terminal = sys.stderr.isatty()
        self._every_s = PROGRESS_S if self._is_terminal else PROGRESS_WITHOUT_TERMINAL_S
        self._next_s = summary.start_s + self._every_s

    def show(self) -> None:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + self._every_s
        end = "\r" if self._is_terminal else "\n"
        print(f"{self._summary.progress:<79}", end=end, file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._is_terminal:
            print(" " * 79, end="\r", file=sys.stderr, flush=True)
