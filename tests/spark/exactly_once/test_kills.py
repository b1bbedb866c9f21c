"""Each row once after kills (-9) of the driver, its JVM and its Python workers, by a seed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conformance.brokers import PeerBroker
from tests.spark.exactly_once.trial import Trial

from barnabas.testing import Broker

SEED = 7


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
def test_each_row_is_there_once_whoever_is_killed(bootstrap_servers: str, tmp_path: Path) -> None:
    trial = Trial(bootstrap_servers, tmp_path, SEED)
    trial.run(rounds=2)
    assert trial.deaths
