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
def package(world: str) -> Any:
    """The package, whichever of the two it is."""
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


def test_publish_hands_the_value_to_the_producer(package: Any) -> None:
    producer = mock.create_autospec(package.Producer, instance=True)
    publisher = Publisher(producer)
    publisher.publish("orders", b"1")
    producer.produce.assert_called_once_with("orders", b"1", on_delivery=publisher.delivered)


def test_publish_waits_when_the_queue_is_full(package: Any) -> None:
    producer = mock.Mock(spec=package.Producer)
    producer.produce.side_effect = [BufferError("Local: Queue full"), None]
    Publisher(producer).publish("orders", b"1")
    producer.poll.assert_called_once_with(1)
    assert producer.produce.call_count == 2


def test_a_failed_delivery_is_counted(package: Any) -> None:
    publisher = Publisher(mock.Mock(spec=package.Producer))
    error = package.KafkaError(package.KafkaError._MSG_TIMED_OUT)
    publisher.delivered(error, mock.Mock(spec=package.Message))
    publisher.delivered(None, package.Message(topic="orders", value=b"1"))
    assert publisher.failed == ["_MSG_TIMED_OUT"]


# A loop that handles what it polls.


def drain(consumer: Any, package: Any, handle: Callable[[bytes], None]) -> int:
    handled = 0
    while True:
        message = consumer.poll(1.0)
        if message is None:
            return handled
        if message.error():
            if message.error().code() == package.KafkaError._PARTITION_EOF:
                continue
            raise package.KafkaException(message.error())
        handle(message.value())
        consumer.commit(message=message, asynchronous=False)
        handled += 1


def polled(package: Any, value: bytes = b"", error: Any = None) -> mock.Mock:
    message = mock.Mock(spec=package.Message)
    message.error.return_value = error
    message.value.return_value = value
    return message


def test_the_end_of_a_partition_is_not_an_error(package: Any) -> None:
    consumer = mock.create_autospec(package.Consumer, instance=True)
    end = package.KafkaError(package.KafkaError._PARTITION_EOF)
    first = polled(package, b"1")
    consumer.poll.side_effect = [first, polled(package, error=end), polled(package, b"2"), None]
    handled: list[bytes] = []
    assert drain(consumer, package, handled.append) == 2
    assert handled == [b"1", b"2"]
    assert consumer.commit.call_args_list[0] == mock.call(message=first, asynchronous=False)


def test_another_error_is_raised_with_its_code(package: Any) -> None:
    consumer = mock.Mock(spec=package.Consumer)
    error = package.KafkaError(package.KafkaError._ALL_BROKERS_DOWN)
    consumer.poll.return_value = polled(package, error=error)
    with pytest.raises(package.KafkaException) as raised:
        drain(consumer, package, print)
    assert raised.value.args[0].code() == package.KafkaError._ALL_BROKERS_DOWN
    assert raised.value.args[0] == error


def test_messages_can_be_constructed_in_tests(package: Any) -> None:
    consumer = mock.Mock(spec=package.Consumer)
    consumer.poll.side_effect = [
        package.Message(topic="t", partition=0, offset=1, value=b"x"),
        None,
    ]
    handled: list[bytes] = []
    assert drain(consumer, package, handled.append) == 1
    assert handled == [b"x"]


