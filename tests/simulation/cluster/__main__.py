"""python -m tests.simulation.cluster --seed 7 | --seeds 1000 [--first 0] [--trace 80] [--grep X]"""

import argparse
import os
import sys
import time
import traceback

from tests.simulation.cluster.run import Outcome, run
from tests.simulation.events import Violation

REPEATABLE = {"PYTHONHASHSEED": "0"}


def main() -> int:
    options = _options()
    first = options.first if options.seed is None else options.seed
    count = options.seeds if options.seed is None else 1
    failed: list[int] = []
    began_s, frames = time.monotonic(), 0
    for seed in range(first, first + count):
        outcome = run(seed)
        frames += outcome.frames
        if outcome.failure is not None:
            failed.append(seed)
        if outcome.failure is not None or options.seed is not None:
            _tell_of(outcome, options.trace, options.grep)
        if len(failed) >= options.failures:
            break
    seconds = time.monotonic() - began_s
    print(
        f"{seed + 1 - first} seeds, {len(failed)} failed {failed or ''}, "
        f"{frames} frames in {seconds:.1f} s"
    )
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.cluster")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--failures", type=int, default=1, help="stop after so many")
    parser.add_argument(
        "--trace", type=int, nargs="?", const=1_000_000, default=60, help="how many events to show"
    )
    parser.add_argument("--grep", default="", help="show only events that have this in them")
    return parser.parse_args()


def _tell_of(outcome: Outcome, trace: int, grep: str) -> None:
    for line in [each for each in outcome.trace if grep in each][-trace:] if trace else []:
        print(line)
    print(
        f"seed {outcome.seed}: {outcome.events} events, {outcome.frames} frames, "
        f"{outcome.simulated_ms / 1000:.1f} s simulated, digest {outcome.digest:08x}"
    )
    failure = outcome.failure
    if failure is None:
        return
    if isinstance(failure, Violation):
        print(f"seed {outcome.seed} failed: {failure.promise}: {failure}")
    if not isinstance(failure, Violation) or failure.__cause__ is not None:
        traceback.print_exception(failure)
    print(f"again: python -m tests.simulation.cluster --seed {outcome.seed}")


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != REPEATABLE["PYTHONHASHSEED"]:
        # The order of sets is part of what a seed must repeat.
        os.execvpe(
            sys.executable,
            [sys.executable, "-m", "tests.simulation.cluster", *sys.argv[1:]],
            os.environ | REPEATABLE,
        )
    sys.exit(main())
