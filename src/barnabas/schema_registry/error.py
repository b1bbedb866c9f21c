"""The exceptions of the client, and those of fastavro for an invalid schema."""

from typing import Any

from barnabas.schema_registry.client.errors import (
    OAuthTokenError,
    RegistryUnreachableError,
    SchemaRegistryError,
)

__all__ = ["OAuthTokenError", "RegistryUnreachableError", "SchemaRegistryError"]


def __getattr__(name: str) -> Any:
    """Imports `SchemaParseException` and `UnknownType` on demand: fastavro may not be installed."""
    if name not in ("SchemaParseException", "UnknownType"):
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from fastavro import schema

    return getattr(schema, name)
