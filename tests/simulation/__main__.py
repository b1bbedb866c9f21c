"""python -m tests.simulation --seed 7 | --seeds 1000 [--first 0] [--trace 80] [--grep TEXT]"""

import argparse
import os
import sys
import time
import traceback
from collections import Counter

from tests.simulation.events import Violation
from tests.simulation.run import Outcome, run

REPEATABLE = {"PYTHONHASHSEED": "0"}


def main() -> int:
    options = _options()
    first = options.first if options.seed is None else options.seed
    count = options.seeds if options.seed is None else 1
    failed: list[int] = []
    began_s, requests = time.monotonic(), 0
    counts: Counter[str] = Counter()
    for seed in range(first, first + count):
        outcome = run(seed)
        requests += outcome.requests
        counts += outcome.counts
        if outcome.failure is not None:
            failed.append(seed)
            _tell_of(outcome, options.trace, options.grep)
            if len(failed) >= options.failures:
                break
        elif options.seed is not None:
            _tell_of(outcome, 0, "")
    seconds = time.monotonic() - began_s
    print(
        f"{seed + 1 - first} seeds, {len(failed)} failed {failed or ''}, "
        f"{requests} requests in {seconds:.1f} s"
    )
    if options.tally:
        for what, count in sorted(counts.items()):
            print(f"{count:>9} {what}")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, default=_seed_of_environment())
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--failures", type=int, default=1, help="stop after so many")
    parser.add_argument("--trace", type=int, default=60, help="how many events to show")
    parser.add_argument("--grep", default="", help="show only events that have this in them")
    parser.add_argument("--tally", action="store_true", help="show what was answered how often")
    return parser.parse_args()


def _seed_of_environment() -> int | None:
    seed = os.environ.get("SEED")
    return int(seed) if seed else None


def _tell_of(outcome: Outcome, trace: int, grep: str) -> None:
    print(
        f"seed {outcome.seed}: {outcome.events} events, {outcome.requests} requests, "
        f"{outcome.simulated_ms / 1000:.0f} s simulated, quiet after "
        f"{outcome.quiet_after_ms / 1000:.1f} s, digest {outcome.digest:08x}"
    )
    if outcome.failure is None:
        return
    for line in [each for each in outcome.trace if grep in each][-trace:]:
        print(line)
    failure = outcome.failure
    if isinstance(failure, Violation):
        print(f"seed {outcome.seed} failed: {failure.promise}: {failure}")
    if not isinstance(failure, Violation) or failure.__cause__ is not None:
        traceback.print_exception(failure)
    print(f"again: python -m tests.simulation --seed {outcome.seed}")


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != REPEATABLE["PYTHONHASHSEED"]:
        # The order of sets is part of what a seed must repeat.
        os.execvpe(
            sys.executable,
            [sys.executable, "-m", "tests.simulation", *sys.argv[1:]],
            os.environ | REPEATABLE,
        )
    sys.exit(main())
