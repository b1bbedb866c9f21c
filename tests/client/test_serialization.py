"""The simple types to bytes and back, and the pair of serializers that a client owns."""

import struct
from typing import Any

import confluent_kafka.error
import confluent_kafka.serialization
import pytest
from hypothesis import given
from hypothesis import strategies as some

import barnabas.error
import barnabas.serialization
from barnabas.client.errors import KafkaError, KafkaException
from barnabas.client.serdes import Serdes
from barnabas.serialization import (
    DoubleDeserializer,
    DoubleSerializer,
    IntegerDeserializer,
    IntegerSerializer,
    MessageField,
    SerializationContext,
    SerializationError,
    SerializerBuilder,
    StringDeserializer,
    StringSerializer,
)

theirs = confluent_kafka.serialization
CONTEXT = SerializationContext("t", MessageField.VALUE)


@pytest.mark.parametrize("name", confluent_kafka.serialization.__all__)
def test_every_name_of_confluent_kafka_is_here(name: str) -> None:
    assert hasattr(barnabas.serialization, name)


@given(some.integers(-(2**31), 2**31 - 1))
def test_integers_survive_a_round_trip(number: int) -> None:
    data = IntegerSerializer()(number, CONTEXT)
    assert data == theirs.IntegerSerializer()(number)
    assert IntegerDeserializer()(data, CONTEXT) == number


@given(some.floats(allow_nan=False))
def test_doubles_survive_a_round_trip(number: float) -> None:
    data = DoubleSerializer()(number)
    assert data == theirs.DoubleSerializer()(number)
    assert DoubleDeserializer()(data) == number


@pytest.mark.parametrize("codec", ["utf_8", "utf-16", "latin-1"])
def test_strings_survive_a_round_trip(codec: str) -> None:
    data = StringSerializer(codec)("Überbringer")
    assert data == theirs.StringSerializer(codec)("Überbringer")
    assert StringDeserializer(codec)(data) == "Überbringer"


@pytest.mark.parametrize(
    "serde",
    [
        DoubleDeserializer(),
        DoubleSerializer(),
        IntegerDeserializer(),
        IntegerSerializer(),
        StringDeserializer(),
        StringSerializer(),
    ],
)
def test_none_is_none(serde: Any) -> None:
    assert serde(None, CONTEXT) is None


@pytest.mark.parametrize(
    ("serde", "wrong"),
    [
        (IntegerSerializer(), 2**31),
        (IntegerSerializer(), "1"),
        (IntegerDeserializer(), b"123"),
        (DoubleSerializer(), "1"),
        (DoubleDeserializer(), b"1"),
        (StringSerializer("ascii"), "ü"),
        (StringDeserializer(), b"\xff"),
    ],
)
def test_a_value_that_does_not_fit_is_a_serialization_error(serde: Any, wrong: Any) -> None:
    with pytest.raises(SerializationError) as raised:
        serde(wrong)
    assert isinstance(raised.value, KafkaException)
    assert isinstance(raised.value.__cause__, struct.error | UnicodeError)


def test_a_field_is_its_name() -> None:
    assert f"{MessageField.KEY}" == str(MessageField.KEY) == "key" == MessageField.KEY


@pytest.mark.parametrize("name", barnabas.error.__all__)
def test_the_exceptions_are_related_as_in_confluent_kafka(name: str) -> None:
    def family(of: Any) -> list[str]:
        return [kind.__name__ for kind in of.__mro__ if not kind.__name__.startswith("_")]

    ours, other = getattr(barnabas.error, name), getattr(confluent_kafka.error, name)
    assert set(family(other)) <= set(family(ours))


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("KeySerializationError", KafkaError._KEY_SERIALIZATION),
        ("ValueSerializationError", KafkaError._VALUE_SERIALIZATION),
        ("KeyDeserializationError", KafkaError._KEY_DESERIALIZATION),
        ("ValueDeserializationError", KafkaError._VALUE_DESERIALIZATION),
    ],
)
def test_the_exception_of_a_serializer_is_carried(kind: str, code: int) -> None:
    cause = ValueError("not so")
    ours = getattr(barnabas.error, kind)(exception=cause)
    other = getattr(confluent_kafka.error, kind)(exception=cause)
    assert (ours.code, ours.name, str(ours)) == (other.code, other.name, str(other))
    assert ours.code == code
    assert ours.exception is cause
    assert ours.kafka_message is None


# The pair that a client owns


class Built:
    def __init__(self) -> None:
        self.closed = 0
        self.resolver: Any = None

    def __call__(self, obj: Any, ctx: Any) -> bytes:
        return b"built"

    def set_cluster_id_resolver(self, resolver: Any) -> None:
        self.resolver = resolver

    def close(self) -> None:
        self.closed += 1


class Builder(SerializerBuilder):
    def __init__(self, takes: str) -> None:
        self.takes = takes
        self.built = Built()
        self.saw: dict[str, Any] = {}

    def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Any, dict[str, Any]]:
        self.saw = conf
        return self.built, {name: conf[name] for name in conf if name != self.takes}


def test_serializers_are_taken_out_of_the_settings() -> None:
    conf = {"key.serializer": str.encode, "value.serializer": bytes, "acks": 1}
    serdes, rest = Serdes.from_settings(conf, "serializer")
    assert (serdes.key, serdes.value, rest) == (str.encode, bytes, {"acks": 1})
    assert len(conf) == 3


def test_builders_see_all_settings_and_keep_their_own() -> None:
    key, value = Builder("schema.url"), Builder("schema.user")
    conf = {"schema.url": 1, "schema.user": 2, "acks": 1}
    serdes, rest = Serdes.from_settings(
        {**conf, "key.serializer.builder": key, "value.serializer.builder": value}, "serializer"
    )
    assert key.saw == value.saw == conf
    assert rest == {"acks": 1}
    serdes.set_cluster_id_resolver(print)
    assert key.built.resolver is value.built.resolver is print
    serdes.close()
    serdes.close()
    assert (key.built.closed, value.built.closed) == (1, 1)


def test_serializers_of_the_user_are_not_closed() -> None:
    given = Built()
    serdes, _ = Serdes.from_settings({"key.serializer": given}, "serializer")
    serdes.close()
    assert given.closed == 0


def test_a_serializer_and_its_builder_exclude_each_other() -> None:
    key, value = Builder("x"), Builder("x")
    conf = {
        "key.serializer.builder": key,
        "value.serializer": bytes,
        "value.serializer.builder": value,
    }
    with pytest.raises(ValueError, match=r"value\.serializer"):
        Serdes.from_settings(conf, "serializer")
    assert key.built.closed == 1


@pytest.mark.parametrize("result", [None, Built(), (Built(), 3), (1, 2, 3)])
def test_a_builder_that_returns_something_else_is_named(result: Any) -> None:
    class Odd(SerializerBuilder):
        def build(self, conf: dict[str, Any], is_key: bool) -> Any:
            return result

    with pytest.raises(ValueError, match=r"key\.serializer\.builder"):
        Serdes.from_settings({"key.serializer.builder": Odd()}, "serializer")
