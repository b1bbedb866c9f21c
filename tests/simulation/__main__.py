"""python -m tests.simulation raft|coordinator|cluster --seed 7 | --seeds 1000 [--first 0]"""

import argparse
import os
import sys
import time
import traceback
from collections import Counter
from importlib import import_module

from tests.simulation.world.events import Violation
from tests.simulation.world.run import Outcome

SIMULATIONS = ("raft", "coordinator", "cluster")
REPEATABLE = {"PYTHONHASHSEED": "0"}


def main() -> int:
    options = _options()
    run = import_module(f"tests.simulation.{options.simulation}.run").run
    first = options.first if options.seed is None else options.seed
    count = options.seeds if options.seed is None else 1
    failed: list[int] = []
    start_s = time.monotonic()
    work: Counter[str] = Counter()
    responses: Counter[str] = Counter()
    for seed in range(first, first + count):
        outcome = run(seed)
        work += outcome.work
        responses += outcome.responses
        if outcome.failure is not None:
            failed.append(seed)
        if outcome.failure is not None or options.seed is not None:
            _print(outcome, options)
        if len(failed) >= options.failures:
            break
    seconds = time.monotonic() - start_s
    done = ", ".join(f"{number} {name}" for name, number in work.items())
    print(
        f"{seed + 1 - first} seeds, {len(failed)} failed {failed or ''}, {done} in {seconds:.1f} s"
    )
    if options.responses:
        for name, number in sorted(responses.items()):
            print(f"{number:>9} {name}")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("simulation", choices=SIMULATIONS)
    parser.add_argument("--seed", type=int, default=_seed_of_environment())
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="the first of the seeds")
    parser.add_argument("--failures", type=int, default=1, help="stop after so many failed seeds")
    parser.add_argument(
        "--trace", type=int, nargs="?", const=1_000_000, help="how many events to show"
    )
    parser.add_argument("--grep", default="", help="show only events with this text")
    parser.add_argument("--responses", action="store_true", help="count responses by error code")
    return parser.parse_args()


def _seed_of_environment() -> int | None:
    seed = os.environ.get("SEED")
    return int(seed) if seed else None


def _print(outcome: Outcome, options: argparse.Namespace) -> None:
    failure = outcome.failure
    lines = options.trace if options.trace is not None else 60 if failure is not None else 0
    if lines:
        trace = [line for line in outcome.events.trace() if options.grep in line]
        print("\n".join(trace[-lines:]))
    done = ", ".join(f"{number} {name}" for name, number in outcome.work.items())
    print(
        f"seed {outcome.seed}: {outcome.events.count} events, {done}, "
        f"{outcome.simulated_ms / 1000:.1f} s simulated, digest {outcome.events.digest:08x}"
    )
    if failure is None:
        return
    if isinstance(failure, Violation):
        print(f"seed {outcome.seed} failed: {failure.promise}: {failure}")
    if not isinstance(failure, Violation) or failure.__cause__ is not None:
        traceback.print_exception(failure)
    print(f"repeat it: python -m tests.simulation {options.simulation} --seed {outcome.seed}")


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != REPEATABLE["PYTHONHASHSEED"]:
        # The order of sets must be the same for every run of a seed.
        os.execvpe(
            sys.executable,
            [sys.executable, "-m", "tests.simulation", *sys.argv[1:]],
            os.environ | REPEATABLE,
        )
    sys.exit(main())
