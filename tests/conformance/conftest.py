"""The same scenarios for both brokers and for every client library."""

import uuid
from collections.abc import Iterator

import pytest
from tests.conformance.brokers import Broker
from tests.conformance.clients.client import Client

pytest.register_assert_rewrite("tests.conformance.scenarios")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs group scenarios for the assignors and the protocols of their library."""
    for name in "assignor", "protocol":
        if name in metafunc.fixturenames and not metafunc.definition.get_closest_marker(
            "parametrize"
        ):
            metafunc.parametrize(name, getattr(metafunc.cls.library, f"{name}s"))


@pytest.fixture(scope="session", params=["broker", pytest.param("kafka", marks=pytest.mark.peer)])
def any_broker(request: pytest.FixtureRequest) -> Broker:
    """Barnabas, and with `-m peer` the real Kafka, which validates the scenarios."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module", params=["broker", "kafka"])
def target(request: pytest.FixtureRequest) -> Broker:
    """Barnabas and the real Kafka, for tests that run only with `-m peer`."""
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="class")
def client(request: pytest.FixtureRequest, any_broker: Broker) -> Iterator[Client]:
    """A client of the library of the test class."""
    made = request.cls.library(any_broker.bootstrap)
    yield made
    made.close()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return f"{request.function.__name__.removeprefix('test_')[:60]}-{uuid.uuid4().hex[:8]}"
