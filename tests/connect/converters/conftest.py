"""Every test here runs twice: with the loops compiled, and with the same files as plain Python."""

from tests.registry.conftest import registry_broker, schema_registry
from tests.uncompiled import compiled_and_plain

from barnabas.connect.converters import _json_reader, _json_writer

loops = compiled_and_plain(_json_reader, _json_writer)

__all__ = ["loops", "registry_broker", "schema_registry"]
