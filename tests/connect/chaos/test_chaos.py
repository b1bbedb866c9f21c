"""A short run of the chaos of Connect: `make chaos-spark` runs it for minutes."""

import os
from pathlib import Path

import pytest
from tests.connect.chaos.bugs import BUGS
from tests.connect.chaos.run import ChaosSettings, ConnectChaos
from tests.simulation.planted import SOURCE, Bug

SEED = int(os.environ.get("BARNABAS_SEED", "1"))
DURATION_S = float(os.environ.get("BARNABAS_CHAOS_S", "12"))


@pytest.mark.timeout(400 + 4 * DURATION_S)
def test_connectors_move_each_row_once_while_processes_are_killed(tmp_path: Path) -> None:
    chaos = ConnectChaos(tmp_path, ChaosSettings(SEED, DURATION_S, with_tables=False))
    chaos.run()
    assert not chaos.findings, "\n".join([*chaos.findings, *chaos.events])


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_planted_bugs_match_the_source(bug: Bug) -> None:
    assert bug.matches((SOURCE / "barnabas" / bug.path).read_text())
