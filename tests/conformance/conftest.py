"""The same scenarios for either broker and for every client library."""

import uuid
from collections.abc import Iterator

import pytest
from tests.conformance.brokers import Broker
from tests.conformance.clients.client import Client

pytest.register_assert_rewrite("tests.conformance.scenarios")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Scenarios of groups run for the assignors and the protocols that their library has."""
    for name in "assignor", "protocol":
        if name in metafunc.fixturenames and not metafunc.definition.get_closest_marker(
            "parametrize"
        ):
            metafunc.parametrize(name, getattr(metafunc.cls.library, f"{name}s"))


@pytest.fixture(scope="session", params=["broker", pytest.param("kafka", marks=pytest.mark.peer)])
def any_broker(request: pytest.FixtureRequest) -> Broker:
    """Barnabas; and with `-m peer` the real Kafka, which proves the scenarios right."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module", params=["broker", "kafka"])
def target(request: pytest.FixtureRequest) -> Broker:
    """For tests that are only run with `-m peer`: Barnabas, and the real Kafka."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="class")
def client(request: pytest.FixtureRequest, any_broker: Broker) -> Iterator[Client]:
    """The library that the test class names, talking to the broker."""
    made = request.cls.library(any_broker.bootstrap)
    yield made
    made.close()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return f"{request.function.__name__.removeprefix('test_')[:60]}-{uuid.uuid4().hex[:8]}"
