"""Avro by a registry's schemas."""

from barnabas.registry.extra import needed_by
from barnabas.registry.serdes.builders import AvroDeserializerBuilder, AvroSerializerBuilder

with needed_by(__name__):
    from barnabas.registry.serdes.avro import AvroDeserializer, AvroSerializer

__all__ = [
    "AvroDeserializer",
    "AvroDeserializerBuilder",
    "AvroSerializer",
    "AvroSerializerBuilder",
]
