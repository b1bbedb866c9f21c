"""`format=`: the text of a schema in another form, where its language has one.

`resolved` for Avro has what it refers to in place; `serialized` for Protobuf is a descriptor.
"""

from starlette.requests import Request

from barnabas.registry.api.asking import state_of
from barnabas.registry.formats import SchemaType
from barnabas.registry.records import SchemaValue
from barnabas.registry.schemas import parsed_version


def formatted(request: Request, value: SchemaValue) -> str:
    """As asked for; as it is stored if nothing else was, or if the language has no such form."""
    match request.query_params.get("format", ""), value.definition.schema_type:
        case "serialized", SchemaType.PROTOBUF:
            from barnabas.registry.formats.protobuf import ProtobufSchema

            message = parsed_version(state_of(request), value)
            assert isinstance(message, ProtobufSchema)
            return message.serialized
        case "resolved", SchemaType.AVRO:
            from barnabas.registry.formats.avro import AvroSchema

            schema = parsed_version(state_of(request), value)
            assert isinstance(schema, AvroSchema)
            return schema.resolved
    return value.definition.schema
