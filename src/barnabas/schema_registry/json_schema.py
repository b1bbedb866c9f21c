"""JSON by a registry's schemas."""

from barnabas.registry.extra import needed_by
from barnabas.registry.serdes.async_builders import (
    AsyncJSONDeserializerBuilder,
    AsyncJSONSerializerBuilder,
)
from barnabas.registry.serdes.builders import JSONDeserializerBuilder, JSONSerializerBuilder

with needed_by(__name__):
    from barnabas.registry.serdes.json_schema import (
        AsyncJSONDeserializer,
        AsyncJSONSerializer,
        JSONDeserializer,
        JSONSerializer,
    )

__all__ = [
    "AsyncJSONDeserializer",
    "AsyncJSONDeserializerBuilder",
    "AsyncJSONSerializer",
    "AsyncJSONSerializerBuilder",
    "JSONDeserializer",
    "JSONDeserializerBuilder",
    "JSONSerializer",
    "JSONSerializerBuilder",
]
