"""Some seeds of the simulation; `python -m tests.simulation raft --seeds 1000` runs more."""

import os

import pytest
from tests.simulation.raft.run import run

SEEDS = int(os.environ.get("RAFT_SIMULATION_SEEDS", "150"))


@pytest.mark.parametrize("batch", range(4))
def test_a_quorum_keeps_its_invariants_under_random_faults(batch: int) -> None:
    for seed in range(batch, SEEDS, 4):
        outcome = run(seed)
        assert outcome.failure is None, "\n".join((*outcome.trace[-50:], f"seed {seed}"))
