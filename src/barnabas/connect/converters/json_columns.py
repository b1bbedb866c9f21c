"""Columns that the compiled reader of JSON fills, and the Arrow arrays they become."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.columns import _bits
from barnabas.connect.converters import _json_reader
from barnabas.connect.converters._json_reader import KINDS
from barnabas.connect.data.defaults import filled_with_default
from barnabas.connect.data.schema import (
    DECIMAL,
    JSON_TEXT,
    LOGICAL_NAMES,
    SCALE,
    ConnectSchema,
    Type,
)
from barnabas.connect.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

_KIND_NAMES = {code: name for name, code in KINDS.items()}


def column_of(
    schema: ConnectSchema, *, replaces_nulls: bool, is_nullable: bool | None = None
) -> _json_reader.JsonColumn:
    """Returns a column for values of the schema. `is_nullable` overrides what the schema says."""
    if is_nullable is None:
        is_nullable = schema.is_optional or (schema.has_default and replaces_nulls)
    kind, width = _kind(schema)
    keys = items = None
    if schema.type is Type.MAP:
        assert schema.key_schema is not None
        keys = column_of(schema.key_schema, replaces_nulls=replaces_nulls)
    if schema.type in (Type.MAP, Type.ARRAY):
        assert schema.value_schema is not None
        items = column_of(schema.value_schema, replaces_nulls=replaces_nulls)
    return _json_reader.JsonColumn(
        KINDS[kind],
        width,
        is_nullable,
        _type_name(schema),
        [field.name.encode() for field in schema.fields],
        [column_of(field.schema, replaces_nulls=replaces_nulls) for field in schema.fields],
        keys,
        items,
        is_integral=schema.name in LOGICAL_NAMES,
        scale=int(schema.parameters.get(SCALE, 0)) if kind == "decimal" else 0,
    )


def typed_array(
    column: _json_reader.JsonColumn, schema: ConnectSchema, length: int, *, replaces_nulls: bool
) -> pa.Array:
    """Returns the values, with defaults instead of nulls if `replaces_nulls`."""
    array = _typed_array(column, schema, length, replaces_nulls)
    return filled_with_default(array, schema) if replaces_nulls else array


def inferred_array(column: _json_reader.JsonColumn, length: int) -> pa.Array:
    """Returns the values in the type that they were found to have."""
    import pyarrow as pa

    code, _, validity, cells, content, names, fields, _, items = column.parts(length)
    valid, null_count = _validity(validity, length)
    match _KIND_NAMES[code]:
        case "unknown":
            return pa.nulls(length)
        case "struct":
            children = [inferred_array(field, length) for field in fields]
            arrow_type = pa.struct(
                [(name.decode(), child.type) for name, child in zip(names, children, strict=True)]
            )
            return pa.Array.from_buffers(arrow_type, length, [valid], null_count, children=children)
        case "list":
            assert items is not None
            children = [inferred_array(items, column.item_count())]
            return pa.Array.from_buffers(
                pa.list_(children[0].type),
                length,
                [valid, pa.py_buffer(cells)],
                null_count,
                children=children,
            )
        case kind:
            buffers = _buffers(valid, cells, content, length, kind)
            return pa.Array.from_buffers(_scalar_types()[kind], length, buffers, null_count)


def _typed_array(
    column: _json_reader.JsonColumn, schema: ConnectSchema, length: int, replaces_nulls: bool
) -> pa.Array:
    import pyarrow as pa

    code, _, validity, cells, content, _, fields, keys, items = column.parts(length)
    valid, null_count = _validity(validity, length)
    arrow_type = schema.arrow_type()
    kind = _KIND_NAMES[code]
    buffers = _buffers(valid, cells, content, length, kind)
    children = None
    if schema.type is Type.STRUCT:
        children = [
            typed_array(inner, field.schema, length, replaces_nulls=replaces_nulls)
            for inner, field in zip(fields, schema.fields, strict=True)
        ]
    elif schema.type in (Type.ARRAY, Type.MAP):
        assert items is not None
        assert schema.value_schema is not None
        count = column.item_count()
        values = typed_array(items, schema.value_schema, count, replaces_nulls=replaces_nulls)
        children = [values]
        if schema.type is Type.MAP:
            assert keys is not None
            assert schema.key_schema is not None
            entries = [_typed_array(keys, schema.key_schema, count, replaces_nulls), values]
            fields_ = [arrow_type.key_field, arrow_type.item_field]
            children = [pa.Array.from_buffers(pa.struct(fields_), count, [None], children=entries)]
    return pa.Array.from_buffers(arrow_type, length, buffers, null_count, children=children)


def _validity(flags: bytearray, length: int) -> tuple[pa.Buffer | None, int]:
    import pyarrow as pa

    null_count = flags.count(0, 0, length)
    if null_count == 0:
        return None, 0
    return pa.py_buffer(_bits.pack_bits(flags, length)), null_count


def _buffers(
    valid: pa.Buffer | None, cells: bytearray, content: bytearray, length: int, kind: str
) -> list[pa.Buffer | None]:
    import pyarrow as pa

    match kind:
        case "struct":
            return [valid]
        case "boolean":
            return [valid, pa.py_buffer(_bits.pack_bits(cells, length))]
        case "string" | "bytes" | "raw":
            return [valid, pa.py_buffer(cells), pa.py_buffer(content)]
        case _:
            return [valid, pa.py_buffer(cells)]


def _kind(schema: ConnectSchema) -> tuple[str, int]:
    """Returns the kind of the column and the bytes of a cell."""
    import pyarrow as pa

    if schema.name == DECIMAL and schema.type is Type.BYTES:
        return "decimal", 32 if pa.types.is_decimal256(schema.arrow_type()) else 16
    if schema.name == JSON_TEXT and schema.type is Type.STRING:
        return "raw", 4
    if schema.type is Type.MAP:
        assert schema.key_schema is not None
        return ("map" if schema.key_schema.type is Type.STRING else "pairs"), 4
    return _KINDS[schema.type]


def _type_name(schema: ConnectSchema) -> str:
    """Returns the name in error messages, as Connect's."""
    if schema.name in LOGICAL_NAMES:
        return schema.name.rpartition(".")[2]
    return schema.type.name


