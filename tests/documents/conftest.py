"""The servers that the pages say are running, fresh for each program."""

from collections.abc import Iterator

import pytest

from barnabas.registry.service import SchemaRegistry
from barnabas.testing import Broker
from barnabas.testing.ports import free_port


@pytest.fixture
def addresses() -> Iterator[dict[str, str]]:
    """Starts a broker and a registry; returns their addresses by those on the pages."""
    metrics = f"127.0.0.1:{free_port()}"
    with (
        Broker({"barnabas.metrics.listener": metrics}) as broker,
        SchemaRegistry(broker.bootstrap_servers) as registry,
    ):
        yield {
            "localhost:9092": broker.bootstrap_servers,
            "localhost:9308": metrics,
            "localhost:8081": registry.url.removeprefix("http://"),
        }
