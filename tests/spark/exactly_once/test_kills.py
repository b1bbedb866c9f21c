"""Each row is written once after kills (-9) of the driver, its JVM and its Python processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.brokers import PeerBroker
from tests.spark.exactly_once.trial import SURVIVED, Trial
from tests.spark.exactly_once.victims import Kind

from barnabas.testing import Broker

SEED = 7
LIVES = 2
KILLS_A_LIFE = len(SURVIVED) // LIVES
"""Kills that the pipeline survives; each kind once in total."""


@pytest.fixture(params=["barnabas", pytest.param("kafka", marks=pytest.mark.peer)])
def bootstrap_servers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "barnabas":
        with Broker() as running:
            yield running.bootstrap_servers
        return
    kafka = PeerBroker(tmp_path / "kafka")
    kafka.start()
    yield kafka.bootstrap
    kafka.stop()


@pytest.mark.timeout(600)
@pytest.mark.parametrize("is_stateful", [False, pytest.param(True, marks=pytest.mark.peer)])
def test_each_row_is_written_once_after_any_process_is_killed(
    bootstrap_servers: str, tmp_path: Path, is_stateful: bool
) -> None:
    trial = Trial(bootstrap_servers, tmp_path, SEED, is_stateful)
    trial.run(lives=LIVES, kills_a_life=KILLS_A_LIFE)
    print(trial)
    assert {*SURVIVED, Kind.JVM, Kind.DRIVER} <= trial.deaths.keys()
