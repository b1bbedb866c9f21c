"""The client of a schema registry, its models and its HTTP requests.

Users import it from `barnabas.schema_registry`.
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
