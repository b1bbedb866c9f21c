"""Hurt a cluster for minutes and check that it keeps its promises: `make chaos`.

python -m tests.cluster.chaos --seed 1 --minutes 10 --report build/chaos.md
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.cluster.chaos.run import ChaosRun
from tests.cluster.node import PROGRAMS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="decides what happens")
    parser.add_argument("--minutes", type=float, default=10, help="of faults")
    parser.add_argument(
        "--nodes",
        default="barnabas,barnabas,barnabas",
        help="the program of each of the three: barnabas or kafka",
    )
    parser.add_argument("--report", type=Path, default=Path("build/chaos.md"))
    options = parser.parse_args()
    programs = [PROGRAMS[each] for each in options.nodes.split(",")]
    with tempfile.TemporaryDirectory(prefix="chaos-") as directory:
        chaos = ChaosRun(
            Path(directory), programs, seed=options.seed, duration_s=options.minutes * 60
        )
        chaos.run()
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(chaos.report)
    print(f"\n{chaos.report}\nThis is also in {options.report}.")
    return 1 if chaos.findings else 0


if __name__ == "__main__":
    sys.exit(main())
