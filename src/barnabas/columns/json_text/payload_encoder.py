"""Encodes columns as JSON. Arrow converts scalars to text; the compiled writers join it.

Times are text of RFC 3339, bytes are base64, and NaN and infinity are null.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

from barnabas.columns.json_text import _documents
from barnabas.columns.json_text.types import (
    ANY_JSON,
    JsonArray,
    JsonKind,
    JsonMap,
    JsonScalar,
    JsonStruct,
)
from barnabas.schemas import SchemaError
from barnabas.schemas.framing import id_prefix
from barnabas.wire.records.buffers import offsets_of, view

if TYPE_CHECKING:
    import pyarrow as pa


class JsonEncoder:
    """Writes rows as documents, after the schema id unless that is None; a null has no document."""

    def __init__(self, type_: JsonKind, arrow_type: pa.DataType, schema_id: int | None) -> None:
        """Raises SchemaError, with the field, if the schema cannot represent the type."""
        import pyarrow as pa

        self._type = type_
        self._header = b"" if schema_id is None else id_prefix(schema_id)
        _writer(type_, pa.array([], arrow_type), "")

    def encode(self, values: pa.Array) -> pa.BinaryArray:
        import pyarrow as pa

        count = len(values)
        offsets = pa.allocate_buffer(4 * count + 4)
        content = _documents.write_documents(
            _writer(self._type, values, ""),
            self._header,
            view(offsets, "i"),
            2 * values.nbytes + count * (len(self._header) + 16),
        )
        documents = pa.Array.from_buffers(
            pa.binary(), count, [None, offsets, pa.py_buffer(content)]
        )
        if values.null_count == 0:
            return documents
        import pyarrow.compute as pc

        return pc.if_else(values.is_valid(), documents, None)


def _writer(type_: JsonKind, values: pa.Array, path: str) -> _documents.JsonWriter:
    import pyarrow as pa

    is_type = pa.types
    arrow_type_ = values.type
    if is_type.is_null(arrow_type_):
        return _documents.JsonWriter(memoryview(bytes(len(values) // 8 + 1)), 0)
    if is_type.is_struct(arrow_type_) and (isinstance(type_, JsonStruct) or type_ == ANY_JSON):
        return _object_writer(type_, values, path)
    if is_type.is_list(arrow_type_) and (isinstance(type_, JsonArray) or type_ == ANY_JSON):
        items = type_.items if isinstance(type_, JsonArray) else ANY_JSON
        return _documents.JsonArrayWriter(
            *_nulls(values), offsets_of(values), None, _writer(items, values.values, f"{path}[]")
        )
    if is_type.is_map(arrow_type_) and not isinstance(type_, JsonArray | JsonStruct):
        inner = type_.values if isinstance(type_, JsonMap) else ANY_JSON
        keys = _writer(JsonScalar("string"), values.keys, path)
        return _documents.JsonArrayWriter(
            *_nulls(values), offsets_of(values), keys, _writer(inner, values.items, path)
        )
    if isinstance(type_, JsonScalar):
        return _scalar_writer(type_, values, path)
    raise _mismatch(path, arrow_type_, "array" if isinstance(type_, JsonArray) else "object")


def _object_writer(type_: JsonKind, values: pa.StructArray, path: str) -> _documents.JsonWriter:
    inner = dict(type_.fields) if isinstance(type_, JsonStruct) else {}
    names, writers, required = [], [], []
    for index, field in enumerate(values.type):
        where = f"{path}.{field.name}" if path else field.name
        if isinstance(type_, JsonStruct) and not type_.is_open and field.name not in inner:
            raise SchemaError(
                f"Field {where!r} is not in the schema, which has no additional properties: drop "
                f"the column, or add a property."
            )
        names.append(json.dumps(field.name).encode() + b":")
        writers.append(_writer(inner.get(field.name, ANY_JSON), values.field(index), where))
        required.append(isinstance(type_, JsonStruct) and field.name in type_.required)
    return _documents.JsonObjectWriter(*_nulls(values), names, writers, required)


def _scalar_writer(type_: JsonScalar, values: pa.Array, path: str) -> _documents.JsonWriter:
    import pyarrow as pa

    is_type, arrow_type_ = pa.types, values.type
    is_any = type_ == ANY_JSON
    if is_type.is_string(arrow_type_) and is_any:
        return _text_writer(_require_json(values, path), is_quoted=False)
    if is_type.is_boolean(arrow_type_) and (is_any or type_.name == "boolean"):
        return _text_writer(values.cast(pa.string()), is_quoted=False)
    if is_type.is_integer(arrow_type_) and (is_any or type_.name in ("integer", "number")):
        return _text_writer(values.cast(pa.string()), is_quoted=False)
    if is_type.is_floating(arrow_type_) and (is_any or type_.name == "number"):
        return _text_writer(_finite(values).cast(pa.string()), is_quoted=False)
    if is_type.is_decimal(arrow_type_) and (is_any or type_.name == "number"):
        return _text_writer(values.cast(pa.string()), is_quoted=False)
    if type_.name in ("string", "json"):
        return _text_writer(_as_text(values, path), is_quoted=True)
    raise _mismatch(path, arrow_type_, type_.name)


def _text_writer(texts: pa.Array, *, is_quoted: bool) -> _documents.JsonWriter:
    return _documents.JsonTextWriter(
        *_nulls(texts), offsets_of(texts), view(texts.buffers()[2], "B"), is_quoted
    )


def _as_text(values: pa.Array, path: str) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    is_type, arrow_type_ = pa.types, values.type
    if is_type.is_string(arrow_type_):
        return values
    if is_type.is_timestamp(arrow_type_):
        return pc.strftime(values, "%Y-%m-%dT%H:%M:%S" + ("Z" if arrow_type_.tz == "UTC" else ""))
    if is_type.is_date(arrow_type_) or is_type.is_time(arrow_type_):
        return values.cast(pa.string())
    if is_type.is_binary(arrow_type_):
        encoded = [
            None if value is None else base64.b64encode(value).decode()
            for value in values.to_pylist()
        ]
        return pa.array(encoded, pa.string())
    raise _mismatch(path, arrow_type_, "string")


def _require_json(texts: pa.Array, path: str) -> pa.Array:
    """Checks that the texts of a property of any type are JSON, which is written as it is."""
    for row, text in enumerate(texts.to_pylist()):
        try:
            if text is not None:
                json.loads(text, parse_constant=_reject_constant)
        except (ValueError, RecursionError) as error:
            raise ValueError(
                f"Row {row} cannot be written: field {path!r} is of any type, so its text must be "
                f"JSON: {error}."
            ) from error
    return texts


def _reject_constant(name: str) -> None:
    """Rejects NaN and Infinity, which Python accepts as JSON."""
    raise ValueError(f"{name} is not a number of JSON")


def _finite(values: pa.Array) -> pa.Array:
    import pyarrow.compute as pc

    return pc.if_else(pc.is_finite(values), values, None)


def _nulls(values: pa.Array) -> tuple[memoryview, int]:
    if values.null_count == 0:
        return view(None, "B"), 0
    return view(values.buffers()[0], "B"), values.offset


def _mismatch(path: str, arrow_type_: pa.DataType, required: str) -> SchemaError:
    where = f"Field {path!r}" if path else "The value"
    return SchemaError(f"{where} has type {arrow_type_}, and the schema requires {required}.")
