"""Two new registries on one broker, and the scenarios of both libraries."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.confluent_modules import load_with_barnabas_imports
from tests.conformance.registry import program

from barnabas.registry.service import SchemaRegistry
from barnabas.testing import Broker


@pytest.fixture(scope="module")
def broker_in_process() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def registry(broker_in_process: Broker) -> Iterator[SchemaRegistry]:
    """The registry of our client."""
    with SchemaRegistry(broker_in_process.bootstrap_servers) as registry:
        yield registry


@pytest.fixture(scope="module")
def their_registry(broker_in_process: Broker) -> Iterator[SchemaRegistry]:
    """The registry of the client of confluent_kafka."""
    with SchemaRegistry(
        broker_in_process.bootstrap_servers, topic="_schemas_theirs", group_id="theirs"
    ) as registry:
        yield registry


@pytest.fixture(scope="session")
def theirs() -> ModuleType:
    return program


@pytest.fixture(scope="session")
def ours() -> ModuleType:
    return load_with_barnabas_imports(
        Path(program.__file__), "tests.conformance.registry.barnabas_scenarios"
    )