def _scalar_types() -> dict[str, pa.DataType]:
    import pyarrow as pa

    return {
        "boolean": pa.bool_(),
        "integer": pa.int64(),
        "float64": pa.float64(),
        "string": pa.string(),
    }


_KINDS = {
    Type.BOOLEAN: ("boolean", 1),
    Type.INT8: ("integer", 1),
    Type.INT16: ("integer", 2),
    Type.INT32: ("integer", 4),
    Type.INT64: ("integer", 8),
    Type.FLOAT32: ("float32", 4),
    Type.FLOAT64: ("float64", 8),
    Type.STRING: ("string", 4),
    Type.BYTES: ("bytes", 4),
    Type.ARRAY: ("list", 4),
    Type.STRUCT: ("struct", 0),
}

_NODE_TYPES = {"{": "OBJECT", "[": "ARRAY", '"': "STRING", "t": "BOOLEAN", "f": "BOOLEAN"}

_SERIALIZATION = "Converting byte[] to Kafka Connect data failed due to serialization error: "


def read_error(
    code: int, position: int, path: list[bytes], type_name: str, found: int
) -> DataError:
    """Returns the error of a document, in Connect's words where Connect has the same."""
    where = ".".join(name.decode() for name in reversed(path))
    suffix = f" in field {where!r}" if where else ""
    node = _NODE_TYPES.get(chr(found), "NUMBER")
    match _ERROR_NAMES[code]:
        case "missing":
            message = f"Invalid null value for required {type_name} field"
        case "wrong type":
            message = _wrong_type(type_name, node)
        case "out of range":
            message = f"A number does not fit {type_name}"
        case "not base64":
            message = f"Invalid bytes for {type_name} field"
        case "not a pair":
            message = "Found invalid map entry instead of array tuple"
        case "wrong scale":
            message = "Decimal value has mismatching scale value for given Decimal schema"
        case "too deep":
            message = f"{_SERIALIZATION}Arrays and objects are nested too deeply"
        case "conflict":
            message = (
                "An array has elements of different types, which no column can have. Use a schema "
                "or change the producer"
            )
        case "not an envelope":
            return DataError(NOT_AN_ENVELOPE)
        case _:
            message = f"{_SERIALIZATION}The text is not JSON at byte {position}"
    return DataError(f"{message}{suffix}")


_ERROR_NAMES = {code: name for name, code in _json_reader.ERRORS.items()}

NOT_AN_ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain '
    "additional fields. If you are trying to deserialize plain JSON data, set schemas.enable=false "
    "in your converter configuration."
)
NOT_UTF8 = f"{_SERIALIZATION}The text is not UTF-8"


def _wrong_type(type_name: str, node: str) -> str:
    match type_name:
        case "STRUCT":
            return f"Structs should be encoded as JSON objects, but found {node}"
        case "MAP":
            expected = "non-string" if node == "OBJECT" else "string"
            shape = "arrays of tuples" if node == "OBJECT" else "objects"
            return (
                f"Maps with {expected} fields should be encoded as JSON {shape}, but found {node}"
            )
        case "Decimal":
            kind = "numeric or bytes"
        case "Date" | "Time" | "Timestamp":
            kind = "integer"
        case _:
            return f"Invalid value for {type_name} field: found {node}"
    return (
        f"Invalid type for {type_name}, underlying representation should be {kind} but was {node}"
    )
