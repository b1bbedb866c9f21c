"""Unit tests as people write them for code that uses confluent_kafka, run with either package.

The code under test is at the top of each part; mocks stand for clients, messages and futures.
"""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable
from typing import Any
from unittest import mock

import pytest


@pytest.fixture
def kafka(world: str) -> Any:
    """The package, as `import confluent_kafka as kafka` gives it."""
    return importlib.import_module(world)


@pytest.fixture
def admin(world: str) -> Any:
    return importlib.import_module(f"{world}.admin")


# A publisher that counts what it could not deliver.


class Publisher:
    def __init__(self, producer: Any) -> None:
        self.producer = producer
        self.failed: list[str] = []

    def publish(self, topic: str, value: bytes) -> None:
        try:
            self.producer.produce(topic, value, on_delivery=self.delivered)
        except BufferError:
            self.producer.poll(1)
            self.producer.produce(topic, value, on_delivery=self.delivered)

    def delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failed.append(error.name())


def test_publish_hands_the_value_to_the_producer(kafka: Any) -> None:
    producer = mock.create_autospec(kafka.Producer, instance=True)
    publisher = Publisher(producer)
    publisher.publish("orders", b"1")
    producer.produce.assert_called_once_with("orders", b"1", on_delivery=publisher.delivered)


def test_publish_waits_when_the_queue_is_full(kafka: Any) -> None:
    producer = mock.Mock(spec=kafka.Producer)
    producer.produce.side_effect = [BufferError("Local: Queue full"), None]
    Publisher(producer).publish("orders", b"1")
    producer.poll.assert_called_once_with(1)
    assert producer.produce.call_count == 2


def test_a_failed_delivery_is_counted(kafka: Any) -> None:
    publisher = Publisher(mock.Mock(spec=kafka.Producer))
    error = kafka.KafkaError(kafka.KafkaError._MSG_TIMED_OUT)
    publisher.delivered(error, mock.Mock(spec=kafka.Message))
    publisher.delivered(None, kafka.Message(topic="orders", value=b"1"))
    assert publisher.failed == ["_MSG_TIMED_OUT"]


# A loop that handles what it polls.


def drain(consumer: Any, kafka: Any, handle: Callable[[bytes], None]) -> int:
    handled = 0
    while True:
        message = consumer.poll(1.0)
        if message is None:
            return handled
        if message.error():
            if message.error().code() == kafka.KafkaError._PARTITION_EOF:
                continue
            raise kafka.KafkaException(message.error())
        handle(message.value())
        consumer.commit(message=message, asynchronous=False)
        handled += 1


def polled(kafka: Any, value: bytes = b"", error: Any = None) -> mock.Mock:
    message = mock.Mock(spec=kafka.Message)
    message.error.return_value = error
    message.value.return_value = value
    return message


def test_the_end_of_a_partition_is_not_an_error(kafka: Any) -> None:
    consumer = mock.create_autospec(kafka.Consumer, instance=True)
    end = kafka.KafkaError(kafka.KafkaError._PARTITION_EOF)
    first = polled(kafka, b"1")
    consumer.poll.side_effect = [first, polled(kafka, error=end), polled(kafka, b"2"), None]
    handled: list[bytes] = []
    assert drain(consumer, kafka, handled.append) == 2
    assert handled == [b"1", b"2"]
    assert consumer.commit.call_args_list[0] == mock.call(message=first, asynchronous=False)


def test_another_error_is_raised_with_its_code(kafka: Any) -> None:
    consumer = mock.Mock(spec=kafka.Consumer)
    error = kafka.KafkaError(kafka.KafkaError._ALL_BROKERS_DOWN)
    consumer.poll.return_value = polled(kafka, error=error)
    with pytest.raises(kafka.KafkaException) as raised:
        drain(consumer, kafka, print)
    assert raised.value.args[0].code() == kafka.KafkaError._ALL_BROKERS_DOWN
    assert raised.value.args[0] == error


def test_messages_of_ones_own_making_will_do_as_well(kafka: Any) -> None:
    consumer = mock.Mock(spec=kafka.Consumer)
    consumer.poll.side_effect = [kafka.Message(topic="t", partition=0, offset=1, value=b"x"), None]
    handled: list[bytes] = []
    assert drain(consumer, kafka, handled.append) == 1
    assert handled == [b"x"]


