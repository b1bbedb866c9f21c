"""A schema registry and its own broker, both in this process."""

from collections.abc import Iterator

import pytest

from barnabas.registry.service import SchemaRegistry
from barnabas.testing import Broker


@pytest.fixture(scope="session")
def registry_broker() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="session")
def schema_registry(registry_broker: Broker) -> Iterator[SchemaRegistry]:
    """Shared by all tests of the session: use unique subjects."""
    with SchemaRegistry(registry_broker.bootstrap_servers, port=0) as registry:
        yield registry
