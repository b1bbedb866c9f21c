"""JSON with schemas in a registry: Confluent's JsonSchemaConverter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas.columns import DecodedColumn
from barnabas.columns.language import SchemaSource
from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting, Importance, one_of
from barnabas.connect.converters import _json_reader
from barnabas.connect.converters.converter import RowError
from barnabas.connect.converters.json_columns import column_of
from barnabas.connect.converters.json_documents import JsonDocuments, read_typed
from barnabas.connect.converters.json_schema_mapping import JsonSchemaMapping, document_schema
from barnabas.connect.converters.json_writers import JsonWriters, write_documents
from barnabas.connect.converters.registry import (
    DeclaredSchema,
    PayloadReader,
    PayloadWriter,
    RegistryConverter,
)
from barnabas.connect.data.conform import conform
from barnabas.connect.data.schema import ConnectSchema
from barnabas.schemas.framing import ID_PREFIX_BYTES, id_prefix

if TYPE_CHECKING:
    import pyarrow as pa


class JsonSchemaConverter(RegistryConverter):
    language = "JSON"
    title = "JSON"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return super().config_def() + ConfigDef(
            ConnectorSetting(
                "decimal.format",
                ConfigType.STRING,
                "BASE64",
                "How decimals are written: as base64 of their bytes, or as numbers.",
                Importance.LOW,
                one_of("BASE64", "NUMERIC", ignore_case=True),
            ),
            ConnectorSetting(
                "use.optional.for.nonrequired",
                ConfigType.BOOLEAN,
                False,
                "Whether properties that are not required are optional.",
            ),
            ConnectorSetting(
                "object.additional.properties",
                ConfigType.BOOLEAN,
                True,
                "Whether objects may have properties that the schema does not have.",
            ),
        )

    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None:
        super().configure(settings, is_key=is_key)
        decimals_are_numbers = self.parsed["decimal.format"].upper() == "NUMERIC"
        self._mapping = JsonSchemaMapping(
            decimals_are_numbers,
            self.parsed["use.optional.for.nonrequired"],
            self.parsed["object.additional.properties"],
        )
        self._json = JsonWriters(decimals_are_numbers=decimals_are_numbers, replaces_nulls=True)

    def reader(self, source: SchemaSource, variant: int) -> PayloadReader:
        return _JsonReader(self._mapping.connect_schema(source, self._read_default))

    def declare(self, schema: ConnectSchema, topic: str) -> DeclaredSchema:
        text = self._mapping.json_text(schema, self._default_text)
        return DeclaredSchema(SchemaSource(text), schema.name)

    def describe(self, source: SchemaSource) -> DeclaredSchema:
        declared = json.loads(source.text)
        title = declared.get("title") if isinstance(declared, dict) else None
        return DeclaredSchema(source, title if isinstance(title, str) else None)

    def writer(
        self, schema: ConnectSchema, declared: DeclaredSchema, schema_id: int
    ) -> PayloadWriter:
        return _JsonWriter(schema, self._json, id_prefix(schema_id))

    def _default_text(self, schema: ConnectSchema) -> str:
        return self._json.default_text(schema).decode()

    def _read_default(self, schema: ConnectSchema, document: Any) -> Any:
        """Returns None if the default does not fit its own schema: it is not used then."""
        import pyarrow as pa

        documents = JsonDocuments(pa.array([json.dumps(document).encode()], pa.binary()))
        column = column_of(schema, replaces_nulls=False, is_nullable=True)
        return read_typed(documents, schema, column, replaces_nulls=False)[0].as_py()


class _JsonReader:
    def __init__(self, schema: ConnectSchema) -> None:
        self.schema = schema
        self._written = document_schema(schema)
        self._column: _json_reader.JsonColumn | None = None

    def read(self, payloads: pa.BinaryArray) -> DecodedColumn:
        if self._column is None:
            self._column = column_of(self._written, replaces_nulls=True)
        documents = JsonDocuments(payloads, ID_PREFIX_BYTES)
        values = read_typed(documents, self._written, self._column, replaces_nulls=True)
        values = conform(values, self.schema.arrow_type())
        return DecodedColumn(values, _reasons(documents.errors(), len(payloads)))


@dataclass(slots=True, frozen=True)
class _JsonWriter:
    schema: ConnectSchema
    writers: JsonWriters
    header: bytes

    def write(self, values: pa.Array) -> pa.BinaryArray:
        written = document_schema(self.schema)
        documents = conform(values, written.arrow_type())
        writer = self.writers.writer(documents, written)
        return write_documents(writer, documents, self.header).payloads


def _reasons(errors: Sequence[RowError], count: int) -> pa.StringArray | None:
    import pyarrow as pa

    if not errors:
        return None
    by_row = {each.row: str(each.error) for each in errors}
    return pa.array([by_row.get(row) for row in range(count)], pa.string())
