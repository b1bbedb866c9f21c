"""JSON with or without an inline schema: Kafka's JsonConverter.

With `schemas.enable`, a payload is `{"schema": ..., "payload": ...}`. Rows of a topic nearly always
repeat the text of their schema, so it is parsed once for each distinct text, and all rows of a
schema are read into its columns at once.

Without, types are inferred: an object is a struct, whose fields are null where a row lacks them. A
row that does not fit the types of the rows before it begins another run. Integers and fractions in
one field are float64, if no integer is rounded by that. Null fields are not written.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from barnabas.connect.config_def import (
    ConfigDef,
    ConfigType,
    ConnectorSetting,
    Importance,
    Width,
    one_of,
)
from barnabas.connect.converters import _json_reader
from barnabas.connect.converters.converter import (
    Conversion,
    Converted,
    ConvertedBytes,
    Converter,
)
from barnabas.connect.converters.json_columns import column_of
from barnabas.connect.converters.json_documents import (
    JsonDocuments,
    read_inferred,
    read_typed,
)
from barnabas.connect.converters.json_writers import (
    JsonWriters,
    as_declared,
    quoted,
    write_documents,
)
from barnabas.connect.converters.runs import conversion_of, nulls_run, rows_of_groups
from barnabas.connect.data.schema import ConnectSchema
from barnabas.connect.data.schema_json import schema_from_json, schema_to_json
from barnabas.connect.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


class JsonConverter(Converter):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "schemas.enable",
                ConfigType.BOOLEAN,
                True,
                "Include schemas within each of the serialized values and keys.",
                Importance.HIGH,
                group="Schemas",
                width=Width.MEDIUM,
                display_name="Enable Schemas",
            ),
            ConnectorSetting(
                "schemas.cache.size",
                ConfigType.INT,
                1000,
                "The maximum number of schemas that can be cached in this converter instance.",
                Importance.HIGH,
                group="Schemas",
                width=Width.MEDIUM,
                display_name="Schema Cache Size",
            ),
            ConnectorSetting(
                "schema.content",
                ConfigType.STRING,
                None,
                "The schema of all records that a sink reads, which then contain only the payload.",
                Importance.HIGH,
                group="Schemas",
                width=Width.MEDIUM,
                display_name="Schema Content",
            ),
            ConnectorSetting(
                "decimal.format",
                ConfigType.STRING,
                "BASE64",
                "How decimals are written: as base64 of their bytes, or as numbers.",
                Importance.LOW,
                one_of("BASE64", "NUMERIC", ignore_case=True),
                group="Serialization",
                width=Width.MEDIUM,
                display_name="Decimal Format",
            ),
            ConnectorSetting(
                "replace.null.with.default",
                ConfigType.BOOLEAN,
                True,
                "Whether a null is replaced by the default of its field.",
                Importance.LOW,
                group="Serialization",
                width=Width.MEDIUM,
                display_name="Replace null with default",
            ),
        )

    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None:
        parsed = self.config_def().parse(settings)
        self._has_envelope: bool = parsed["schemas.enable"]
        self._replaces_nulls: bool = parsed["replace.null.with.default"]
        self._cache_size = max(parsed["schemas.cache.size"], 1)
        self._schemas: OrderedDict[bytes, ConnectSchema | DataError | None] = OrderedDict()
        self._columns: OrderedDict[ConnectSchema, _json_reader.JsonColumn] = OrderedDict()
        self._schema_texts: OrderedDict[ConnectSchema, bytes] = OrderedDict()
        self._writers = JsonWriters(
            decimals_are_numbers=parsed["decimal.format"].upper() == "NUMERIC",
            replaces_nulls=self._replaces_nulls,
        )
        self._fixed_schema: ConnectSchema | None = None
        if self._has_envelope and parsed["schema.content"]:
            self._fixed_schema = schema_from_json(parsed["schema.content"], self._read_default)

    # Reading

    def to_connect(self, topic: str, payloads: pa.BinaryArray) -> Conversion:
        if payloads.null_count == len(payloads):
            return nulls_run(len(payloads))
        documents = JsonDocuments(payloads)
        if self._fixed_schema is not None:
            return self._read_fixed(documents, self._fixed_schema)
        return self._read_envelopes(documents) if self._has_envelope else read_inferred(documents)

    def _read_fixed(self, documents: JsonDocuments, schema: ConnectSchema) -> Conversion:
        column = self._column(schema)
        values = read_typed(documents, schema, column, replaces_nulls=self._replaces_nulls)
        return Conversion([Converted(0, schema, values)], documents.errors())

    def _read_envelopes(self, documents: JsonDocuments) -> Conversion:
        count = documents.count
        starts, ends = _numbers(count), _numbers(count)
        is_in_envelope = memoryview(bytearray(count))
        groups = _numbers(count)
        texts = _json_reader.split_envelopes(
            documents.content,
            documents.starts,
            documents.ends,
            documents.skipped,
            starts,
            ends,
            is_in_envelope,
            groups,
            documents.failures,
        )
        schemas = [self._schema(text) for text in texts]
        if len(texts) == 1:
            return self._read_single(documents, schemas[0], starts, ends, is_in_envelope)
        parts = []
        for group, rows in rows_of_groups(groups, len(texts)):
            part = documents.part(rows, starts, ends, is_in_envelope)
            parts.append((rows, self._read_single(part, schemas[group], *part.values())))
            documents.adopt(part, rows)
        return conversion_of(groups, parts, documents.errors())

    def _read_single(
        self,
        documents: JsonDocuments,
        schema: ConnectSchema | DataError | None,
        starts: memoryview,
        ends: memoryview,
        is_in_envelope: memoryview,
    ) -> Conversion:
        """Reads rows of one schema."""
        if isinstance(schema, DataError):
            documents.fail_all(schema)
            return Conversion(nulls_run(documents.count).runs, documents.errors())
        if schema is None:
            return read_inferred(documents, starts, ends, is_in_envelope)
        values = read_typed(
            documents,
            schema,
            self._column(schema),
            replaces_nulls=self._replaces_nulls,
            starts=starts,
            ends=ends,
            is_in_envelope=is_in_envelope,
        )
        return Conversion([Converted(0, schema, values)], documents.errors())

    def _schema(self, text: bytes) -> ConnectSchema | DataError | None:
        if text in self._schemas:
            self._schemas.move_to_end(text)
            return self._schemas[text]
        parsed: ConnectSchema | DataError | None
        try:
            parsed = schema_from_json(text, self._read_default)
        except DataError as error:
            parsed = error
        self._schemas[text] = parsed
        if len(self._schemas) > self._cache_size:
            self._schemas.popitem(last=False)
        return parsed

    def _column(self, schema: ConnectSchema) -> _json_reader.JsonColumn:
        column = self._columns.get(schema)
        if column is None:
            column = column_of(schema, replaces_nulls=self._replaces_nulls)
            self._columns[schema] = column
            if len(self._columns) > self._cache_size:
                self._columns.popitem(last=False)
        return column

    def _read_default(self, schema: ConnectSchema, document: Any) -> Any:
        import pyarrow as pa

        text = pa.array([json.dumps(document).encode()], pa.binary())
        documents = JsonDocuments(text)
        column = column_of(schema, replaces_nulls=False, is_nullable=True)
        values = read_typed(documents, schema, column, replaces_nulls=False)
        for error in documents.errors():
            raise error.error
        return values[0].as_py()

    # Writing

    def from_connect(
        self, topic: str, schema: ConnectSchema | None, values: pa.Array
    ) -> ConvertedBytes:
        import pyarrow as pa

        count = len(values)
        if schema is None and values.null_count == count:
            return ConvertedBytes(pa.nulls(count, pa.binary()))
        if schema is not None:
            values = as_declared(values, schema)
        prefix, suffix, null_document = self._frame(schema)
        writer = self._writers.writer(values, schema)
        return write_documents(writer, values, prefix, suffix, null_document)

    def _frame(self, schema: ConnectSchema | None) -> tuple[bytes, bytes, bytes | None]:
        """Returns what is before and after a value, and the document of a null.

        A null is a tombstone unless the schema allows nulls, as in Kafka Connect; a null whose
        schema does not allow it is an error there.
        """
        null_text: bytes | None = None
        if schema is not None:
            if schema.has_default and schema.default is not None and self._replaces_nulls:
                null_text = self._writers.default_text(schema)
            elif schema.is_optional:
                null_text = b"null"
        if not self._has_envelope:
            return b"", b"", null_text
        prefix = b'{"schema":' + self._schema_text(schema) + b',"payload":'
        return prefix, b"}", None if null_text is None else prefix + null_text + b"}"

    def _schema_text(self, schema: ConnectSchema | None) -> bytes:
        if schema is None:
            return b"null"
        text = self._schema_texts.get(schema)
        if text is None:
            text = schema_to_json(
                schema, lambda each: self._writers.default_text(each).decode(), quoted
            ).encode()
            self._schema_texts[schema] = text
            if len(self._schema_texts) > self._cache_size:
                self._schema_texts.popitem(last=False)
        return text


def _numbers(count: int) -> memoryview:
    return memoryview(bytearray(4 * count)).cast("i")
