"""Objects to bytes and back: what `SerializingProducer` and `DeserializingConsumer` call.

A serializer is any callable of an object and a `SerializationContext`; the classes here are those
of the simple types. Numbers are big-endian, as Java writes them; None is None on both sides.
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
    """Where an object comes from or goes to."""

    def __init__(self, topic: str, field: MessageField, headers: Any = None) -> None:
        self.topic = topic
        self.field = field
        self.headers = headers


class SerializationError(KafkaException):
    """Raised by a serializer or deserializer that cannot do it."""


class _Serde:
    """What serializers and deserializers have in common; all of it may stay as it is."""

    def set_cluster_id_resolver(self, resolver: Callable[[], Any]) -> None:
        """Called once with a function that asks for the cluster's id; it may wait for a broker."""

    def close(self) -> None:
        """Called when the client is closed that had this built."""


class Serializer(_Serde):
    """Turns an object into bytes; to be derived from."""

    def __call__(self, obj: Any, ctx: SerializationContext | None = None) -> bytes | None:
        raise NotImplementedError


class Deserializer(_Serde):
    """Turns bytes into an object; to be derived from."""

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> Any:
        raise NotImplementedError


class SerializerBuilder:
    """Makes a serializer when the client is made, out of the client's own settings."""

    def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Serializer, dict[str, Any]]:
        """The serializer, and the settings that are left for the client."""
        raise NotImplementedError


class DeserializerBuilder:
    """Makes a deserializer when the client is made, out of the client's own settings."""

    def build(self, conf: dict[str, Any], is_key: bool) -> tuple[Deserializer, dict[str, Any]]:
        """The deserializer, and the settings that are left for the client."""
        raise NotImplementedError


class DoubleSerializer(Serializer):
    """A float as IEEE 754 of 64 bits."""

    def __call__(self, obj: float | None, ctx: SerializationContext | None = None) -> bytes | None:
        return _pack(">d", obj)


class DoubleDeserializer(Deserializer):
    """A float of IEEE 754 with 64 bits."""

    def __call__(
        self, value: bytes | None, ctx: SerializationContext | None = None
    ) -> float | None:
        number: float | None = _unpack(">d", value)
        return number


class IntegerSerializer(Serializer):
    """An int as 32 bits with sign."""

    def __call__(self, obj: int | None, ctx: SerializationContext | None = None) -> bytes | None:
        return _pack(">i", obj)


class IntegerDeserializer(Deserializer):
    """An int of 32 bits with sign."""

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
        except UnicodeError as problem:
            raise SerializationError(str(problem)) from problem


class StringDeserializer(Deserializer):
    """A str in any encoding that Python knows."""

    def __init__(self, codec: str = "utf_8") -> None:
        self.codec = codec

    def __call__(self, value: bytes | None, ctx: SerializationContext | None = None) -> str | None:
        if value is None:
            return None
        try:
            return value.decode(self.codec)
        except UnicodeError as problem:
            raise SerializationError(str(problem)) from problem


def _pack(form: str, number: float | None) -> bytes | None:
    if number is None:
        return None
    try:
        return struct.pack(form, number)
    except struct.error as problem:
        raise SerializationError(str(problem)) from problem


def _unpack(form: str, value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return struct.unpack(form, value)[0]
    except struct.error as problem:
        raise SerializationError(str(problem)) from problem
