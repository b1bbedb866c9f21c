"""Avro payloads: implements `columns.language.SchemaLanguage`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.columns import ColumnDecoder, ColumnEncoder
from barnabas.columns.avro import schema_derivation, types
from barnabas.columns.avro.payload_decoder import AvroDecoder
from barnabas.columns.avro.payload_encoder import AvroEncoder
from barnabas.columns.avro.raw import RawBytesDecoder, RawBytesEncoder, is_raw
from barnabas.columns.avro.schemas import parse_reader_schema
from barnabas.columns.language import SchemaSource
from barnabas.schemas.avro.parser import parse_stored_schema

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_type(schema: SchemaSource, message: str | None) -> pa.DataType:
    return types.arrow_field("value", parse_reader_schema(schema.text, schema.references)).type


def decoder(
    writer_schema: SchemaSource, reader_schema: SchemaSource, message: str | None, *, framed: bool
) -> ColumnDecoder:
    reader_type = parse_reader_schema(reader_schema.text, reader_schema.references)
    writer_type = parse_stored_schema(writer_schema.text, writer_schema.references)
    if framed and is_raw(writer_type) and is_raw(reader_type):
        return RawBytesDecoder()
    return AvroDecoder(writer_type, reader_type, framed=framed)


def encoder(
    schema: SchemaSource, arrow_type: pa.DataType, message: str | None, *, schema_id: int | None
) -> ColumnEncoder:
    parsed = parse_reader_schema(schema.text, schema.references)
    program = AvroEncoder(parsed, arrow_type, schema_id)
    return RawBytesEncoder(schema_id) if schema_id is not None and is_raw(parsed) else program


def derive(arrow_type: pa.DataType, name: str) -> str:
    return schema_derivation.derive(arrow_type, name)
