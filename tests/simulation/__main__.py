"""Runs seeds of a simulation: one of them with a trace, or many on all cores."""

import argparse
import os
import sys
from functools import partial
from pathlib import Path

from tests.simulation.planted import PLANTED_BUG, SIMULATIONS, bugs_of, run_with_bug
from tests.simulation.seeds import Summary, run_seed, run_seeds
from tests.simulation.world.run import Outcome

REPEATABLE = {"PYTHONHASHSEED": "0"}
"""The order of sets must be the same for every run of a seed."""

INTERRUPTED = 130
TRACE_LINES = 60


def main() -> int:
    options = _options()
    if options.bug is not None and os.environ.get(PLANTED_BUG) != options.bug:
        bug = next(bug for bug in bugs_of(options.simulation) if bug.name == options.bug)
        return run_with_bug(bug, sys.argv[1:]).returncode
    if options.seed is not None:
        outcome = run_seed(options.simulation, options.seed, is_traced=True)
        _print(options, outcome)
        return int(outcome.failure is not None)
    summary = run_seeds(
        options.simulation,
        options.first,
        options.seeds,
        max_failures=options.failures,
        processes=options.processes,
        on_failure=partial(_print, options),
    )
    print(summary)
    if options.responses:
        for name, number in sorted(summary.responses.items()):
            print(f"{number:>9} {name}")
    return _exit_code(summary, options.bug)


def _exit_code(summary: Summary, bug: str | None) -> int:
    """A planted bug must be found; without one, no seed may fail."""
    if summary.is_interrupted:
        return INTERRUPTED
    if bug is None:
        return int(bool(summary.failed))
    print(f"{bug} was {'found' if summary.failed else 'not found'}")
    return int(not summary.failed)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("simulation", choices=SIMULATIONS)
    parser.add_argument("--seed", type=int, default=_seed_of_environment(), help="run only this")
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of the seeds")
    parser.add_argument("--failures", type=int, help="stop after so many failed seeds")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many at once")
    parser.add_argument("--bug", help="plant this bug into a copy of the source first")
    parser.add_argument(
        "--trace", type=int, nargs="?", const=1_000_000, help="how many events to show"
    )
    parser.add_argument("--grep", default="", help="show only events with this text")
    parser.add_argument("--responses", action="store_true", help="count responses by error code")
    options = parser.parse_args()
    if options.bug is not None and options.bug not in {b.name for b in bugs_of(options.simulation)}:
        parser.error(f"{options.simulation} has no bug {options.bug}")
    if options.failures is None:
        options.failures = 10 if options.bug is None else 1
    return options


def _seed_of_environment() -> int | None:
    seed = os.environ.get("SEED")
    return int(seed) if seed else None


def _print(options: argparse.Namespace, outcome: Outcome) -> None:
    failure = outcome.failure
    default_lines = TRACE_LINES if failure is not None else 0
    lines = options.trace if options.trace is not None else default_lines
    if lines:
        trace = [line for line in outcome.trace if options.grep in line]
        print("\n".join(trace[-lines:]))
    work = ", ".join(f"{number} {name}" for name, number in outcome.work.items())
    print(
        f"seed {outcome.seed}: {outcome.events} events, {work}, "
        f"{outcome.simulated_ms / 1000:.1f} s simulated, digest {outcome.digest:08x}"
    )
    if failure is None:
        return
    print(f"seed {outcome.seed} failed: {failure}")
    if failure.traceback:
        print(failure.traceback)
    python = os.path.relpath(sys.executable) if Path.cwd() in Path(sys.executable).parents else ""
    bug = f" --bug {options.bug}" if options.bug is not None else ""
    print(
        f"repeat it: {python or sys.executable} -m tests.simulation {options.simulation} "
        f"--seed {outcome.seed}{bug}",
        flush=True,
    )


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != REPEATABLE["PYTHONHASHSEED"]:
        os.execvpe(
            sys.executable,
            [sys.executable, "-m", "tests.simulation", *sys.argv[1:]],
            os.environ | REPEATABLE,
        )
    sys.exit(main())
