"""Fixtures for pytest, there as soon as Barnabas is installed: a broker, a topic, two clients.

Every project that has Barnabas loads this file, whether it uses it or not: so nothing is imported
before a test asks for it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from barnabas import Consumer, Producer
    from barnabas.testing import Broker

LONGEST_NAME = 200
FLUSH_S = 10.0


@pytest.fixture(scope="session")
def kafka_broker_settings() -> Mapping[str, object]:
    """Settings of the brokers, as in server.properties; override it to have your own."""
    return {}


@pytest.fixture(scope="session")
def kafka_broker(kafka_broker_settings: Mapping[str, object]) -> "Iterator[Broker]":
    """A Kafka broker in this process, shared by all tests of the session.

    Connect to `kafka_broker.bootstrap_servers`, and use topics of your own (`kafka_topic`).
    """
    from barnabas.testing import Broker

    with Broker(kafka_broker_settings) as broker:
        yield broker


@pytest.fixture
def fresh_kafka_broker(kafka_broker_settings: Mapping[str, object]) -> "Iterator[Broker]":
    """A Kafka broker in this process for one test alone: to restart it, order faults from it or
    move its clock."""
    from barnabas.testing import Broker

    with Broker(kafka_broker_settings) as broker:
        yield broker


@pytest.fixture
def kafka_topic(kafka_broker: "Broker", request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a new topic on `kafka_broker`, with one partition; deleted after the test."""
    legal = re.sub(r"[^\w.-]", "-", request.node.name, flags=re.ASCII)
    name = f"{legal[:LONGEST_NAME]}-{uuid4().hex[:8]}"
    kafka_broker.create_topic(name)
    yield name
    kafka_broker.delete_topic(name)


@pytest.fixture
def kafka_producer(kafka_broker: "Broker") -> "Iterator[Producer]":
    """A `barnabas.Producer` of `kafka_broker`; what it holds is sent when the test ends."""
    from barnabas import Producer

    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    yield producer
    producer.flush(FLUSH_S)


@pytest.fixture
def kafka_consumer(kafka_broker: "Broker", kafka_topic: str) -> "Iterator[Consumer]":
    """A `barnabas.Consumer` that reads `kafka_topic` from its beginning, in a group of its own."""
    from barnabas import Consumer

    consumer = Consumer(
        {
            "bootstrap.servers": kafka_broker.bootstrap_servers,
            "group.id": f"{kafka_topic}-readers",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([kafka_topic])
    yield consumer
    consumer.close()
