"""One broker for all programs, in this process; each program has topics of its own."""

import itertools
from collections.abc import Callable, Iterator

import pytest
from tests.examples.programs import WORLDS

from barnabas.testing import Broker

_numbers = itertools.count()


@pytest.fixture(scope="session")
def here() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


@pytest.fixture
def topic(here: Broker) -> Callable[..., str]:
    """A function that creates a topic nobody else has."""

    def create(partitions: int = 1, **config: str) -> str:
        name = f"example-{next(_numbers)}"
        here.create_topic(name, partitions, {k.replace("_", "."): v for k, v in config.items()})
        return name

    return create


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> str:
    """The package that a program imports."""
    return str(request.param)
