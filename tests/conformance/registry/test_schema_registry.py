"""confluent_kafka's client and serializers, unchanged, and ours, against our registry."""

from types import ModuleType
from typing import Any

import pytest
from tests.conformance.registry.program import SCENARIOS

from barnabas.registry.service import SchemaRegistry


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_both_libraries_return_the_same(
    scenario: str,
    ours: ModuleType,
    theirs: ModuleType,
    registry: SchemaRegistry,
    their_registry: SchemaRegistry,
) -> None:
    def run(module: Any, url: str) -> dict[str, Any]:
        with module.SchemaRegistryClient({"url": url, "max.retries": 0}) as client:
            facts: dict[str, Any] = module.SCENARIOS[scenario](client)
        return facts

    assert run(ours, registry.url) == run(theirs, their_registry.url)
