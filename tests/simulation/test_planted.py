"""The bugs that the simulations plant are edits of the source, and must match it."""

import pytest
from tests.simulation.planted import SIMULATIONS, SOURCE, Bug, bugs_of


@pytest.mark.parametrize(
    "bug",
    [pytest.param(bug, id=bug.name) for name in SIMULATIONS for bug in bugs_of(name)],
)
def test_a_planted_bug_matches_the_source_once(bug: Bug) -> None:
    assert bug.matches((SOURCE / "barnabas" / bug.path).read_text()), bug.path
