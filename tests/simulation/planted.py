"""Bugs to plant into a copy of the broker: for each, some checker must find out.

    python -m tests.simulation.planted [--seeds 300] [NAME ...]

The bugs are edits of the source. One that no longer fits the source is told of: mend it here.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


class Bug(NamedTuple):
    """An edit of one file."""

    name: str
    path: str
    good: str
    bad: str


BUGS = [
    Bug(
        "give-before-revoked",
        "coordinator/groups/consumer/reconciliation.py",
        "if partition not in own and is_owned(topic_id, partition):",
        "if False:",
    ),
    Bug(
        "rebalance-waits-for-nobody",
        "coordinator/groups/classic/rebalance.py",
        """    if group.has_all_joined:
        return complete(group, groups, context)
    _await_joins(group, groups)
    return []
""",
        "    return complete(group, groups, context)\n",
    ),
    Bug(
        "any-generation-commits",
        "coordinator/groups/classic/group.py",
        """            self.check_member(member_id, instance_id)
            self.check_generation(epoch)
        elif""",
        """            self.check_member(member_id, instance_id)
        elif""",
    ),
    Bug(
        "answer-before-commit",
        "coordinator/shard.py",
        """        else:
            self._log.when_committed(end_offset, self._write_timeout_ms, on_committed)
        return response""",
        """        else:
            on_committed(None)
        return response""",
    ),
    Bug(
        "abort-keeps-offsets",
        "coordinator/groups/offsets/pending.py",
        "offset = by_producer[producer_id] if committed else None",
        "offset = by_producer[producer_id]",
    ),
    Bug(
        "zombies-end-transactions",
        "coordinator/transactions/end_txn.py",
        """    if request.producer_epoch != current.producer_epoch:
        raise fenced(current, request.producer_id, request.producer_epoch)
""",
        "",
    ),
    Bug(
        "zombies-add-partitions",
        "coordinator/transactions/add_partitions.py",
        "if current.producer_epoch != request.producer_epoch:",
        "if False:",
    ),
    Bug(
        "no-verification",
        "log/producers/producer_state.py",
        "if must_verify and header.is_transactional:",
        "if False:",
    ),
    Bug(
        "complete-before-told",
        "coordinator/transactions/markers.py",
        "(each for each, code in codes.items() if code in DONE)",
        "(tuple(markers.remaining))",
    ),
    Bug(
        "endings-lost-by-load",
        "coordinator/transactions/state.py",
        "        return resume_markers(self)\n",
        "        return ()\n",
    ),
    Bug(
        "timeouts-lost-by-load",
        "coordinator/transactions/timeouts.py",
        "        self._schedule_abort(self._settings.broker(ABORT_INTERVAL))\n",
        "",
    ),
    Bug(
        "sessions-lost-by-load",
        "coordinator/groups/classic/replay.py",
        """    for member in group.members.values():
        groups.timers.start(rebalance.session_timer(group, member))
""",
        "",
    ),
    Bug(
        "load-forgets-markers",
        "coordinator/loader.py",
        "        _replay_markers(run, state)\n",
        "",
    ),
]


def main(bugs: list[Bug], simulation: str) -> int:
    """Plant them one by one and run `simulation`, a module."""
    parser = argparse.ArgumentParser(prog=f"python -m {simulation}.planted")
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    chosen = [bug for bug in bugs if not options.names or bug.name in options.names]
    unnoticed = 0
    for bug in chosen:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "src"
            shutil.copytree(SOURCE / "barnabas", copy / "barnabas")
            found = hunt(copy, simulation, options.seeds) if plant(bug, copy) else None
        unnoticed += found is None
        print(f"{bug.name:<28} {found or 'not noticed'}", flush=True)
    return 1 if unnoticed else 0


def plant(bug: Bug, source: Path) -> bool:
    """Whether it fits."""
    path = source / "barnabas" / bug.path
    text = path.read_text()
    if text.count(bug.good) != 1:
        print(f"{bug.name} does not fit {bug.path} any more: mend {__file__}")
        return False
    path.write_text(text.replace(bug.good, bug.bad))
    return True


def hunt(source: Path, simulation: str, seeds: int) -> str | None:
    """By which checker and which seed it was found, if it was."""
    command = [sys.executable, "-m", simulation, "--seeds", str(seeds), "--trace", "0"]
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
    result = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    found = re.search(r"seed (\d+) failed: (\S+): (.{0,100})", result.stdout)
    if found is not None:
        return f"{found[2]} by seed {found[1]}: {found[3]}"
    return (result.stderr or "?")[-300:] if result.returncode else None


if __name__ == "__main__":
    sys.exit(main(BUGS, "tests.simulation"))
