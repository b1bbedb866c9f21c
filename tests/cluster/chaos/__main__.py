"""Injects faults into a cluster for minutes and checks its invariants: `make chaos`.

python -m tests.cluster.chaos --seed 1 --minutes 10 --report build/chaos.md
"""

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.cluster.chaos.clients import by_name
from tests.cluster.chaos.run import ChaosRun
from tests.cluster.cluster import Quorum
from tests.cluster.node import PROGRAMS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the random faults")
    parser.add_argument("--minutes", type=float, default=10, help="of faults")
    parser.add_argument(
        "--nodes",
        default="barnabas,barnabas,barnabas",
        help="the program of each of the three: barnabas or kafka",
    )
    parser.add_argument("--quorum", choices=["static", "dynamic"], default="dynamic")
    parser.add_argument("--separate", action="store_true", help="controllers beside the brokers")
    parser.add_argument(
        "--clients", choices=["confluent-kafka", "barnabas"], default="confluent-kafka"
    )
    parser.add_argument("--secure", action="store_true", help="SASL_SSL on all listeners, and ACLs")
    parser.add_argument("--report", type=Path, default=Path("build/chaos.md"))
    options = parser.parse_args()
    programs = [PROGRAMS[name] for name in options.nodes.split(",")]
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the nodes end with it
    directory = Path(tempfile.mkdtemp(prefix="chaos-"))
    chaos = ChaosRun(
        directory,
        programs,
        seed=options.seed,
        duration_s=options.minutes * 60,
        quorum=Quorum[options.quorum.upper()],
        is_separate=options.separate,
        clients=by_name(options.clients),
        is_secured=options.secure,
    )
    chaos.run()
    options.report.parent.mkdir(parents=True, exist_ok=True)
    options.report.write_text(chaos.report)
    print(f"\n{chaos.report}\nThis is also in {options.report}.")
    if chaos.findings:
        print(f"The nodes' files are in {directory}.")
        return 1
    shutil.rmtree(directory)
    return 0


if __name__ == "__main__":
    sys.exit(main())
