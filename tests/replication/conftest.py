"""A new broker for each test, and as many as property tests need."""

import asyncio
from collections.abc import Callable, Iterator

import pytest
from tests.replication.cluster import Cluster
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


@pytest.fixture
def new_cluster(
    idle_loop: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Cluster]]:
    """Makes brokers with the ids given."""
    made: list[Cluster] = []

    def make(*broker_ids: int, **settings: str) -> Cluster:
        made.append(Cluster(tmp_path_factory.mktemp("cluster"), *broker_ids, **settings))
        return made[-1]

    yield make
    for cluster in made:
        for broker_id, world in cluster.worlds.items():
            if broker_id not in cluster.down:
                world.partitions.close(clean=False)


@pytest.fixture
def cluster(new_cluster: Callable[..., Cluster]) -> Cluster:
    """Brokers 1, 2 and 3, of which 1 leads and all are in sync."""
    cluster = new_cluster(1, 2, 3)
    cluster.create_topic(min_insync_replicas="2")
    return cluster
