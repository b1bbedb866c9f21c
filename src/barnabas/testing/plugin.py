"""Fixtures for pytest, available once Barnabas is installed: brokers, topics, clients, a registry.

Every project that has Barnabas installed loads this file, so nothing is imported before a test
uses a fixture.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

if TYPE_CHECKING:
    from barnabas import Consumer, Producer
    from barnabas.registry.service import SchemaRegistry
    from barnabas.testing import Broker

MAX_NAME_LENGTH = 200
FLUSH_TIMEOUT_S = 10.0


@pytest.fixture(scope="session")
def kafka_broker_settings() -> Mapping[str, object]:
    """Settings of the brokers, as in server.properties; override it to set your own."""
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
    """A Kafka broker in this process for one test: to restart it, inject faults or advance its
    clock."""
    from barnabas.testing import Broker

    with Broker(kafka_broker_settings) as broker:
        yield broker


@pytest.fixture
def kafka_topic(kafka_broker: "Broker", request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a new topic on `kafka_broker`, which is deleted after the test.

    It has one partition, unless `kafka_broker_settings` has `num.partitions`.
    """
    legal = re.sub(r"[^\w.-]", "-", request.node.name, flags=re.ASCII)
    name = f"{legal[:MAX_NAME_LENGTH]}-{uuid4().hex[:8]}"
    kafka_broker.create_topic(name)
    yield name
    kafka_broker.delete_topic(name)


@pytest.fixture
def kafka_producer(kafka_broker: "Broker") -> "Iterator[Producer]":
    """A `barnabas.Producer` of `kafka_broker`; it is flushed when the test ends."""
    from barnabas import Producer

    producer = Producer({"bootstrap.servers": kafka_broker.bootstrap_servers})
    yield producer
    producer.flush(FLUSH_TIMEOUT_S)


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


@pytest.fixture(scope="session")
def schema_registry(kafka_broker: "Broker") -> "Iterator[SchemaRegistry]":
    """A schema registry in this process, on `kafka_broker`; clients connect to its `url`.

    It is shared by all tests of the session, and needs `pip install 'barnabas[registry]'`.
    """
    from barnabas.registry.service import SchemaRegistry

    with SchemaRegistry(kafka_broker.bootstrap_servers) as registry:
        yield registry
