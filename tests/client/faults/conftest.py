"""A broker for tests of trouble, and the end of it after each."""

from collections.abc import Iterator

import pytest

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
