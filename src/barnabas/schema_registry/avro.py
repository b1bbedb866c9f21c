"""Avro by a registry's schemas."""

from barnabas.registry.extra import needed_by
from barnabas.registry.serdes.async_builders import (
    AsyncAvroDeserializerBuilder,
    AsyncAvroSerializerBuilder,
)
from barnabas.registry.serdes.builders import AvroDeserializerBuilder, AvroSerializerBuilder

with needed_by(__name__):
    from barnabas.registry.serdes.avro import (
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
