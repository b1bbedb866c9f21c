"""`format=` and `referenceFormat=`: a schema in another form, where its language has one.

`resolved` for Avro has what it refers to in place; `serialized` for Protobuf is a descriptor.
"""

from typing import Any

from starlette.requests import Request

from barnabas.registry.api.asking import state_of
from barnabas.registry.naming import beside
from barnabas.registry.records import SchemaValue
from barnabas.registry.schemas import parsed_version
from barnabas.schemas import SchemaType


def formatted(request: Request, value: SchemaValue) -> str:
    """As asked for; as it is stored if nothing else was, or if the language has no such form."""
    match request.query_params.get("format", ""), value.definition.schema_type:
        case "serialized", SchemaType.PROTOBUF:
            from barnabas.schemas.protobuf import ProtobufSchema

            message = parsed_version(state_of(request), value)
            assert isinstance(message, ProtobufSchema)
            return message.serialized
        case "resolved", SchemaType.AVRO:
            return parsed_version(state_of(request), value).resolved
    return value.definition.schema


def with_references(request: Request, value: SchemaValue, told: dict[str, Any]) -> dict[str, Any]:
    """What is told of it, with the subjects it refers to as any context would name them."""
    if request.query_params.get("referenceFormat") == "qualified":
        for each in told.get("references", ()):
            each["subject"] = beside(value.subject, each["subject"])
    return told
