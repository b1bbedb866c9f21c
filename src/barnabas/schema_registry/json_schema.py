"""JSON serializers that use a registry's schemas."""

from barnabas.schema_registry.serdes.builders import (
    AsyncJSONDeserializerBuilder,
    AsyncJSONSerializerBuilder,
    JSONDeserializerBuilder,
    JSONSerializerBuilder,
)
from barnabas.schemas import extra_required_by

with extra_required_by(__name__):
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
