"""Avro payloads to columns and back, as `columns.language` asks of a schema language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.columns import Decoder, Encoder
from barnabas.columns.avro import deriving, types
from barnabas.columns.avro.decoding import ProgramDecoder
from barnabas.columns.avro.encoding import ProgramEncoder
from barnabas.columns.avro.raw import RawDecoder, RawEncoder, is_raw
from barnabas.columns.avro.schemas import parse_reader_schema
from barnabas.columns.language import SchemaSource
from barnabas.schemas.avro.parser import parse_stored_schema

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_type(schema: SchemaSource, message: str | None) -> pa.DataType:
    return types.arrow_field("value", parse_reader_schema(schema.text, schema.references)).type


def decoder(
    written: SchemaSource, wanted: SchemaSource, message: str | None, *, framed: bool
) -> Decoder:
    schema = parse_reader_schema(wanted.text, wanted.references)
    found = parse_stored_schema(written.text, written.references)
    if framed and is_raw(found) and is_raw(schema):
        return RawDecoder()
    return ProgramDecoder(found, schema, framed=framed)


def encoder(
    schema: SchemaSource, arrow_type: pa.DataType, message: str | None, *, schema_id: int | None
) -> Encoder:
    parsed = parse_reader_schema(schema.text, schema.references)
    program = ProgramEncoder(parsed, arrow_type, schema_id)
    return RawEncoder(schema_id) if schema_id is not None and is_raw(parsed) else program


def derive(arrow_type: pa.DataType, name: str) -> str:
    return deriving.derive(arrow_type, name)
