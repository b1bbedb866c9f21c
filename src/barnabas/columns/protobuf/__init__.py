"""Protobuf payloads to columns and back.

Messages are structs, enums their names, maps maps; Google's wrappers and timestamps are the
values they stand for, and unsigned 64-bit numbers decimals, since Spark has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.descriptor import Descriptor

from barnabas.columns.language import SchemaSource
from barnabas.columns.protobuf.decoding import ProtobufDecoder
from barnabas.columns.protobuf.deriving import derive
from barnabas.columns.protobuf.encoding import ProtobufEncoder
from barnabas.columns.protobuf.shapes import shape_of
from barnabas.schemas import SchemaError
from barnabas.schemas.framing import header, index_encodings, message_indexes
from barnabas.schemas.protobuf import ProtobufSchema, parse

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["arrow_type", "decoder", "derive", "encoder"]


def arrow_type(schema: SchemaSource, message: str | None) -> pa.DataType:
    """Of the message by its name, or of the schema's first."""
    return shape_of(_chosen(_parsed(schema), message)).arrow_type


def decoder(
    written: SchemaSource, wanted: SchemaSource, message: str | None, *, framed: bool
) -> ProtobufDecoder:
    parsed = _parsed(wanted)
    writers = parsed if written == wanted else _parsed(written)
    return ProtobufDecoder(_chosen(parsed, message), writers if framed else None)


def encoder(
    schema: SchemaSource, arrow_type: pa.DataType, message: str | None, *, schema_id: int | None
) -> ProtobufEncoder:
    chosen = _chosen(_parsed(schema), message)
    prefix = b""
    if schema_id is not None:
        prefix = header(schema_id) + index_encodings(message_indexes(chosen))[0]
    return ProtobufEncoder(chosen, arrow_type, prefix)


def _parsed(schema: SchemaSource) -> ProtobufSchema:
    return parse(schema.text, schema.references)


def _chosen(schema: ProtobufSchema, message: str | None) -> Descriptor:
    name = message or schema.name
    if name is None:
        raise SchemaError("The schema has no message.")
    return schema.message(name)
