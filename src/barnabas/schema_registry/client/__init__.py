"""The client of a schema registry: what goes over HTTP, and the values that do.

`barnabas.schema_registry` is where its users find it.
"""

from barnabas.schema_registry.client.client import SchemaRegistryClient
from barnabas.schema_registry.client.errors import RegistryUnreachableError, SchemaRegistryError
from barnabas.schema_registry.client.models import RegisteredSchema, Schema, SchemaReference

__all__ = [
    "RegisteredSchema",
    "RegistryUnreachableError",
    "Schema",
    "SchemaReference",
    "SchemaRegistryClient",
    "SchemaRegistryError",
]
