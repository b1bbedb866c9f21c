"""A broker for tests of trouble, and the end of it after each."""

from collections.abc import Iterator

import pytest

from barnabas.admin import AdminClient, FeatureUpdate, UpgradeType
from barnabas.testing import Broker

PROMPT = {
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.min.heartbeat.interval.ms": 50,
    "group.consumer.heartbeat.interval.ms": 50,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
}


@pytest.fixture(scope="module")
def stormy() -> Iterator[Broker]:
    with Broker(PROMPT) as broker:
        yield broker


@pytest.fixture
def broker(stormy: Broker) -> Iterator[Broker]:
    yield stormy
    stormy.faults.clear()


@pytest.fixture(scope="module", params=["old flow", "new flow"])
def transacting(request: pytest.FixtureRequest) -> Iterator[Broker]:
    """A broker with either of Kafka's two ways to have transactions (KIP-890)."""
    with Broker(PROMPT) as broker:
        if request.param == "old flow":
            admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
            change = FeatureUpdate(1, UpgradeType.SAFE_DOWNGRADE)
            for future in admin.update_features({"transaction.version": change}).values():
                future.result(30)
            admin.close()
        yield broker
