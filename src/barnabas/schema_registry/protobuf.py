"""Protobuf serializers that use a registry's schemas."""

from barnabas.schema_registry.serdes.builders import (
    AsyncProtobufDeserializerBuilder,
    AsyncProtobufSerializerBuilder,
    ProtobufDeserializerBuilder,
    ProtobufSerializerBuilder,
)
from barnabas.schemas import extra_required_by

with extra_required_by(__name__):
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
