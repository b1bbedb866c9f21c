"""Transient errors do not reach the caller of poll."""

import time

import pytest
from tests.client.faults.storm import HURRIED

from barnabas import Consumer, Message, Producer, TopicPartition
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
def test_a_late_response_is_requested_again(broker: Broker, api: str) -> None:
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
        broker.faults.fail("OffsetFetch", "UNSTABLE_OFFSET_COMMIT", times=20),
        a_consumer(broker, "unstable") as consumer,
    ):
        consumer.subscribe(["unstable"])
        message = first(consumer)
        assert message.error() is None
        assert message.value() == b"1"


def test_buffered_records_of_a_paused_partition_do_not_stop_the_others(broker: Broker) -> None:
    broker.create_topic("paused", 2)
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for _ in range(100):
            producer.produce("paused", bytes(10_000), partition=0)
    # The buffer holds little more than one fetch, which the first partition fills.
    bounds = {"queued.max.messages.kbytes": 100, "max.partition.fetch.bytes": 100_000}
    with a_consumer(broker, "paused", **bounds) as consumer:
        consumer.assign([TopicPartition("paused", 0, 0), TopicPartition("paused", 1, 0)])
        assert first(consumer).partition() == 0
        fetches = -1
        while fetches != broker.requests["Fetch"]:
            fetches = broker.requests["Fetch"]
            time.sleep(0.05)
        consumer.pause([TopicPartition("paused", 0)])
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for value in b"1", b"2", b"3":
                producer.produce("paused", value, partition=1)
                producer.flush()
                message = first(consumer)
                assert (message.partition(), message.value()) == (1, value)
        consumer.resume([TopicPartition("paused", 0)])
        offsets = [first(consumer).offset() for _ in range(99)]
        assert offsets == list(range(1, 100))
