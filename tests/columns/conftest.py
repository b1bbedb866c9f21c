"""Every test here runs twice: with the loops compiled, and with the same files as plain Python."""

from tests.registry.conftest import registry_broker, schema_registry
from tests.uncompiled import both_ways

from barnabas.columns import _bits, _framing
from barnabas.columns.avro import _decode, _encode
from barnabas.columns.json_text import _text
from barnabas.columns.protobuf import _decoding, _encoding

loops = both_ways(_bits, _framing, _decode, _encode, _text, _decoding, _encoding)

__all__ = ["loops", "registry_broker", "schema_registry"]
