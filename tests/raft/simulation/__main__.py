"""python -m tests.raft.simulation --seeds 1000 [--first 0] | --seed 7 [--trace 80]"""

import argparse
import sys
import time

from tests.raft.simulation.run import Outcome, run


def main() -> int:
    options = _options()
    first = options.first if options.seed is None else options.seed
    count = options.seeds if options.seed is None else 1
    began_s = time.monotonic()
    failed: list[int] = []
    committed = epochs = 0
    for seed in range(first, first + count):
        outcome = run(seed)
        committed += outcome.committed
        epochs += outcome.epochs
        if outcome.failure is not None or options.seed is not None:
            _tell_of(outcome, options.trace)
        if outcome.failure is not None:
            failed.append(seed)
            if len(failed) >= options.failures:
                break
    seconds = time.monotonic() - began_s
    print(
        f"{seed + 1 - first} seeds, {len(failed)} failed {failed or ''}, {epochs} leaders, "
        f"{committed} records committed in {seconds:.1f} s"
    )
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.raft.simulation", description=__doc__)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--failures", type=int, default=1, help="stop after so many")
    parser.add_argument("--trace", type=int, default=40, help="how many events to show")
    return parser.parse_args()


def _tell_of(outcome: Outcome, events: int) -> None:
    print("\n".join(outcome.trace[-events:] if events else []), outcome.where, sep="\n")
    print(f"seed {outcome.seed} failed: {outcome.failure}" if outcome.failure else "all is well")


if __name__ == "__main__":
    sys.exit(main())
