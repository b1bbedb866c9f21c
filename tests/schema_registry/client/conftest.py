"""A scripted registry."""

from collections.abc import Iterator

import pytest
from tests.schema_registry.client.scripted_registry import ScriptedRegistry, scripted_registry


@pytest.fixture
def script() -> Iterator[ScriptedRegistry]:
    with scripted_registry() as script:
        yield script
