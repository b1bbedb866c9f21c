"""Protobuf payloads: implements `columns.language.SchemaLanguage`.

Messages are structs, enums their names, maps are maps; Google's wrappers and timestamps are plain
values, and unsigned 64-bit numbers are decimals, since Spark has no unsigned types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.descriptor import Descriptor

from barnabas.columns.language import SchemaSource
from barnabas.columns.protobuf.layout import message_layout
from barnabas.columns.protobuf.payload_decoder import ProtobufDecoder
from barnabas.columns.protobuf.payload_encoder import ProtobufEncoder
from barnabas.columns.protobuf.schema_derivation import derive
from barnabas.schemas import SchemaError
from barnabas.schemas.framing import id_prefix, index_encodings, message_indexes
from barnabas.schemas.protobuf import ProtobufSchema, parse

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["arrow_type", "decoder", "derive", "encoder"]


def arrow_type(schema: SchemaSource, message: str | None) -> pa.DataType:
    """Returns the type of the named message, or of the schema's first."""
    return message_layout(_descriptor(_parsed(schema), message)).arrow_type


def decoder(
    writer_schema: SchemaSource, reader_schema: SchemaSource, message: str | None, *, framed: bool
) -> ProtobufDecoder:
    reader_parsed = _parsed(reader_schema)
    writer_parsed = reader_parsed if writer_schema == reader_schema else _parsed(writer_schema)
    return ProtobufDecoder(_descriptor(reader_parsed, message), writer_parsed if framed else None)


def encoder(
    schema: SchemaSource, arrow_type: pa.DataType, message: str | None, *, schema_id: int | None
) -> ProtobufEncoder:
    descriptor = _descriptor(_parsed(schema), message)
    prefix = b""
    if schema_id is not None:
        prefix = id_prefix(schema_id) + index_encodings(message_indexes(descriptor))[0]
    return ProtobufEncoder(descriptor, arrow_type, prefix)


def _parsed(schema: SchemaSource) -> ProtobufSchema:
    return parse(schema.text, schema.references)


def _descriptor(schema: ProtobufSchema, message: str | None) -> Descriptor:
    name = message or schema.name
    if name is None:
        raise SchemaError("The schema has no message.")
    return schema.message(name)
