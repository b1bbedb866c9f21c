"""The schema that a serializer was given, in whichever form."""

from typing import Any

from barnabas.schema_registry.client.schemas import Schema


def given_schema(schema: Any, schema_type: str) -> Any:
    """A text, or a Schema of either library; None where none was given."""
    if schema is None or hasattr(schema, "schema_str"):
        return schema
    if not isinstance(schema, str):
        raise TypeError(f"a schema must be a str or a Schema, not {type(schema).__name__}")
    return Schema(schema, schema_type)
