"""Three nodes with min.insync.replicas 2 under random faults.

`make chaos` does the same for minutes, and writes a report.
"""

import os
from pathlib import Path

import pytest
from tests.cluster.chaos.clients import by_name
from tests.cluster.chaos.run import ChaosRun
from tests.cluster.node import BARNABAS, KAFKA, NodeProgram

SEED = int(os.environ.get("BARNABAS_SEED", "1"))
SECURED_SEED = int(os.environ.get("BARNABAS_SEED", "45"))
"""Seed 45 begins with a cut link, a slow disk, an isolated and a killed node, and all killed."""
DURATION_S = float(os.environ.get("BARNABAS_CHAOS_S", "12"))


@pytest.mark.timeout(300 + 4 * DURATION_S)
@pytest.mark.parametrize(
    "program",
    [
        pytest.param(BARNABAS, id="barnabas"),
        pytest.param(KAFKA, id="kafka", marks=pytest.mark.peer),
    ],
)
@pytest.mark.parametrize("library", ["confluent-kafka", "barnabas"])
def test_a_cluster_keeps_its_invariants_under_faults(
    program: NodeProgram, library: str, tmp_path: Path
) -> None:
    clients = by_name(library)
    chaos = ChaosRun(tmp_path, [program] * 3, seed=SEED, duration_s=DURATION_S, clients=clients)
    chaos.run()
    assert not chaos.findings, chaos.report


@pytest.mark.timeout(300)
def test_a_secured_cluster_keeps_its_invariants_under_faults(tmp_path: Path) -> None:
    """SASL_SSL everywhere. Clients have the permissions they need, or none and get nothing."""
    chaos = ChaosRun(
        *(tmp_path, [BARNABAS] * 3), seed=SECURED_SEED, duration_s=DURATION_S / 3, is_secured=True
    )
    chaos.run()
    assert not chaos.findings, chaos.report
