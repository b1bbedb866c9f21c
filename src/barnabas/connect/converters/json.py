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
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.connect.config_def import (
    ConfigDef,
    ConfigType,
    Importance,
    Setting,
    Width,
    one_of,
)
from barnabas.connect.converters import _json_reader, _json_writer
from barnabas.connect.converters.converter import (
    Conversion,
    Converted,
    ConvertedBytes,
    Converter,
    RowError,
)
from barnabas.connect.converters.json_columns import (
    NOT_UTF8,
    column_of,
    inferred_array,
    read_error,
    typed_array,
)
from barnabas.connect.converters.json_writers import JsonWriters, quoted
from barnabas.connect.converters.runs import conversion_of, nulls_run, rows_of_groups
from barnabas.connect.data.defaults import missing_value_error
from barnabas.connect.data.schema import Schema
from barnabas.connect.data.schema_json import schema_from_json, schema_to_json
from barnabas.connect.errors import DataError
from barnabas.wire.records.buffers import offsets_of, view

if TYPE_CHECKING:
    import pyarrow as pa

_NO_FLAGS = memoryview(b"")


class JsonConverter(Converter):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            Setting(
                "schemas.enable",
                ConfigType.BOOLEAN,
                True,
                "Include schemas within each of the serialized values and keys.",
                Importance.HIGH,
                group="Schemas",
                width=Width.MEDIUM,
                display_name="Enable Schemas",
            ),
            Setting(
                "schemas.cache.size",
                ConfigType.INT,
                1000,
                "The maximum number of schemas that can be cached in this converter instance.",
                Importance.HIGH,
                group="Schemas",
                width=Width.MEDIUM,
                display_name="Schema Cache Size",
            ),
            Setting(
                "schema.content",
                ConfigType.STRING,
                None,
                "The schema of all records that a sink reads, which then contain only the payload.",
                Importance.HIGH,
                group="Schemas",
                width=Width.MEDIUM,
                display_name="Schema Content",
            ),
            Setting(
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
            Setting(
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
        self._schemas: OrderedDict[bytes, Schema | DataError | None] = OrderedDict()
        self._columns: OrderedDict[Schema, _json_reader.JsonColumn] = OrderedDict()
        self._schema_texts: OrderedDict[Schema, bytes] = OrderedDict()
        self._writers = JsonWriters(
            decimals_are_numbers=parsed["decimal.format"].upper() == "NUMERIC",
            replaces_nulls=self._replaces_nulls,
        )
        self._fixed_schema: Schema | None = None
        if self._has_envelope and parsed["schema.content"]:
            self._fixed_schema = schema_from_json(parsed["schema.content"], self._read_default)

    # Reading

    def to_connect(self, topic: str, payloads: pa.BinaryArray) -> Conversion:
        if payloads.null_count == len(payloads):
            return nulls_run(len(payloads))
        documents = _Documents(payloads)
        if self._fixed_schema is not None:
            return self._read_fixed(documents, self._fixed_schema)
        return self._read_envelopes(documents) if self._has_envelope else _read_inferred(documents)

    def _read_fixed(self, documents: _Documents, schema: Schema) -> Conversion:
        values = self._read_typed(
            documents, schema, documents.starts, documents.ends, documents.skipped, _NO_FLAGS
        )
        return Conversion([Converted(0, schema, values)], documents.errors())

    def _read_envelopes(self, documents: _Documents) -> Conversion:
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
        documents: _Documents,
        schema: Schema | DataError | None,
        starts: memoryview,
        ends: memoryview,
        is_in_envelope: memoryview,
    ) -> Conversion:
        """Reads rows of one schema."""
        if isinstance(schema, DataError):
            documents.fail_all(schema)
            return Conversion(nulls_run(documents.count).runs, documents.errors())
        if schema is None:
            return _read_inferred(documents, starts, ends, is_in_envelope)
        values = self._read_typed(
            documents, schema, starts, ends, documents.skipped, is_in_envelope
        )
        return Conversion([Converted(0, schema, values)], documents.errors())

    def _read_typed(
        self,
        documents: _Documents,
        schema: Schema,
        starts: memoryview,
        ends: memoryview,
        skipped: memoryview,
        is_in_envelope: memoryview,
    ) -> pa.Array:
        column = self._column(schema)
        column.reset()
        _json_reader.read_rows(
            _json_reader.JsonReader(column),
            documents.content,
            starts,
            ends,
            skipped,
            is_in_envelope,
            0,
            documents.count,
            documents.failures,
        )
        return typed_array(column, schema, documents.count, replaces_nulls=self._replaces_nulls)

    def _schema(self, text: bytes) -> Schema | DataError | None:
        if text in self._schemas:
            self._schemas.move_to_end(text)
            return self._schemas[text]
        parsed: Schema | DataError | None
        try:
            parsed = schema_from_json(text, self._read_default)
        except DataError as error:
            parsed = error
        self._schemas[text] = parsed
        if len(self._schemas) > self._cache_size:
            self._schemas.popitem(last=False)
        return parsed

    def _column(self, schema: Schema) -> _json_reader.JsonColumn:
        column = self._columns.get(schema)
        if column is None:
            column = column_of(schema, replaces_nulls=self._replaces_nulls)
            self._columns[schema] = column
            if len(self._columns) > self._cache_size:
                self._columns.popitem(last=False)
        return column

    def _read_default(self, schema: Schema, document: Any) -> Any:
        import pyarrow as pa

        text = pa.array([json.dumps(document).encode()], pa.binary())
        documents = _Documents(text)
        column = column_of(schema, replaces_nulls=False, is_nullable=True)
        _json_reader.read_rows(
            _json_reader.JsonReader(column),
            documents.content,
            documents.starts,
            documents.ends,
            documents.skipped,
            _NO_FLAGS,
            0,
            1,
            documents.failures,
        )
        for error in documents.errors():
            raise error.error
        return typed_array(column, schema, 1, replaces_nulls=False)[0].as_py()

    # Writing

    def from_connect(self, topic: str, schema: Schema | None, values: pa.Array) -> ConvertedBytes:
        import pyarrow as pa

        count = len(values)
        if schema is None and values.null_count == count:
            return ConvertedBytes(pa.nulls(count, pa.binary()))
        if schema is not None:
            values = _as_declared(values, schema)
        prefix, suffix, null_document = self._frame(schema)
        failures: list[tuple[int, list[bytes]]] = []
        offsets = pa.allocate_buffer(4 * count + 4)
        content = _json_writer.write_documents(
            self._writers.writer(values, schema),
            prefix,
            suffix,
            null_document,
            view(offsets, "i"),
            2 * values.nbytes + count * (len(prefix) + 16),
            failures,
        )
        errors = [RowError(row, missing_value_error(_path(path))) for row, path in failures]
        documents = pa.Array.from_buffers(
            pa.binary(), count, [None, offsets, pa.py_buffer(content)]
        )
        if errors or (values.null_count and null_document is None):
            documents = _without_documents(documents, values, errors, null_document)
        return ConvertedBytes(documents, errors)

    def _frame(self, schema: Schema | None) -> tuple[bytes, bytes, bytes | None]:
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

    def _schema_text(self, schema: Schema | None) -> bytes:
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


class _Documents:
    """The texts of a batch, and the rows that failed."""

    def __init__(self, payloads: pa.BinaryArray) -> None:
        import pyarrow as pa

        payloads = payloads.cast(pa.binary())
        self.count = len(payloads)
        offsets = offsets_of(payloads)
        self.content = view(payloads.buffers()[2], "B")
        self.starts, self.ends = offsets[: self.count], offsets[1 : self.count + 1]
        self.failures: list[tuple[Any, ...]] = []
        self._errors: list[RowError] = []
        self.skipped = _null_flags(payloads)
        for row in _rows_not_utf8(payloads):
            self.skipped[row] = 1
            self._errors.append(RowError(row, DataError(NOT_UTF8)))

    def part(
        self, rows: memoryview, starts: memoryview, ends: memoryview, is_in_envelope: memoryview
    ) -> _Part:
        return _Part(self, rows, starts, ends, is_in_envelope)

    def adopt(self, part: _Part, rows: memoryview) -> None:
        """Takes over the errors of a part."""
        self._errors += [RowError(rows[each.row], each.error) for each in part.errors()]

    def fail_all(self, error: DataError) -> None:
        self._errors += [RowError(row, error) for row in range(self.count) if not self.skipped[row]]

    def errors(self) -> Sequence[RowError]:
        """Returns the errors in the order of their rows."""
        errors = list(self._errors)
        for row, code, position, path, type_name, found in self.failures:
            errors.append(RowError(row, read_error(code, position, path, type_name, found)))
        return sorted(errors, key=lambda each: each.row)


class _Part(_Documents):
    """Some of the rows of a batch."""

    def __init__(
        self,
        whole: _Documents,
        rows: memoryview,
        starts: memoryview,
        ends: memoryview,
        is_in_envelope: memoryview,
    ) -> None:
        self.count = len(rows)
        self.content = whole.content
        self.starts, self.ends = _taken(starts, rows), _taken(ends, rows)
        self._is_in_envelope = memoryview(bytearray(is_in_envelope[row] for row in rows))
        self.failures = []
        self._errors = []
        self.skipped = memoryview(bytearray(self.count))

    def values(self) -> tuple[memoryview, memoryview, memoryview]:
        return self.starts, self.ends, self._is_in_envelope


def _read_inferred(
    documents: _Documents,
    starts: memoryview | None = None,
    ends: memoryview | None = None,
    is_in_envelope: memoryview = _NO_FLAGS,
) -> Conversion:
    """Reads documents without a schema into as few runs as their types allow."""
    runs: list[Converted] = []
    first = 0
    while first < documents.count or not runs:
        column = _json_reader.inferred_column()
        stop = _json_reader.read_rows(
            _json_reader.JsonReader(column),
            documents.content,
            documents.starts if starts is None else starts,
            documents.ends if ends is None else ends,
            documents.skipped,
            is_in_envelope,
            first,
            documents.count,
            documents.failures,
        )
        runs.append(Converted(first, None, inferred_array(column, stop - first)))
        first = stop
    return Conversion(runs, documents.errors())


def _null_flags(payloads: pa.BinaryArray) -> memoryview:
    import pyarrow as pa

    if payloads.null_count == 0:
        return memoryview(bytearray(len(payloads)))
    flags = payloads.is_null().cast(pa.uint8())
    cells = view(flags.buffers()[1], "B")[flags.offset : flags.offset + len(flags)]
    return memoryview(bytearray(cells))


def _rows_not_utf8(payloads: pa.BinaryArray) -> list[int]:
    import pyarrow as pa

    try:
        payloads.cast(pa.string())
        return []
    except pa.ArrowInvalid:
        return [row for row, payload in enumerate(payloads.to_pylist()) if not _is_utf8(payload)]


def _is_utf8(payload: bytes | None) -> bool:
    try:
        (payload or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _numbers(count: int) -> memoryview:
    return memoryview(bytearray(4 * count)).cast("i")


def _taken(numbers: memoryview, rows: memoryview) -> memoryview:
    import pyarrow as pa

    column = pa.Array.from_buffers(pa.int32(), len(numbers), [None, pa.py_buffer(numbers)])
    indices = pa.Array.from_buffers(pa.int32(), len(rows), [None, pa.py_buffer(rows)])
    return view(column.take(indices).buffers()[1], "i")[: len(rows)]


def _as_declared(values: pa.Array, schema: Schema) -> pa.Array:
    """Returns the values in the type of the schema. Raises DataError if they have another."""
    import pyarrow as pa

    declared = schema.arrow_type()
    if values.type == declared:
        return values
    try:
        return values.cast(declared)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"Invalid type for {schema.type.name}: values are {values.type}: {error}"
        ) from error


def _without_documents(
    documents: pa.BinaryArray,
    values: pa.Array,
    errors: Sequence[RowError],
    null_document: bytes | None,
) -> pa.BinaryArray:
    """Returns the documents, null for rows that failed, and for nulls without a document."""
    import pyarrow as pa
    import pyarrow.compute as pc

    flags = bytearray(b"\1") * len(values)
    for error in errors:
        flags[error.row] = 0
    has_document = pa.Array.from_buffers(pa.uint8(), len(values), [None, pa.py_buffer(flags)])
    mask = has_document.cast(pa.bool_())
    if null_document is None and values.null_count:
        mask = pc.and_(mask, values.is_valid())
    return pc.if_else(mask, documents, None)


def _path(names: Sequence[bytes]) -> str:
    """Returns the path of a field from its quoted names, the innermost first."""
    return ".".join(json.loads(name[:-1]) for name in reversed(names))
