"""Avro by a registry's schemas."""

from barnabas.schema_registry.serdes.async_builders import (
    AsyncAvroDeserializerBuilder,
    AsyncAvroSerializerBuilder,
)
from barnabas.schema_registry.serdes.builders import AvroDeserializerBuilder, AvroSerializerBuilder
from barnabas.schemas.extra import needed_by

with needed_by(__name__):
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
