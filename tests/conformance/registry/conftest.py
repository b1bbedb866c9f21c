"""Two fresh registries on one broker, and the program of either library."""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.conformance.registry import program
from tests.import_changed import load_changed

from barnabas.registry.service import SchemaRegistry
from barnabas.testing import Broker


@pytest.fixture(scope="module")
def served() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def registry(served: Broker) -> Iterator[SchemaRegistry]:
    """Where our program goes."""
    with SchemaRegistry(served.bootstrap_servers) as registry:
        yield registry


@pytest.fixture(scope="module")
def their_registry(served: Broker) -> Iterator[SchemaRegistry]:
    """Where the same goes with their import."""
    with SchemaRegistry(
        served.bootstrap_servers, topic="_schemas_theirs", group_id="theirs"
    ) as registry:
        yield registry


@pytest.fixture(scope="session")
def theirs() -> ModuleType:
    return program


@pytest.fixture(scope="session")
def ours() -> ModuleType:
    return load_changed(Path(program.__file__), "tests.conformance.registry.program_of_ours")
