"""SerializingProducer and DeserializingConsumer behave like those of confluent_kafka."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.fixture
def package(world: str) -> Any:
    return importlib.import_module(world)


@pytest.fixture
def errors(world: str) -> Any:
    return importlib.import_module(f"{world}.error")


@pytest.fixture
def serialization(world: str) -> Any:
    return importlib.import_module(f"{world}.serialization")


def refuse(_: Any, __: Any) -> bytes:
    raise ValueError("not this one")


def test_a_key_serialization_error_has_its_cause(package: Any, errors: Any) -> None:
    producer = package.SerializingProducer({**NOWHERE, "key.serializer": refuse})
    with pytest.raises(errors.KeySerializationError) as raised:
        producer.produce("orders", key=1, value=b"v")
    assert isinstance(raised.value, errors.ProduceError)
    assert isinstance(raised.value, package.KafkaException)
    assert raised.value.code == package.KafkaError._KEY_SERIALIZATION
    assert raised.value.name == "_KEY_SERIALIZATION"
    assert raised.value.args[0].str() == "not this one"
    assert isinstance(raised.value.exception, ValueError)


def test_a_value_serialization_error_has_its_cause(
    package: Any, errors: Any, serialization: Any
) -> None:
    producer = package.SerializingProducer(
        {**NOWHERE, "value.serializer": serialization.IntegerSerializer()}
    )
    with pytest.raises(errors.ValueSerializationError) as raised:
        producer.produce("orders", value=2**40)
    assert isinstance(raised.value.exception, serialization.SerializationError)


def test_a_topic_must_be_text_before_anything_is_serialized(package: Any) -> None:
    seen: list[Any] = []
    producer = package.SerializingProducer(
        {**NOWHERE, "value.serializer": lambda value, context: seen.append(value)}
    )
    with pytest.raises(TypeError):
        producer.produce(5, value="v")
    assert seen == []


def test_a_closed_producer_serializes_nothing_more(package: Any) -> None:
    seen: list[Any] = []
    with package.SerializingProducer(
        {**NOWHERE, "value.serializer": lambda value, context: seen.append(value)}
    ) as producer:
        pass
    with pytest.raises(RuntimeError):
        producer.produce("orders", value="v")
    assert seen == []


def test_serializers_get_topic_field_and_headers(
    package: Any, serialization: Any, servers: str, topic: Callable[..., str]
) -> None:
    contexts: list[tuple[Any, ...]] = []

    def remember(value: str, context: Any) -> bytes:
        contexts.append((context.topic, context.field, context.headers))
        return value.encode()

    name = topic()
    producer = package.SerializingProducer(
        {
            "bootstrap.servers": servers,
            "key.serializer": remember,
            "value.serializer": remember,
        }
    )
    headers = [("h", b"1")]
    producer.produce(name, key="k", value="v", headers=headers)
    assert producer.flush(30) == 0
    assert contexts == [
        (name, serialization.MessageField.KEY, headers),
        (name, serialization.MessageField.VALUE, headers),
    ]


def test_numbers_round_trip(
    package: Any, serialization: Any, servers: str, topic: Callable[..., str]
) -> None:
    name = topic()
    producer = package.SerializingProducer(
        {
            "bootstrap.servers": servers,
            "key.serializer": serialization.IntegerSerializer(),
            "value.serializer": serialization.DoubleSerializer(),
        }
    )
    producer.produce(name, key=7, value=0.5)
    producer.produce(name, key=None, value=None)
    assert producer.flush(30) == 0
    consumer = package.DeserializingConsumer(
        {
            "bootstrap.servers": servers,
            "group.id": name,
            "auto.offset.reset": "earliest",
            "key.deserializer": serialization.IntegerDeserializer(),
            "value.deserializer": serialization.DoubleDeserializer(),
        }
    )
    consumer.assign([package.TopicPartition(name, 0, 0)])
    messages = [consumer.poll(10), consumer.poll(10)]
    assert [(m.key(), m.value()) for m in messages] == [(7, 0.5), (None, None)]
    assert messages[0].deserialized_value() == 0.5
    with pytest.raises(NotImplementedError):
        consumer.consume(1)
    consumer.close()


def test_the_end_of_a_partition_is_raised(
    package: Any, errors: Any, servers: str, topic: Callable[..., str]
) -> None:
    consumer = package.DeserializingConsumer(
        {
            "bootstrap.servers": servers,
            "group.id": "ends",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([package.TopicPartition(topic(), 0, 0)])
    with pytest.raises(errors.ConsumeError) as raised:
        consumer.poll(10)
    assert raised.value.code == package.KafkaError._PARTITION_EOF
    assert raised.value.kafka_message.error() == package.KafkaError._PARTITION_EOF
    consumer.close()


def test_a_serializer_that_was_built_is_closed_with_its_producer(
    package: Any, serialization: Any
) -> None:
    class Built(serialization.Serializer):  # type: ignore[misc]
        closed = 0

        def __call__(self, obj: Any, ctx: Any = None) -> bytes:
            return b""

        def close(self) -> None:
            Built.closed += 1

    class Builder(serialization.SerializerBuilder):  # type: ignore[misc]
        def build(self, conf: dict[str, Any], is_key: bool) -> Any:
            conf.pop("schema.url")
            return Built(), conf

    conf = {**NOWHERE, "schema.url": "x", "value.serializer.builder": Builder()}
    producer = package.SerializingProducer(conf)
    producer.close()
    assert Built.closed == 1
    with pytest.raises(ValueError, match=r"value\.serializer"):
        package.SerializingProducer({**conf, "value.serializer": refuse})
