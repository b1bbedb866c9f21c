"""Two brokers for each test, and as many as property tests need."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.replication.replica_fetcher.pair import Pair


@pytest.fixture
def new_pair(
    idle_loop: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Pair]]:
    """Makes two brokers; hypothesis needs fresh ones for every example."""
    made: list[Pair] = []

    def make(**settings: Any) -> Pair:
        made.append(Pair(tmp_path_factory.mktemp("pair"), **settings))
        return made[-1]

    yield make
    for pair in made:
        pair.close()


@pytest.fixture
def pair(new_pair: Callable[..., Pair]) -> Pair:
    pair = new_pair()
    pair.create_topic()
    return pair
