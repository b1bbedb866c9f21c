"""Kill the processes of Connect workers for minutes and check every row: `make chaos-spark`.

python -m tests.connect.chaos --seed 1 --minutes 10
python -m tests.connect.chaos --seed 1 --minutes 1 --bug source-not-fenced
"""

import argparse
import contextlib
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.connect.chaos.bugs import BUGS, plant_bug
from tests.connect.chaos.run import ChaosSettings, ConnectChaos


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.connect.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="of the faults")
    parser.add_argument("--minutes", type=float, default=10, help="of faults")
    parser.add_argument("--brokers", type=int, choices=[1, 3], default=1)
    parser.add_argument("--database", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--bug", choices=sorted({bug.name for bug in BUGS}), help="to find")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # all processes end with it
    directory = Path(tempfile.mkdtemp(prefix="connect-chaos-"))
    with _source(options.bug, directory) as source:
        chaos = ConnectChaos(
            directory,
            ChaosSettings(
                options.seed,
                options.minutes * 60,
                brokers=options.brokers,
                database=options.database,
                source=source,
            ),
        )
        chaos.run()
    if chaos.findings:
        print(f"\nseed {options.seed} has failed:")
        for finding in chaos.findings:
            print(f"  {finding}")
        print(f"All logs and files are in {directory}.")
        return 1
    print(f"\nseed {options.seed}: {chaos.faults} faults and requests; each row was there once")
    shutil.rmtree(directory)
    return 0


@contextlib.contextmanager
def _source(bug: str | None, directory: Path) -> Iterator[Path]:
    """Yields the folder of the package, or of a copy with the bug."""
    if bug is None:
        yield ChaosSettings.__dataclass_fields__["source"].default
        return
    copy = directory / "source"
    plant_bug(bug, copy)
    try:
        yield copy
    finally:
        shutil.rmtree(copy)


if __name__ == "__main__":
    sys.exit(main())
