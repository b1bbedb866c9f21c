"""Bugs to plant into a copy of the consensus: for each, some checker must find out.

    python -m tests.raft.simulation.planted [--seeds 1000] [NAME ...]

The bugs are edits of the source. One that no longer matches the source is reported: fix it here.
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

ROOT = Path(__file__).parents[3]
SOURCE = ROOT / "src"


class Bug(NamedTuple):
    """An edit of one file."""

    name: str
    path: str
    good: str
    bad: str


BUGS = [
    Bug(
        "vote-twice",
        "election.py",
        """            case Unattached() as role if role.voted_key is None:
                role.voted_key = candidate
""",
        """            case Unattached() as role if role.voted_key is None:
""",
    ),
    Bug(
        "vote-for-shorter-logs",
        "election.py",
        "up_to_date = (request.last_epoch, request.last_offset) >= own_end",
        "up_to_date = (request.last_epoch, request.last_offset) >= (0, 0)",
    ),
    Bug(
        "longest-log-wins",
        "election.py",
        "up_to_date = (request.last_epoch, request.last_offset) >= own_end",
        "up_to_date = request.last_offset >= own_end[1]",
    ),
    Bug(
        "answer-before-persist",
        "election.py",
        """                role.timeout_at_ms = now_ms + timeout_ms()
        self._node.persist_state()
""",
        """                role.timeout_at_ms = now_ms + timeout_ms()
""",
    ),
    Bug(
        "forget-vote-by-restart",
        "raft_node.py",
        "return Unattached(epoch, leader_id, state.voted_key, election_at_ms)",
        "return Unattached(epoch, leader_id, None, election_at_ms)",
    ),
    Bug(
        "lead-again-after-restart",
        "raft_node.py",
        "return Resigned(epoch, leader_id, (), self.other_voter_ids(), election_at_ms)",
        "return Unattached(epoch, election_at_ms=election_at_ms)",
    ),
    Bug(
        "stand-without-new-epoch",
        "raft_node.py",
        """            self.epoch + 1,
            VoteTally(""",
        """            max(1, self.epoch),
            VoteTally(""",
    ),
    Bug(
        "stand-only-once",
        "raft_node.py",
        "Unattached(self.epoch, voted_key=voted_key, election_at_ms=election_at_ms)",
        "Unattached(self.epoch, voted_key=voted_key)",
    ),
    Bug(
        "commit-old-epochs",
        "leadership.py",
        "if majority_end_offset > max(leader.start_offset, leader.high_watermark):",
        "if majority_end_offset > leader.high_watermark:",
    ),
    Bug(
        "count-own-undurable-end",
        "leadership.py",
        "progress.end_offset = node.durable_end_offset",
        "progress.end_offset = node.log.end_offset",
    ),
    Bug(
        "majority-of-half",
        "voters.py",
        "return len(self._by_id.keys() & set(node_ids)) > len(self._by_id) // 2",
        "return len(self._by_id.keys() & set(node_ids)) >= len(self._by_id) / 2",
    ),
    Bug(
        "commit-by-one-too-few",
        "voters.py",
        "return reached[len(reached) // 2]",
        "return reached[(len(reached) - 1) // 2]",
    ),
    Bug(
        "follow-older-leaders",
        "raft_node.py",
        "        elif epoch == self.epoch and is_other:",
        "        elif is_other:",
    ),
    Bug(
        "no-divergence",
        "log_view.py",
        "if end.epoch != last_fetched_epoch or end.end_offset < offset:",
        "if end.end_offset < offset:",
    ),
    Bug(
        "truncate-too-far",
        "log_view.py",
        "        return FetchOutcome(diverging=end)",
        "        return FetchOutcome(diverging=EpochEndOffset(end.epoch, log.start_offset))",
    ),
    Bug(
        "pre-vote-granted-always",
        "election.py",
        "return request.pre_vote and up_to_date and not follower.is_leader_reachable",
        "return request.pre_vote and up_to_date",
    ),
    Bug(
        "leader-grants-pre-votes",
        "election.py",
        """            case Leader():
                return False
""",
        """            case Leader():
                return request.pre_vote
""",
    ),
    Bug(
        "old-voters-still-counted",
        "leadership.py",
        "        leader.progress.update_voters(self._node.voters)\n",
        "",
    ),
]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.raft.simulation.planted")
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    unnoticed = 0
    for bug in BUGS:
        if options.names and bug.name not in options.names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "src"
            shutil.copytree(SOURCE / "barnabas", copy / "barnabas")
            found = hunt(copy, options.seeds) if plant(bug, copy) else None
        unnoticed += found is None
        print(f"{bug.name:<28} {found or 'not noticed'}", flush=True)
    return 1 if unnoticed else 0


def plant(bug: Bug, source: Path) -> bool:
    """Whether it fits."""
    path = source / "barnabas" / "raft" / bug.path
    text = path.read_text()
    if text.count(bug.good) != 1:
        print(f"{bug.name} does not fit {bug.path} any more: fix {__file__}")
        return False
    path.write_text(text.replace(bug.good, bug.bad))
    return True


def hunt(source: Path, seeds: int) -> str | None:
    """Returns the invariant that was violated, and the seed."""
    command = [sys.executable, "-m", "tests.raft.simulation", "--seeds", str(seeds)]
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}"}
    result = subprocess.run(
        [*command, "--trace", "0"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.search(r"seed (\d+) failed: (.{0,120})", result.stdout)
    if found is not None:
        return f"seed {found[1]}: {found[2]}"
    return (result.stderr or "?")[-300:] if result.returncode else None


if __name__ == "__main__":
    sys.exit(main())
