"""Bugs in Connect that the checkers must find. Edits of the same name make one bug."""

import shutil
from pathlib import Path

from tests.simulation.planted import SOURCE, Bug, plant

BUGS = [
    Bug(
        "positions-outside-transaction",
        "connect/execution/source_item.py",
        "result = writer.write_all(with_positions=True)",
        "result = writer.write_all(with_positions=False)",
    ),
    Bug(
        "positions-outside-transaction",
        "connect/execution/source_work.py",
        "            await self._blocking.run(self._committer.commit, self._job, written)\n",
        "            await self._blocking.run(self._committer.commit, self._job, written)\n"
        "            if moved:\n"
        "                await self._context.services.positions.write(self._context.name, moved)\n",
    ),
    Bug(
        "source-not-fenced",
        "connect/execution/committer.py",
        "        last = self._log.fence_other_drivers()\n",
        "        last = self._log.read()\n",
    ),
    Bug(
        "orphans-left-open",
        "connect/execution/committer.py",
        "            orphans = protocol.abort_orphans(self._log)\n",
        "            orphans = []\n",
    ),
    Bug(
        "pending-files-kept",
        "connect/connectors/object_store/positions.py",
        "            if not is_committed:\n",
        "            if False:\n",
    ),
    Bug(
        "table-positions-not-checked",
        "connect/connectors/jdbc/positions.py",
        '                f"AND kafka_offset = {position.offset} AND epoch = {position.epoch} "\n',
        '                f"AND {position.epoch} >= 0 "\n',
    ),
    Bug(
        "dead-instances-stay-running",
        "connect/herder/statuses.py",
        "    return status.worker_id not in living and status.state is not State.UNASSIGNED\n",
        "    return False\n",
    ),
]


def plant_bug(name: str, copy: Path) -> None:
    """Copies the source to a new folder, with the edits of a bug."""
    shutil.copytree(SOURCE / "barnabas", copy / "barnabas")
    for bug in BUGS:
        if bug.name == name:
            plant(bug, copy)
