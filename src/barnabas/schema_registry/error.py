"""What a registry's client raises."""

from barnabas.registry.client.errors import (
    OAuthTokenError,
    RegistryUnreachableError,
    SchemaRegistryError,
)

__all__ = ["OAuthTokenError", "RegistryUnreachableError", "SchemaRegistryError"]
