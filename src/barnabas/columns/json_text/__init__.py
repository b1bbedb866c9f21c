"""JSON payloads to columns and back, as `columns.language` asks of a schema language.

Documents are read with the reader's schema alone: JSON says what it is, whoever wrote it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.columns import Decoder, Encoder
from barnabas.columns.json_text import deriving, kinds
from barnabas.columns.json_text.decoding import DocumentDecoder, ObjectDecoder
from barnabas.columns.json_text.encoding import DocumentEncoder
from barnabas.columns.language import SchemaSource

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_type(schema: SchemaSource, message: str | None) -> pa.DataType:
    return kinds.arrow_type(kinds.parse(schema.text, schema.references))


def decoder(
    written: SchemaSource, wanted: SchemaSource, message: str | None, *, framed: bool
) -> Decoder:
    kind = kinds.parse(wanted.text, wanted.references)
    if kinds.is_readable_by_arrow(kind):
        return ObjectDecoder(kind, framed=framed)
    return DocumentDecoder(kind, framed=framed)


def encoder(
    schema: SchemaSource, arrow_type: pa.DataType, message: str | None, *, schema_id: int | None
) -> Encoder:
    return DocumentEncoder(kinds.parse(schema.text, schema.references), arrow_type, schema_id)


def derive(arrow_type: pa.DataType, name: str) -> str:
    return deriving.derive(arrow_type, name)
