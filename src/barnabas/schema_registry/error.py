"""What a registry's client raises; and fastavro, of a text that is no schema."""

from typing import Any

from barnabas.schema_registry.client.errors import (
    OAuthTokenError,
    RegistryUnreachableError,
    SchemaRegistryError,
)

__all__ = ["OAuthTokenError", "RegistryUnreachableError", "SchemaRegistryError"]


def __getattr__(name: str) -> Any:
    """`SchemaParseException` and `UnknownType`; whoever needs no Avro does without the library."""
    if name not in ("SchemaParseException", "UnknownType"):
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from fastavro import schema

    return getattr(schema, name)
