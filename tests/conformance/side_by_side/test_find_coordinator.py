"""FindCoordinator for every kind of key."""

from typing import Any

import pytest
from tests.conformance.side_by_side.sides import Side, Sides, assert_same_responses

from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest

pytestmark = pytest.mark.peer

FIRST_BATCHED = 4
KEYS = ["a-group", "", "x" * 300, "id:topic:0", "AAAAAAAAAAAAAAAAAAAAAA:0", "g:notauuid:0", "é/ :"]


@pytest.mark.parametrize("key_type", [0, 1, 2, 3, -1])
def test_find_coordinator(coordinators: Sides, key_type: int) -> None:
    for key in KEYS:

        def build(_: Side, version: int, key: str = key) -> Any:
            if version < FIRST_BATCHED:
                return FindCoordinatorRequest(key=key, key_type=key_type)
            return FindCoordinatorRequest(coordinator_keys=[key], key_type=key_type)

        assert_same_responses(coordinators, build)


@pytest.mark.parametrize("key_type", [0, 1, 2, 3])
@pytest.mark.parametrize("keys", [[], ["a", "b"], ["a", "a"], ["a", ""]], ids=str)
def test_find_several_coordinators(coordinators: Sides, key_type: int, keys: list[str]) -> None:
    requested = FindCoordinatorRequest(coordinator_keys=keys, key_type=key_type)
    assert_same_responses(
        coordinators, lambda _, version: None if 0 <= version < FIRST_BATCHED else requested
    )