def test_a_handler_that_raises_leaves_its_message_uncommitted(kafka: Any) -> None:
    consumer = mock.Mock(spec=kafka.Consumer)
    consumer.poll.return_value = polled(kafka, b"x")
    with pytest.raises(ZeroDivisionError):
        drain(consumer, kafka, lambda _: 1 // 0)
    consumer.commit.assert_not_called()


# Patching the class where it is used.


def test_a_client_is_patched_where_it_is_made(kafka: Any) -> None:
    with mock.patch.object(kafka, "Producer") as made:
        made.return_value.flush.return_value = 0
        producer = kafka.Producer({"bootstrap.servers": "nowhere:1"})
        assert producer.flush(1) == 0
    made.assert_called_once_with({"bootstrap.servers": "nowhere:1"})


def test_a_method_is_patched_on_a_class_of_ones_own(kafka: Any) -> None:
    class Recording(kafka.Producer):  # type: ignore[misc]
        def produce(self, topic: str, value: Any = None, *args: Any, **kwargs: Any) -> None:
            self.__dict__.setdefault("sent", []).append((topic, value))

    producer = Recording({"bootstrap.servers": "127.0.0.1:1"})
    producer.produce("orders", b"1")
    assert producer.sent == [("orders", b"1")]
    assert isinstance(producer, kafka.Producer)


# What is made of messages, partitions and errors.


def test_a_message_tells_what_it_was_made_of(kafka: Any) -> None:
    message = kafka.Message(
        topic="t",
        partition=1,
        offset=2,
        key=b"k",
        value=b"v",
        headers=[("h", b"1")],
        timestamp=(kafka.TIMESTAMP_CREATE_TIME, 3),
    )
    assert isinstance(message, kafka.Message)
    assert (message.topic(), message.partition(), message.offset()) == ("t", 1, 2)
    assert (message.key(), message.value(), message.headers()) == (b"k", b"v", [("h", b"1")])
    assert message.timestamp() == (kafka.TIMESTAMP_CREATE_TIME, 3)
    assert message.error() is None
    assert len(message) == 1


def test_a_message_is_changed_in_place(kafka: Any) -> None:
    message = kafka.Message(topic="t", value=b"v")
    message.set_value({"parsed": True})
    message.set_key("k")
    message.set_headers([("h", b"2")])
    assert (message.value(), message.key()) == ({"parsed": True}, "k")
    assert message.headers() == [("h", b"2")]


def test_partitions_are_found_in_sets_and_sorted(kafka: Any) -> None:
    partitions = [kafka.TopicPartition("b", 0), kafka.TopicPartition("a", 1, 5)]
    assert kafka.TopicPartition("a", 1) in set(partitions)
    assert [p.topic for p in sorted(partitions)] == ["a", "b"]
    assert {p: p.offset for p in partitions}[kafka.TopicPartition("a", 1)] == 5
    assert kafka.TopicPartition("a").partition == -1
    assert kafka.TopicPartition("a", 0).offset == kafka.OFFSET_INVALID


def test_errors_are_compared_with_codes_and_with_each_other(kafka: Any) -> None:
    error = kafka.KafkaError(kafka.KafkaError.UNKNOWN_TOPIC_OR_PART, "no such topic")
    assert error == kafka.KafkaError.UNKNOWN_TOPIC_OR_PART
    assert error == kafka.KafkaError(3)
    assert error.code() in (kafka.KafkaError.UNKNOWN_TOPIC_OR_PART, kafka.KafkaError._FAIL)
    assert (error.name(), error.str()) == ("UNKNOWN_TOPIC_OR_PART", "no such topic")
    assert "UNKNOWN_TOPIC_OR_PART" in str(kafka.KafkaException(error))
    assert {error: "seen"}[kafka.KafkaError(3)] == "seen"
    assert pickle.loads(pickle.dumps(error)) == error


def test_retriable_errors_are_tried_again(kafka: Any) -> None:
    outcomes = [kafka.KafkaException(kafka.KafkaError(7, retriable=True)), "done"]
    call = mock.Mock(side_effect=outcomes)
    for _ in range(3):
        try:
            result = call()
            break
        except kafka.KafkaException as exception:
            if not exception.args[0].retriable():
                raise
    assert result == "done"


# Settings that are wrong.


def test_an_unknown_setting_is_refused_by_name(kafka: Any) -> None:
    for client in (kafka.Producer, kafka.Consumer):
        with pytest.raises(kafka.KafkaException) as raised:
            client({"bootstrap.servers": "a:1", "group.id": "g", "no.such.setting": 1})
        error = raised.value.args[0]
        assert error.code() == kafka.KafkaError._INVALID_ARG
        assert 'No such configuration property: "no.such.setting"' in error.str()


@pytest.mark.parametrize(
    ("conf", "named"),
    [
        ({"socket.timeout.ms": "soon"}, "socket.timeout.ms"),
        ({"compression.codec": "brotli"}, "compression.codec"),
        ({"enable.idempotence": True, "acks": 1}, "acks"),
        ({"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN"}, "sasl.username"),
    ],
)
def test_a_wrong_value_is_refused_by_name(kafka: Any, conf: dict[str, Any], named: str) -> None:
    with pytest.raises(kafka.KafkaException, match=named) as raised:
        kafka.Producer({"bootstrap.servers": "a:1", **conf})
    assert raised.value.args[0].code() == kafka.KafkaError._INVALID_ARG


def test_a_callback_must_be_callable(kafka: Any) -> None:
    with pytest.raises(TypeError, match="error_cb"):
        kafka.Producer({"bootstrap.servers": "a:1", "error_cb": "later"})


def test_settings_must_be_a_dictionary(kafka: Any) -> None:
    for client in (kafka.Producer, kafka.Consumer):
        with pytest.raises(TypeError):
            client("localhost:9092")
        with pytest.raises(TypeError):
            client()


def test_a_consumer_needs_a_group(kafka: Any) -> None:
    with pytest.raises(ValueError, match=r"group\.id"):
        kafka.Consumer({"bootstrap.servers": "a:1"})


# Clients that reach nobody.


def test_nothing_is_lost_silently_where_no_broker_is(kafka: Any) -> None:
    told: list[Any] = []
    producer = kafka.Producer({"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 300})
    producer.produce("orders", b"1", on_delivery=lambda error, message: told.append(error))
    assert len(producer) >= 1
    assert producer.flush(10) == 0
    assert [error.code() for error in told] == [kafka.KafkaError._MSG_TIMED_OUT]


def test_a_poll_that_finds_nothing_is_none(kafka: Any) -> None:
    consumer = kafka.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
    consumer.subscribe(["orders"])
    assert consumer.poll(0.05) is None
    assert consumer.consume(5, timeout=0.05) == []
    consumer.close()


def test_a_closed_consumer_says_so(kafka: Any) -> None:
    consumer = kafka.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
    consumer.close()
    with pytest.raises(RuntimeError):
        consumer.poll(0)


def test_asking_nobody_times_out(kafka: Any) -> None:
    producer = kafka.Producer({"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(kafka.KafkaException) as raised:
        producer.list_topics(timeout=0.2)
    assert raised.value.args[0].code() in (
        kafka.KafkaError._TRANSPORT,
        kafka.KafkaError._TIMED_OUT,
        kafka.KafkaError._ALL_BROKERS_DOWN,
    )


# Administration with futures.


def ensure_topic(client: Any, admin: Any, kafka: Any, name: str) -> bool:
    """Whether it had to be created."""
    try:
        client.create_topics([admin.NewTopic(name, num_partitions=3)])[name].result()
    except kafka.KafkaException as exception:
        if exception.args[0].code() == kafka.KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise
    return True


def test_a_topic_that_exists_is_fine(kafka: Any, admin: Any) -> None:
    client = mock.Mock(spec=admin.AdminClient)
    future = mock.Mock()
    client.create_topics.return_value = {"orders": future}
    assert ensure_topic(client, admin, kafka, "orders")
    future.result.side_effect = kafka.KafkaException(
        kafka.KafkaError(kafka.KafkaError.TOPIC_ALREADY_EXISTS)
    )
    assert not ensure_topic(client, admin, kafka, "orders")
    future.result.side_effect = kafka.KafkaException(
        kafka.KafkaError(kafka.KafkaError.POLICY_VIOLATION)
    )
    with pytest.raises(kafka.KafkaException):
        ensure_topic(client, admin, kafka, "orders")
    ((topics,), _) = client.create_topics.call_args
    assert topics[0].topic == "orders"
    assert topics[0].num_partitions == 3


def test_new_topics_are_values(admin: Any) -> None:
    assert admin.NewTopic("a", 3, 1) == admin.NewTopic("a", 3, 1)
    assert admin.NewTopic("a", 3, 1) != admin.NewTopic("b", 3, 1)
    resource = admin.ConfigResource(admin.ResourceType.TOPIC, "a")
    assert {resource: 1}[admin.ConfigResource("topic", "a")] == 1
