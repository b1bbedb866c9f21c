"""Every test here runs twice: with the loops compiled, and with the same files as plain Python."""

from tests.registry.conftest import registry_broker, schema_registry
from tests.uncompiled import compiled_and_plain

from barnabas.columns import _bits, _schema_ids
from barnabas.columns.avro import _decoder as avro_decoder
from barnabas.columns.avro import _encoder as avro_encoder
from barnabas.columns.json_text import _documents
from barnabas.columns.protobuf import _decoder as protobuf_decoder
from barnabas.columns.protobuf import _encoder as protobuf_encoder

loops = compiled_and_plain(
    _bits,
    _schema_ids,
    avro_decoder,
    avro_encoder,
    _documents,
    protobuf_decoder,
    protobuf_encoder,
)

__all__ = ["loops", "registry_broker", "schema_registry"]
