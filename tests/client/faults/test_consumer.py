"""What passes by itself is no matter for whoever polls."""

import time

import pytest
from tests.client.faults.storm import HURRIED

from barnabas import Consumer, Message, Producer
from barnabas.testing import Broker

DEADLINE_S = 20.0


def a_consumer(broker: Broker, group: str, **settings: object) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            **HURRIED,
            **settings,
        }
    )


def put(broker: Broker, topic: str, *values: bytes) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for value in values:
            producer.produce(topic, value)


def first(consumer: Consumer) -> Message:
    deadline = time.monotonic() + DEADLINE_S
    while (message := consumer.poll(0.1)) is None:
        assert time.monotonic() < deadline, "nothing came"
    return message


@pytest.mark.parametrize("api", ["OffsetFetch", "FindCoordinator", "ListOffsets", "Fetch"])
def test_an_answer_that_is_late_is_asked_for_again(broker: Broker, api: str) -> None:
    topic = f"late-{api}"
    broker.create_topic(topic)
    put(broker, topic, b"1")
    with broker.faults.delay(api, 60, times=2), a_consumer(broker, topic) as consumer:
        consumer.subscribe([topic])
        message = first(consumer)
        assert message.error() is None
        assert message.value() == b"1"


def test_offsets_of_an_open_transaction_are_waited_for(broker: Broker) -> None:
    broker.create_topic("unstable")
    put(broker, "unstable", b"1")
    with (
        broker.faults.fail("OffsetFetch", "UNSTABLE_OFFSET_COMMIT", times=60),
        a_consumer(broker, "unstable") as consumer,
    ):
        consumer.subscribe(["unstable"])
        message = first(consumer)
        assert message.error() is None
        assert message.value() == b"1"