def test_a_handler_that_raises_leaves_its_message_uncommitted(package: Any) -> None:
    consumer = mock.Mock(spec=package.Consumer)
    consumer.poll.return_value = polled(package, b"x")
    with pytest.raises(ZeroDivisionError):
        drain(consumer, package, lambda _: 1 // 0)
    consumer.commit.assert_not_called()


# Patching the class where it is used.


def test_a_client_can_be_patched_where_it_is_created(package: Any) -> None:
    with mock.patch.object(package, "Producer") as made:
        made.return_value.flush.return_value = 0
        producer = package.Producer({"bootstrap.servers": "nowhere:1"})
        assert producer.flush(1) == 0
    made.assert_called_once_with({"bootstrap.servers": "nowhere:1"})


def test_a_method_can_be_patched_on_a_subclass(package: Any) -> None:
    class Recording(package.Producer):  # type: ignore[misc]
        def produce(self, topic: str, value: Any = None, *args: Any, **kwargs: Any) -> None:
            self.__dict__.setdefault("sent", []).append((topic, value))

    producer = Recording({"bootstrap.servers": "127.0.0.1:1"})
    producer.produce("orders", b"1")
    assert producer.sent == [("orders", b"1")]
    assert isinstance(producer, package.Producer)


# What is made of messages, partitions and errors.


def test_a_message_returns_its_fields(package: Any) -> None:
    message = package.Message(
        topic="t",
        partition=1,
        offset=2,
        key=b"k",
        value=b"v",
        headers=[("h", b"1")],
        timestamp=(package.TIMESTAMP_CREATE_TIME, 3),
    )
    assert isinstance(message, package.Message)
    assert (message.topic(), message.partition(), message.offset()) == ("t", 1, 2)
    assert (message.key(), message.value(), message.headers()) == (b"k", b"v", [("h", b"1")])
    assert message.timestamp() == (package.TIMESTAMP_CREATE_TIME, 3)
    assert message.error() is None
    assert len(message) == 1


def test_a_message_is_changed_in_place(package: Any) -> None:
    message = package.Message(topic="t", value=b"v")
    message.set_value({"parsed": True})
    message.set_key("k")
    message.set_headers([("h", b"2")])
    assert (message.value(), message.key()) == ({"parsed": True}, "k")
    assert message.headers() == [("h", b"2")]


def test_partitions_are_found_in_sets_and_sorted(package: Any) -> None:
    partitions = [package.TopicPartition("b", 0), package.TopicPartition("a", 1, 5)]
    assert package.TopicPartition("a", 1) in set(partitions)
    assert [p.topic for p in sorted(partitions)] == ["a", "b"]
    assert {p: p.offset for p in partitions}[package.TopicPartition("a", 1)] == 5
    assert package.TopicPartition("a").partition == -1
    assert package.TopicPartition("a", 0).offset == package.OFFSET_INVALID


def test_errors_are_compared_with_codes_and_with_each_other(package: Any) -> None:
    error = package.KafkaError(package.KafkaError.UNKNOWN_TOPIC_OR_PART, "no such topic")
    assert error == package.KafkaError.UNKNOWN_TOPIC_OR_PART
    assert error == package.KafkaError(3)
    assert error.code() in (package.KafkaError.UNKNOWN_TOPIC_OR_PART, package.KafkaError._FAIL)
    assert (error.name(), error.str()) == ("UNKNOWN_TOPIC_OR_PART", "no such topic")
    assert "UNKNOWN_TOPIC_OR_PART" in str(package.KafkaException(error))
    assert {error: "seen"}[package.KafkaError(3)] == "seen"
    assert pickle.loads(pickle.dumps(error)) == error


def test_retriable_errors_are_tried_again(package: Any) -> None:
    outcomes = [package.KafkaException(package.KafkaError(7, retriable=True)), "done"]
    call = mock.Mock(side_effect=outcomes)
    for _ in range(3):
        try:
            result = call()
            break
        except package.KafkaException as exception:
            if not exception.args[0].retriable():
                raise
    assert result == "done"


# Settings that are wrong.


def test_an_unknown_setting_is_rejected_by_name(package: Any) -> None:
    for client in (package.Producer, package.Consumer):
        with pytest.raises(package.KafkaException) as raised:
            client({"bootstrap.servers": "a:1", "group.id": "g", "no.such.setting": 1})
        error = raised.value.args[0]
        assert error.code() == package.KafkaError._INVALID_ARG
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
def test_an_invalid_value_is_rejected_by_name(
    package: Any, conf: dict[str, Any], named: str
) -> None:
    with pytest.raises(package.KafkaException, match=named) as raised:
        package.Producer({"bootstrap.servers": "a:1", **conf})
    assert raised.value.args[0].code() == package.KafkaError._INVALID_ARG


def test_a_callback_must_be_callable(package: Any) -> None:
    with pytest.raises(TypeError, match="error_cb"):
        package.Producer({"bootstrap.servers": "a:1", "error_cb": "later"})


def test_settings_must_be_a_dictionary(package: Any) -> None:
    for client in (package.Producer, package.Consumer):
        with pytest.raises(TypeError):
            client("localhost:9092")
        with pytest.raises(TypeError):
            client()


def test_a_consumer_needs_a_group(package: Any) -> None:
    with pytest.raises(ValueError, match=r"group\.id"):
        package.Consumer({"bootstrap.servers": "a:1"})


# Clients without a reachable broker.


def test_records_without_a_broker_are_reported_as_failed(package: Any) -> None:
    errors: list[Any] = []
    producer = package.Producer({"bootstrap.servers": "127.0.0.1:1", "message.timeout.ms": 300})
    producer.produce("orders", b"1", on_delivery=lambda error, message: errors.append(error))
    assert len(producer) >= 1
    assert producer.flush(10) == 0
    assert [error.code() for error in errors] == [package.KafkaError._MSG_TIMED_OUT]


def test_a_poll_that_finds_nothing_is_none(package: Any) -> None:
    consumer = package.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
    consumer.subscribe(["orders"])
    assert consumer.poll(0.05) is None
    assert consumer.consume(5, timeout=0.05) == []
    consumer.close()


def test_a_closed_consumer_says_so(package: Any) -> None:
    consumer = package.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
    consumer.close()
    with pytest.raises(RuntimeError):
        consumer.poll(0)


def test_a_request_without_a_broker_times_out(package: Any) -> None:
    producer = package.Producer({"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(package.KafkaException) as raised:
        producer.list_topics(timeout=0.2)
    assert raised.value.args[0].code() in (
        package.KafkaError._TRANSPORT,
        package.KafkaError._TIMED_OUT,
        package.KafkaError._ALL_BROKERS_DOWN,
    )


# Administration with futures.


def ensure_topic(client: Any, admin: Any, package: Any, name: str) -> bool:
    """Whether it had to be created."""
    try:
        client.create_topics([admin.NewTopic(name, num_partitions=3)])[name].result()
    except package.KafkaException as exception:
        if exception.args[0].code() == package.KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise
    return True


def test_creating_an_existing_topic_is_not_fatal(package: Any, admin: Any) -> None:
    client = mock.Mock(spec=admin.AdminClient)
    future = mock.Mock()
    client.create_topics.return_value = {"orders": future}
    assert ensure_topic(client, admin, package, "orders")
    future.result.side_effect = package.KafkaException(
        package.KafkaError(package.KafkaError.TOPIC_ALREADY_EXISTS)
    )
    assert not ensure_topic(client, admin, package, "orders")
    future.result.side_effect = package.KafkaException(
        package.KafkaError(package.KafkaError.POLICY_VIOLATION)
    )
    with pytest.raises(package.KafkaException):
        ensure_topic(client, admin, package, "orders")
    ((topics,), _) = client.create_topics.call_args
    assert topics[0].topic == "orders"
    assert topics[0].num_partitions == 3


def test_new_topics_are_values(admin: Any) -> None:
    assert admin.NewTopic("a", 3, 1) == admin.NewTopic("a", 3, 1)
    assert admin.NewTopic("a", 3, 1) != admin.NewTopic("b", 3, 1)
    resource = admin.ConfigResource(admin.ResourceType.TOPIC, "a")
    assert {resource: 1}[admin.ConfigResource("topic", "a")] == 1
