"""Every test here runs twice: with the loops compiled, and with the same files as plain Python."""

from tests.registry.conftest import registry_broker, schema_registry
from tests.uncompiled import compiled_and_plain

from barnabas.columns import _bits
from barnabas.columns import _schema_ids
from barnabas.columns.avro import _encoder
from barnabas.columns.avro import _decoder
from barnabas.columns.json_text import _documents
from barnabas.columns.protobuf import _encoder
from barnabas.columns.protobuf import _decoder

loops = compiled_and_plain(_bits, _schema_ids, _decoder, _encoder, _documents, _decoder, _encoder)

__all__ = ["loops", "registry_broker", "schema_registry"]
