"""Builds the compiled writers of JSON for a column, from its schema or its Arrow type."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.connect.converters import _json_writer
from barnabas.connect.converters.converter import ConvertedBytes, RowError
from barnabas.connect.data.defaults import missing_value_error
from barnabas.connect.data.schema import JSON_TEXT, ConnectSchema, Type
from barnabas.connect.errors import DataError
from barnabas.schemas.json_text import write
from barnabas.wire.records.buffers import offsets_of, view

if TYPE_CHECKING:
    import pyarrow as pa

_QUOTED, _RAW, _BASE64 = 0, 1, 2
_NULL = b"null"


class JsonWriters:
    """Builds writers. `decimals_are_numbers` is `decimal.format` NUMERIC."""

    def __init__(self, *, decimals_are_numbers: bool, replaces_nulls: bool) -> None:
        self._decimals_are_numbers = decimals_are_numbers
        self._replaces_nulls = replaces_nulls

    def writer(self, values: pa.Array, schema: ConnectSchema | None) -> _json_writer.JacksonWriter:
        """Returns a writer of values with a schema, or with the type that they have.

        Raises DataError if JSON has no such type. Without a schema, fields that are null are left
        out: a row may lack them, and the column does not tell the difference.
        """
        import pyarrow as pa

        is_type, arrow_type = pa.types, values.type
        nulls = self._nulls(values, schema)
        if is_type.is_struct(arrow_type):
            return self._object(values, schema, nulls)
        if is_type.is_map(arrow_type):
            return self._map(values, schema, nulls)
        if is_type.is_large_list(arrow_type) or is_type.is_fixed_size_list(arrow_type):
            values = values.cast(pa.list_(arrow_type.value_field))
            nulls = self._nulls(values, schema)
        if is_type.is_list(values.type):
            inner = None if schema is None else schema.value_schema
            items = self.writer(values.values, inner)
            return _json_writer.JacksonArrayWriter(*nulls, offsets_of(values), None, items, False)
        return self._scalar(values, schema, nulls)

    def default_text(self, schema: ConnectSchema) -> bytes:
        """Returns the JSON of the default value of a schema."""
        import pyarrow as pa

        writer = self.writer(pa.array([schema.default], schema.arrow_type()), schema)
        offsets = memoryview(bytearray(8)).cast("i")
        return bytes(_json_writer.write_documents(writer, b"", b"", _NULL, offsets, 64, []))

    def _nulls(
        self, values: pa.Array, schema: ConnectSchema | None
    ) -> tuple[memoryview, int, bytes | None]:
        if values.null_count == 0:
            return view(None, "B"), 0, _NULL
        return *_validity(values), self._null_text(schema)

    def _null_text(self, schema: ConnectSchema | None) -> bytes | None:
        if schema is None:
            return _NULL
        if schema.has_default and schema.default is not None and self._replaces_nulls:
            return self.default_text(schema)
        return _NULL if schema.is_optional else None

    def _object(
        self,
        values: pa.StructArray,
        schema: ConnectSchema | None,
        nulls: tuple[memoryview, int, bytes | None],
    ) -> _json_writer.JacksonWriter:
        fields = values.type.fields
        inner = [None] * len(fields) if schema is None else [each.schema for each in schema.fields]
        writers = [self.writer(values.field(index), each) for index, each in enumerate(inner)]
        names = [quoted(field.name).encode() + b":" for field in fields]
        return _json_writer.JacksonObjectWriter(*nulls, names, writers, schema is None)

    def _map(
        self,
        values: pa.MapArray,
        schema: ConnectSchema | None,
        nulls: tuple[memoryview, int, bytes | None],
    ) -> _json_writer.JacksonWriter:
        import pyarrow as pa

        keys, items = values.keys, values.items
        key_schema = None if schema is None else schema.key_schema
        value_schema = None if schema is None else schema.value_schema
        is_text = pa.types.is_string(keys.type) or pa.types.is_large_string(keys.type)
        return _json_writer.JacksonArrayWriter(
            *nulls,
            offsets_of(values),
            self.writer(keys, key_schema),
            self.writer(items, value_schema),
            is_text if key_schema is None else key_schema.type is Type.STRING,
        )

    def _scalar(
        self,
        values: pa.Array,
        schema: ConnectSchema | None,
        nulls: tuple[memoryview, int, bytes | None],
    ) -> _json_writer.JacksonWriter:
        import pyarrow as pa

        is_type, arrow_type = pa.types, values.type
        if is_type.is_dictionary(arrow_type):
            return self.writer(values.dictionary_decode(), schema)
        if is_type.is_null(arrow_type):
            bits = memoryview(bytes(len(values) // 8 + 1))
            return _json_writer.JacksonWriter(bits, 0, self._null_text(schema))
        if is_type.is_boolean(arrow_type):
            cells = view(values.buffers()[1], "B")
            return _json_writer.JacksonBooleanWriter(*nulls, cells, values.offset)
        if is_type.is_string(arrow_type) or is_type.is_large_string(arrow_type):
            is_json = schema is not None and schema.name == JSON_TEXT
            return _text(values.cast(pa.string()), nulls, _RAW if is_json else _QUOTED)
        if (
            is_type.is_binary(arrow_type)
            or is_type.is_large_binary(arrow_type)
            or is_type.is_fixed_size_binary(arrow_type)
        ):
            return _text(values.cast(pa.binary()), nulls, _BASE64)
        if is_type.is_floating(arrow_type):
            is_single = not is_type.is_float64(arrow_type)
            cells = _cells(values.cast(pa.float64()), "d")
            return _json_writer.JacksonRealWriter(*nulls, cells, is_single)
        if is_type.is_decimal(arrow_type):
            return self._decimal(values, nulls)
        return _json_writer.JacksonIntegerWriter(*nulls, _cells(_integers(values), "q"))

    def _decimal(
        self, values: pa.Array, nulls: tuple[memoryview, int, bytes | None]
    ) -> _json_writer.JacksonWriter:
        import pyarrow as pa

        if self._decimals_are_numbers:
            return _text(values.cast(pa.string()), nulls, _RAW)
        if values.type.bit_width < 128:
            values = values.cast(pa.decimal128(values.type.precision, values.type.scale))
        width = values.type.bit_width // 8
        cells = view(values.buffers()[1], "B")[values.offset * width :]
        return _json_writer.JacksonDecimalWriter(*nulls, cells, width)


def write_documents(
    writer: _json_writer.JacksonWriter,
    values: pa.Array,
    prefix: bytes,
    suffix: bytes = b"",
    null_document: bytes | None = None,
) -> ConvertedBytes:
    """Writes the values, each within prefix and suffix, and a document or none for nulls."""
    import pyarrow as pa

    count = len(values)
    failures: list[tuple[int, list[bytes]]] = []
    offsets = pa.allocate_buffer(4 * count + 4)
    content = _json_writer.write_documents(
        writer,
        prefix,
        suffix,
        null_document,
        view(offsets, "i"),
        2 * values.nbytes + count * (len(prefix) + 16),
        failures,
    )
    errors = [RowError(row, missing_value_error(_path(path))) for row, path in failures]
    documents = pa.Array.from_buffers(pa.binary(), count, [None, offsets, pa.py_buffer(content)])
    if errors or (values.null_count and null_document is None):
        documents = _without_documents(documents, values, errors, null_document)
    return ConvertedBytes(documents, errors)


def as_declared(values: pa.Array, schema: ConnectSchema) -> pa.Array:
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


def _validity(values: pa.Array) -> tuple[memoryview, int]:
    import pyarrow as pa

    buffer = None if pa.types.is_null(values.type) else values.buffers()[0]
    return view(buffer, "B"), values.offset


def _text(
    values: pa.Array, nulls: tuple[memoryview, int, bytes | None], mode: int
) -> _json_writer.JacksonWriter:
    content = view(values.buffers()[2], "B")
    return _json_writer.JacksonTextWriter(*nulls, offsets_of(values), content, mode)


def _cells(values: pa.Array, code: str) -> memoryview:
    cells = view(values.buffers()[1], code)
    return cells[values.offset : values.offset + len(values)]


def _integers(values: pa.Array) -> pa.Array:
    """Returns numbers as they are, dates as days, and times in milliseconds."""
    import pyarrow as pa

    is_type, arrow_type = pa.types, values.type
    if is_type.is_date(arrow_type):
        return values.cast(pa.date32()).cast(pa.int32()).cast(pa.int64())
    if is_type.is_time(arrow_type):
        return values.cast(pa.time32("ms"), safe=False).cast(pa.int32()).cast(pa.int64())
    if is_type.is_timestamp(arrow_type):
        return values.cast(pa.timestamp("ms", arrow_type.tz), safe=False).cast(pa.int64())
    if is_type.is_integer(arrow_type):
        return values.cast(pa.int64())
    raise DataError(f"Values of type {arrow_type} cannot be written as JSON.")


def quoted(text: str) -> str:
    """Returns a string as Jackson writes it."""
    return _NOT_BASIC.sub(_escaped_pair, write(text))


_NOT_BASIC = re.compile("[\U00010000-\U0010ffff]")


def _escaped_pair(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be").hex().upper()
    return f"\\u{units[:4]}\\u{units[4:]}"
