"""JSON payloads: implements `columns.language.SchemaLanguage`.

Documents are read with the reader's schema alone: JSON does not need the writer's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.columns import ColumnDecoder, ColumnEncoder
from barnabas.columns.json_text import schema_derivation, types
from barnabas.columns.json_text.payload_decoder import JsonDocumentDecoder, JsonObjectDecoder
from barnabas.columns.json_text.payload_encoder import JsonEncoder
from barnabas.columns.language import SchemaSource

if TYPE_CHECKING:
    import pyarrow as pa


def arrow_type(schema: SchemaSource, message: str | None) -> pa.DataType:
    return types.arrow_type(types.parse(schema.text, schema.references))


def decoder(
    writer_schema: SchemaSource, reader_schema: SchemaSource, message: str | None, *, framed: bool
) -> ColumnDecoder:
    kind = types.parse(reader_schema.text, reader_schema.references)
    if types.is_readable_by_arrow(kind):
        return JsonObjectDecoder(kind, framed=framed)
    return JsonDocumentDecoder(kind, framed=framed)


def encoder(
    schema: SchemaSource, arrow_type: pa.DataType, message: str | None, *, schema_id: int | None
) -> ColumnEncoder:
    return JsonEncoder(types.parse(schema.text, schema.references), arrow_type, schema_id)


def derive(arrow_type: pa.DataType, name: str) -> str:
    return schema_derivation.derive(arrow_type, name)
