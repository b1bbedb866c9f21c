"""Avro payloads to columns and back, as `columns.language` asks of a schema language."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.registry.columns import Decoder, Encoder
from barnabas.registry.columns.avro import deriving, shapes, types
from barnabas.registry.columns.avro.decoding import ProgramDecoder, RewritingDecoder
from barnabas.registry.columns.avro.encoding import ProgramEncoder
from barnabas.registry.columns.language import SchemaSource

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_type(schema: SchemaSource, message: str | None) -> pa.DataType:
    return types.arrow_field("value", shapes.parse(schema.text, schema.references)).type


def decoder(
    written: SchemaSource, wanted: SchemaSource, message: str | None, *, framed: bool
) -> Decoder:
    shape = shapes.parse(wanted.text, wanted.references)
    try:
        return ProgramDecoder(shapes.parse(written.text, written.references), shape, framed=framed)
    except shapes.RecursiveSchemaError:  # in a field, it may be, that the reader leaves out
        return RewritingDecoder(written, wanted, ProgramDecoder(shape, shape, framed=False), framed)


def encoder(
    schema: SchemaSource, arrow_type: pa.DataType, message: str | None, *, schema_id: int | None
) -> Encoder:
    return ProgramEncoder(shapes.parse(schema.text, schema.references), arrow_type, schema_id)


def derive(arrow_type: pa.DataType, name: str) -> str:
    return deriving.derive(arrow_type, name)
