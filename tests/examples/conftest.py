"""A broker for the programs: Barnabas in this process, or Kafka. Topics are per test."""

import itertools
from collections.abc import Callable, Iterator

import pytest
from tests.examples.programs import WORLDS

from barnabas.admin import AdminClient, NewTopic
from barnabas.testing import Broker

_numbers = itertools.count()


@pytest.fixture(scope="session", params=["ours", pytest.param("kafka", marks=pytest.mark.peer)])
def servers(request: pytest.FixtureRequest) -> Iterator[str]:
    """The bootstrap servers for the programs."""
    if request.param == "kafka":
        yield f"127.0.0.1:{request.getfixturevalue('kafka').port}"
        return
    with Broker() as broker:
        yield broker.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> Callable[..., str]:
    """A function that creates a topic with a unique name."""
    admin = AdminClient({"bootstrap.servers": servers})

    def create(partitions: int = 1, **config: str) -> str:
        name = f"example-{next(_numbers)}"
        configs = {key.replace("_", "."): value for key, value in config.items()}
        admin.create_topics([NewTopic(name, partitions, config=configs)])[name].result(30)
        return name

    return create


@pytest.fixture(params=WORLDS)
def world(request: pytest.FixtureRequest) -> str:
    """The package that a program imports."""
    return str(request.param)
