"""Bugs to plant into a copy of the consensus: for each, some checker must find out.

    python -m tests.raft.simulation.planted [--seeds 1000] [NAME ...]

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
        "voting.py",
        """            case Unattached() as role if role.voted is None:
                role.voted = candidate
""",
        """            case Unattached() as role if role.voted is None:
""",
    ),
    Bug(
        "vote-for-shorter-logs",
        "voting.py",
        "up_to_date = (asked.last_epoch, asked.last_offset) >= mine",
        "up_to_date = (asked.last_epoch, asked.last_offset) >= (0, 0)",
    ),
    Bug(
        "longest-log-wins",
        "voting.py",
        "up_to_date = (asked.last_epoch, asked.last_offset) >= mine",
        "up_to_date = asked.last_offset >= mine[1]",
    ),
    Bug(
        "answer-before-persist",
        "voting.py",
        """                role.give_up_at_ms = now_ms + self._election_timeout_ms()
        self._persist()
""",
        """                role.give_up_at_ms = now_ms + self._election_timeout_ms()
""",
    ),
    Bug(
        "forget-vote-by-restart",
        "member.py",
        "return Unattached(epoch, leader_id, state.voted, stand_at_ms)",
        "return Unattached(epoch, leader_id, None, stand_at_ms)",
    ),
    Bug(
        "lead-again-after-restart",
        "member.py",
        "return Resigned(epoch, leader_id, (), others, stand_at_ms)",
        "return Unattached(epoch, stand_at_ms=stand_at_ms)",
    ),
    Bug(
        "stand-without-new-epoch",
        "member.py",
        """            self.epoch + 1,
            Ballot(""",
        """            max(1, self.epoch),
            Ballot(""",
    ),
    Bug(
        "stand-only-once",
        "member.py",
        "self._become(Unattached(self.epoch, voted=voted, stand_at_ms=stand_at_ms))",
        "self._become(Unattached(self.epoch, voted=voted))",
    ),
    Bug(
        "commit-old-epochs",
        "leading.py",
        "if reached > max(leader.start_offset, leader.high_watermark):",
        "if reached > leader.high_watermark:",
    ),
    Bug(
        "count-own-undurable-end",
        "leading.py",
        "leader.progress.of(self.node, now_ms).end_offset = self._durable_end",
        "leader.progress.of(self.node, now_ms).end_offset = self._log.end_offset",
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
        "voting.py",
        "        elif epoch == self.epoch and known:",
        "        elif known:",
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
        "        return FetchVerdict(diverging=end)",
        "        return FetchVerdict(diverging=EpochEnd(end.epoch, log.start_offset))",
    ),
    Bug(
        "pre-vote-granted-always",
        "voting.py",
        "return asked.pre_vote and up_to_date and not follower.hears_leader",
        "return asked.pre_vote and up_to_date",
    ),
    Bug(
        "leader-grants-pre-votes",
        "voting.py",
        """            case Leader():
                return False
""",
        """            case Leader():
                return asked.pre_vote
""",
    ),
    Bug(
        "new-voters-are-not-asked",
        "leading.py",
        """                leader.progress.change(voters)
""",
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
        print(f"{bug.name} does not fit {bug.path} any more: mend {__file__}")
        return False
    path.write_text(text.replace(bug.good, bug.bad))
    return True


def hunt(source: Path, seeds: int) -> str | None:
    """Which promise was found broken, and by which seed."""
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
