"""A fresh broker for each test, and as many as they like for the laws."""

import asyncio
from collections.abc import Callable, Iterator

import pytest
from tests.replication.world import World


@pytest.fixture
def idle_loop() -> Iterator[None]:
    """Parked requests are futures, which belong to a loop; it never runs."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture
def new_world(
    idle_loop: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., World]]:
    """Makes a broker; hypothesis needs a fresh one for every example."""
    made: list[World] = []

    def make(**settings: str | int) -> World:
        made.append(World(tmp_path_factory.mktemp("world"), **settings))
        return made[-1]

    yield make
    for world in made:
        world.partitions.close(clean=False)


@pytest.fixture
def world(new_world: Callable[..., World]) -> World:
    return new_world()
