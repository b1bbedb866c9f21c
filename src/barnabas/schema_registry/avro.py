"""Avro serializers that use a registry's schemas."""

from barnabas.schema_registry.serdes.builders import (
    AsyncAvroDeserializerBuilder,
    AsyncAvroSerializerBuilder,
    AvroDeserializerBuilder,
    AvroSerializerBuilder,
)
from barnabas.schemas import extra_required_by

with extra_required_by(__name__):
    from barnabas.schema_registry.serdes.avro import (
        AsyncAvroDeserializer,
        AsyncAvroSerializer,
        AvroDeserializer,
        AvroSerializer,
    )

__all__ = [
    "AsyncAvroDeserializer",
    "AsyncAvroDeserializerBuilder",
    "AsyncAvroSerializer",
    "AsyncAvroSerializerBuilder",
    "AvroDeserializer",
    "AvroDeserializerBuilder",
    "AvroSerializer",
    "AvroSerializerBuilder",
]
