"""Kill processes of a pipeline for minutes and check its output: `make chaos-spark`.

python -m tests.spark.exactly_once --seed 1 --minutes 10
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.spark.cluster.standalone import Standalone
from tests.spark.exactly_once.trial import ON_A_CLUSTER, Trial

from barnabas.testing import Broker

KILLS_A_LIFE = 8
"""Kills that the pipeline survives, before one that it does not."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.exactly_once", description=__doc__)
    parser.add_argument(
        "--seed", type=int, default=1, help="selects the processes to kill, and when"
    )
    parser.add_argument("--minutes", type=float, default=10, help="of kills")
    parser.add_argument("--bootstrap", help="existing brokers to use")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="exactly-once-") as directory:
        if options.bootstrap:
            return _trials(options.bootstrap, Path(directory), options.seed, options.minutes)
        with Broker() as broker:
            return _trials(broker.bootstrap_servers, Path(directory), options.seed, options.minutes)


def _trials(bootstrap_servers: str, directory: Path, seed: int, minutes: float) -> int:
    """Run a plain pipeline, one with state, one on a cluster, and one with speculation."""
    trial_s = minutes * 60 / 3
    for name in ("plain", "stateful"):
        folder = directory / name
        folder.mkdir()
        trial = Trial(bootstrap_servers, folder, seed, is_stateful=name == "stateful")
        trial.run(kills_a_life=KILLS_A_LIFE, until_s=time.monotonic() + trial_s)
        print(trial, flush=True)
    folder = directory / "cluster"
    folder.mkdir()
    trial = Trial(bootstrap_servers, folder, seed, survived=ON_A_CLUSTER)
    with Standalone(folder / "spark", mark=trial.mark) as cluster:
        trial.master = cluster.url
        trial.run(kills_a_life=KILLS_A_LIFE, until_s=time.monotonic() + trial_s)
        print(trial, flush=True)
        command = [sys.executable, "-m", "tests.spark.cluster.speculation", cluster.url]
        return subprocess.run([*command, bootstrap_servers, folder], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
