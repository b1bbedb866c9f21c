"""A broker in this process for all tests of this room, and admin clients of it."""

import uuid
from collections.abc import Iterator

import pytest

from barnabas.admin import AdminClient, NewTopic
from barnabas.testing import Broker


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    with Broker({"group.initial.rebalance.delay.ms": 0}) as broker:
        yield broker


@pytest.fixture
def admin(broker: Broker) -> Iterator[AdminClient]:
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as admin:
        yield admin


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return f"{request.function.__name__.removeprefix('test_')[:60]}-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def topic(admin: AdminClient, name: str) -> str:
    """A topic with three partitions."""
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(30)
    return name
