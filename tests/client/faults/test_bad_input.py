"""What a person is reports who has given a client something wrong."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.client.expected_errors import expect_error

from barnabas import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    SerializingProducer,
    TopicPartition,
)
from barnabas.error import ValueSerializationError
from barnabas.testing import Broker

NOBODY = "127.0.0.1:1"


def delivered(broker: Broker, topic: str, value: bytes, **more: Any) -> tuple[str, str]:
    """The name and the words of the error that a record's delivery ends with."""
    reports: list[KafkaError | None] = []

    def report(error: KafkaError | None, _: Message) -> None:
        reports.append(error)

    names = {"bootstrap.servers": broker.bootstrap_servers, "message.timeout.ms": 29_000}
    with Producer(names) as producer:
        producer.produce(topic, value, on_delivery=report, **more)
        assert producer.flush(30) == 0
    (error,) = reports
    assert error is not None
    return error.name(), error.str()


def polled(broker: Broker, position: TopicPartition) -> KafkaError:
    names = {"group.id": "g", "auto.offset.reset": "error"}
    with Consumer({"bootstrap.servers": broker.bootstrap_servers, **names}) as consumer:
        consumer.assign([position])
        message = consumer.poll(30)
    assert message is not None
    error = message.error()
    assert error is not None
    return error


@pytest.mark.parametrize("client", [Producer, Consumer])
def test_an_unreachable_address_is_named_with_the_cause(client: Any) -> None:
    it = client({"bootstrap.servers": NOBODY, "group.id": "g"})
    expect_error(
        lambda timeout_s: it.list_topics(timeout=timeout_s), f"{NOBODY}: Connection refused"
    )
    it.close()


def test_error_cb_gets_every_broker_down_and_all_brokers_down() -> None:
    reports: list[KafkaError] = []
    producer = Producer({"bootstrap.servers": NOBODY}, error_cb=reports.append)
    producer.produce("t", b"x")
    while len(reports) < 2:
        assert producer.poll(30)
    assert reports[0] == KafkaError._TRANSPORT
    assert f"{NOBODY}: Connection refused" in reports[0].str()
    assert reports[1] == KafkaError._ALL_BROKERS_DOWN
    producer.close(0)


@pytest.mark.parametrize("client", [Producer, Consumer])
def test_without_error_cb_the_loss_of_all_brokers_is_logged(client: Any, caplog: Any) -> None:
    it = client({"bootstrap.servers": NOBODY, "group.id": "g", "client.id": "mine"})
    expect_error(
        lambda timeout_s: it.list_topics(timeout=timeout_s), f"{NOBODY}: Connection refused"
    )
    it.close()
    said = [each for each in caplog.messages if each.startswith("mine: ")]
    assert said == [f"mine: 1/1 brokers are down: {NOBODY}: Connection refused"]


def test_undeliverable_records_have_the_cause(broker: Broker) -> None:
    broker.create_topic("narrow", 2, {"max.message.bytes": 5_000})
    assert delivered(broker, "narrow", b"x", partition=7) == (
        "_UNKNOWN_PARTITION",
        "topic narrow has no such partition: it has 2, numbered from 0",
    )
    name, words = delivered(broker, "narrow", bytes(20_000))
    assert name == "MSG_SIZE_TOO_LARGE"
    assert "5000" in words
    assert delivered(broker, "no/name", b"x")[0] == "TOPIC_EXCEPTION"


def test_a_record_larger_than_a_request_is_rejected_at_once(broker: Broker) -> None:
    with (
        Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer,
        pytest.raises(KafkaException, match=r"2000000 bytes .* message.max.bytes") as caught,
    ):
        producer.produce("t", bytes(2_000_000))
    assert caught.value.args[0] == KafkaError.MSG_SIZE_TOO_LARGE


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("t", 5), "not int"),
        ((None, b""), "NoneType"),
        (("t", b"", 1.5), "not float"),
        (("t", b"", None, "first"), "int"),
    ],
)
def test_arguments_of_the_wrong_type_are_named(arguments: tuple[Any, ...], words: str) -> None:
    producer = Producer({"bootstrap.servers": NOBODY})
    with pytest.raises(TypeError, match=words):
        producer.produce(*arguments)
    assert len(producer) == 0
    producer.close(0)


def test_a_serializer_that_raises_sends_nothing() -> None:
    def fails(value: object, _: object) -> bytes:
        raise ValueError(f"{value} is no order")

    producer = SerializingProducer({"bootstrap.servers": NOBODY, "value.serializer": fails})
    with pytest.raises(ValueSerializationError, match="7 is no order"):
        producer.produce("t", value=7)
    assert len(producer) == 0


def test_an_offset_out_of_range_is_an_error_without_a_reset_policy(broker: Broker) -> None:
    broker.create_topic("short-one")
    error = polled(broker, TopicPartition("short-one", 0, 1000))
    assert error == KafkaError._AUTO_OFFSET_RESET
    assert "offset 1000" in error.str()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda consumer: consumer.subscribe("t"), "list of topic"),
        (lambda consumer: consumer.subscribe(["^("]), "regular expression"),
        (lambda consumer: consumer.assign(["t"]), "TopicPartition"),
        (lambda consumer: consumer.seek(TopicPartition("t", 0, 3)), "not assigned"),
        (lambda consumer: consumer.commit(asynchronous=False), "no offset"),
    ],
    ids=["subscribe", "pattern", "assign", "seek", "commit"],
)
def test_invalid_calls_raise_with_the_cause(call: Callable[[Consumer], object], words: str) -> None:
    with (
        Consumer({"bootstrap.servers": NOBODY, "group.id": "g"}) as consumer,
        pytest.raises((TypeError, KafkaException), match=words),
    ):
        call(consumer)
