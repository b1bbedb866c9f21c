"""A broker in this process, and producers that are closed after the test."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas.client.producer import Producer
from barnabas.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("t", 3)
        broker.create_topic("one", 1)
        yield broker


@pytest.fixture
def make(broker: Broker) -> Iterator[Callable[..., Producer]]:
    made: list[Producer] = []

    def make(**settings: Any) -> Producer:
        names = {name.replace("_", "."): value for name, value in settings.items()}
        for callback in ("error_cb", "stats_cb", "throttle_cb", "on_delivery"):
            if callback in settings:
                names[callback] = names.pop(callback.replace("_", "."))
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **names})
        made.append(producer)
        return producer

    yield make
    for producer in made:
        producer.purge()
        producer.close(10)
