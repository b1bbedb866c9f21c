"""A topic for each test of the sink."""

import pytest
from tests.spark.sink.topics import Topic

from barnabas.testing import Broker


@pytest.fixture
def topic(broker: Broker) -> Topic:
    return Topic.create(broker.bootstrap_servers)
