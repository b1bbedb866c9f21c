"""Kill a pipeline for minutes and count what it has written: `make chaos-spark`.

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
"""That it survives, before one that it does not."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark.exactly_once", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="decides who dies, and when")
    parser.add_argument("--minutes", type=float, default=10, help="of kills")
    parser.add_argument("--bootstrap", help="brokers to use instead of one of its own")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="exactly-once-") as directory:
        if told.bootstrap:
            return _trials(told.bootstrap, Path(directory), told.seed, told.minutes)
        with Broker() as broker:
            return _trials(broker.bootstrap_servers, Path(directory), told.seed, told.minutes)


def _trials(bootstrap_servers: str, directory: Path, seed: int, minutes: float) -> int:
    """A plain pipeline, one with state, one on a cluster whose machines die; and stragglers."""
    each_s = minutes * 60 / 3
    for name in ("plain", "stateful"):
        home = directory / name
        home.mkdir()
        trial = Trial(bootstrap_servers, home, seed, is_stateful=name == "stateful")
        trial.run(kills_a_life=KILLS_A_LIFE, until_s=time.monotonic() + each_s)
        print(trial, flush=True)
    home = directory / "cluster"
    home.mkdir()
    trial = Trial(bootstrap_servers, home, seed, survived=ON_A_CLUSTER)
    with Standalone(home / "spark", mark=trial.mark) as cluster:
        trial.master = cluster.url
        trial.run(kills_a_life=KILLS_A_LIFE, until_s=time.monotonic() + each_s)
        print(trial, flush=True)
        speculating = [sys.executable, "-m", "tests.spark.cluster.speculation", cluster.url]
        return subprocess.run([*speculating, bootstrap_servers, home], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
