"""Serializers and deserializers for `SerializingProducer` and `DeserializingConsumer`.

A serializer is any callable of an object and a `SerializationContext`; the classes here are for
simple types. Numbers are big-endian, as in Java; None is None on both sides.
"""

import struct
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from barnabas.client.errors import KafkaException

__all__ = [
    "Deserializer",
    "DeserializerBuilder",
    "DoubleDeserializer",
    "DoubleSerializer",
    "IntegerDeserializer",
    "IntegerSerializer",
    "MessageField",
    "SerializationContext",
    "SerializationError",
    "Serializer",
    "SerializerBuilder",
    "StringDeserializer",
    "StringSerializer",
]


class MessageField(StrEnum):
    """The part of a message that is being serialized."""

    NONE = "none"
    KEY = "key"
    VALUE = "value"


class SerializationContext:
    """The topic, field and headers of the message that is being serialized."""

    def __init__(self, topic: str, field: MessageField, headers: Any = None) -> None:
        self.topic = topic
        self.field = field
        self.headers = headers


class SerializationError(KafkaException):
    """Raised by a serializer or deserializer for a value that it cannot convert."""


class _Serde:
    """The optional methods of serializers and deserializers."""

    def set_cluster_id_resolver(self, resolver: Callable[[], Any]) -> None:
        """Called once with a function that returns the cluster id; it may wait for a broker."""

    def close(self) -> None:
        """Called when the client that built it is closed."""


class Serializer(_Serde):
    """Base class: turns an object into bytes."""

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        raise NotImplementedError


class Deserializer(_Serde):
    """Base class: turns bytes into an object."""

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        raise NotImplementedError


class SerializerBuilder:
    """Builds a serializer from the settings of the client."""

    def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Serializer, dict[str, Any]]:
        """Returns the serializer, and the remaining settings for the client."""
        raise NotImplementedError


class DeserializerBuilder:
    """Builds a deserializer from the settings of the client."""

    def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Deserializer, dict[str, Any]]:
        """Returns the deserializer, and the remaining settings for the client."""
        raise NotImplementedError


class DoubleSerializer(Serializer):
    """A float as IEEE 754 with 64 bits."""

    def __call__(self, obj: float | None, ctx: SerializationContext | None = None) -> bytes | None:
        return _pack(">d", obj)


class DoubleDeserializer(Deserializer):
    """A float from IEEE 754 with 64 bits."""

    def __call__(
        self, value: bytes | None, ctx: SerializationContext | None = None
    ) -> float | None:
        number: float | None = _unpack(">d", value)
        return number


class IntegerSerializer(Serializer):
    """An int as a signed 32-bit number."""

    def __call__(self, obj: int | None, ctx: SerializationContext | None = None) -> bytes | None:
        return _pack(">i", obj)


class IntegerDeserializer(Deserializer):
    """An int from a signed 32-bit number."""

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> int | None:
        number: int | None = _unpack(">i", value)
        return number


class StringSerializer(Serializer):
    """A str in any encoding that Python knows."""

    def __init__(self, codec: str = "utf_8") -> None:
        self.codec = codec

    def __call__(self, obj: str | None, ctx: SerializationContext | None = None) -> bytes | None:
        if obj is None:
            return None
        try:
            return obj.encode(self.codec)
        except UnicodeError as error:
            raise SerializationError(str(error)) from error


class StringDeserializer(Deserializer):
    """A str in any encoding that Python knows."""

    def __init__(self, codec: str = "utf_8") -> None:
        self.codec = codec

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> str | None:
        if value is None:
            return None
        try:
            return value.decode(self.codec)
        except UnicodeError as error:
            raise SerializationError(str(error)) from error


def _pack(form: str, number: float | None) -> bytes | None:
    if number is None:
        return None
    try:
        return struct.pack(form, number)
    except struct.error as error:
        raise SerializationError(str(error)) from error


def _unpack(form: str, value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return struct.unpack(form, value)[0]
    except struct.error as error:
        raise SerializationError(str(error)) from error
