"""Protobuf by a registry's schemas."""

from barnabas.registry.extra import needed_by
from barnabas.registry.serdes.async_builders import (
    AsyncProtobufDeserializerBuilder,
    AsyncProtobufSerializerBuilder,
)
from barnabas.registry.serdes.builders import ProtobufDeserializerBuilder, ProtobufSerializerBuilder

with needed_by(__name__):
    from barnabas.registry.serdes.protobuf import (
        AsyncProtobufDeserializer,
        AsyncProtobufSerializer,
        ProtobufDeserializer,
        ProtobufSerializer,
    )

__all__ = [
    "AsyncProtobufDeserializer",
    "AsyncProtobufDeserializerBuilder",
    "AsyncProtobufSerializer",
    "AsyncProtobufSerializerBuilder",
    "ProtobufDeserializer",
    "ProtobufDeserializerBuilder",
    "ProtobufSerializer",
    "ProtobufSerializerBuilder",
]
