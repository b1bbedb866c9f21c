"""FindCoordinator for every kind of key."""

from typing import Any

import pytest
from tests.conformance.same.sides import Side, Sides, same

from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest

pytestmark = pytest.mark.peer

BATCHED = 4
KEYS = ["a-group", "", "x" * 300, "id:topic:0", "AAAAAAAAAAAAAAAAAAAAAA:0", "g:notauuid:0", "é/ :"]


@pytest.mark.parametrize("key_type", [0, 1, 2, 3, -1])
def test_find_coordinator(coordinators: Sides, key_type: int) -> None:
    for key in KEYS:

        def build(_: Side, version: int, key: str = key) -> Any:
            if version < BATCHED:
                return FindCoordinatorRequest(key=key, key_type=key_type)
            return FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)

        same(coordinators, build)


@pytest.mark.parametrize("key_type", [0, 1, 2, 3])
@pytest.mark.parametrize("keys", [[], ["a", "b"], ["a", "a"], ["a", ""]], ids=str)
def test_find_several_coordinators(coordinators: Sides, key_type: int, keys: list[str]) -> None:
    asked = FindCoordinatorRequest(coordinator_keys=keys, key_type=key_type)
    same(coordinators, lambda _, version: None if 0 <= version < BATCHED else asked)
