"""Protobuf by a registry's schemas."""

from barnabas.schema_registry.serdes.async_builders import (
    AsyncProtobufDeserializerBuilder,
    AsyncProtobufSerializerBuilder,
)
from barnabas.schema_registry.serdes.builders import (
    ProtobufDeserializerBuilder,
    ProtobufSerializerBuilder,
)
from barnabas.schemas.extra import needed_by

with needed_by(__name__):
    from barnabas.schema_registry.serdes.protobuf import (
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
