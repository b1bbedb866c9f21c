"""The largest bipartite matching."""

from itertools import combinations, permutations

from hypothesis import given
from hypothesis import strategies as st

from barnabas.schemas.json_schema.comparison import largest_matching


def by_trying(partners: list[list[int]]) -> int:
    for size in range(min(len(partners), 4), 0, -1):
        for selected in combinations(partners, size):
            for rights in permutations(range(4), size):
                if all(right in item for right, item in zip(rights, selected, strict=True)):
                    return size
    return 0


@given(st.lists(st.lists(st.integers(0, 3), unique=True), max_size=5))
def test_the_matching_is_as_large_as_the_largest_by_brute_force(partners: list[list[int]]) -> None:
    assert largest_matching(partners) == by_trying(partners)
