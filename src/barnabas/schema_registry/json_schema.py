"""JSON by a registry's schemas."""

from barnabas.schema_registry.serdes.async_builders import (
    AsyncJSONDeserializerBuilder,
    AsyncJSONSerializerBuilder,
)
from barnabas.schema_registry.serdes.builders import JSONDeserializerBuilder, JSONSerializerBuilder
from barnabas.schemas.extra import needed_by

with needed_by(__name__):
    from barnabas.schema_registry.serdes.json_schema import (
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
