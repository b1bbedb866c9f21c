"""The REST API over a herder in memory."""

from typing import Any

import pytest
from tests.connect.rest import plugins_of_tests
from tests.connect.rest.asgi_client import AsgiClient
from tests.connect.rest.fake_herder import FakeHerder

from barnabas.connect.rest.app import create_app

SINK = f"{plugins_of_tests.MODULE}:FileSink"
SOURCE = f"{plugins_of_tests.MODULE}:FileSource"


@pytest.fixture
def herder() -> FakeHerder:
    return FakeHerder()


@pytest.fixture
def worker() -> dict[str, str]:
    """The settings of the worker."""
    return {"key.converter": "Json", "value.converter": "Json"}


@pytest.fixture
def api(herder: FakeHerder, worker: dict[str, str]) -> AsgiClient:
    return AsgiClient(create_app(herder, worker))


@pytest.fixture
def sink() -> dict[str, Any]:
    """The settings of a sink."""
    return {"connector.class": SINK, "topics": "lines"}


@pytest.fixture
def source() -> dict[str, Any]:
    return {"connector.class": SOURCE, "topic": "lines"}
