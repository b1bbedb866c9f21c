"""Avro by a registry's schemas."""

from barnabas.registry.extra import needed_by
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
    "AsyncAvroSerializer",
    "AvroDeserializer",
    "AvroDeserializerBuilder",
    "AvroSerializer",
    "AvroSerializerBuilder",
]
