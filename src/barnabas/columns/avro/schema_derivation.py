"""Derives an Avro schema from an Arrow type, such that every value of the type fits it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from barnabas.schemas import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def derive(kind: pa.DataType, name: str) -> str:
    letters = re.sub(r"[^A-Za-z0-9_]", "_", name) or "value"
    record = letters if not letters[0].isdigit() else f"_{letters}"
    return json.dumps(_type(kind, record))


def _type(kind: pa.DataType, name: str) -> Any:
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_struct(kind):
        return _record(kind, name)
    if kinds.is_map(kind):
        if not kinds.is_string(kind.key_type):
            raise SchemaError(f"The keys of map {name!r} are {kind.key_type}; Avro's are strings.")
        return {"type": "map", "values": _nullable(kind.item_field, name)}
    if kinds.is_list(kind) or kinds.is_large_list(kind):
        return {"type": "array", "items": _nullable(kind.value_field, name)}
    if kinds.is_timestamp(kind):
        prefix = "local-" if kind.tz is None else ""
        return {"type": "long", "logicalType": f"{prefix}timestamp-micros"}
    if kinds.is_decimal(kind):
        digits = {"precision": kind.precision, "scale": kind.scale}
        return {"type": "bytes", "logicalType": "decimal", **digits}
    for is_kind, declared in _scalars():
        if is_kind(kind):
            return declared
    raise SchemaError(f"Avro has no type for {name!r}, which is {kind}: cast it.")


def _record(kind: pa.StructType, name: str) -> Any:
    fields = []
    for field in kind:
        if not _NAME.fullmatch(field.name):
            raise SchemaError(f"Avro has no field named {field.name!r}: rename the column.")
        inner = f"{name}_{field.name}"
        declared: dict[str, Any] = {"name": field.name, "type": _nullable(field, inner)}
        if field.nullable:
            declared["default"] = None
        fields.append(declared)
    return {"type": "record", "name": name, "fields": fields}


def _nullable(field: pa.Field, name: str) -> Any:
    declared = _type(field.type, name)
    return ["null", declared] if field.nullable and declared != "null" else declared


def _scalars() -> list[tuple[Any, Any]]:
    import pyarrow as pa

    kinds = pa.types
    return [
        (kinds.is_null, "null"),
        (kinds.is_boolean, "boolean"),
        (kinds.is_int64, "long"),
        (kinds.is_signed_integer, "int"),
        (kinds.is_float32, "float"),
        (kinds.is_float64, "double"),
        (kinds.is_string, "string"),
        (kinds.is_large_string, "string"),
        (kinds.is_binary, "bytes"),
        (kinds.is_large_binary, "bytes"),
        (kinds.is_date, {"type": "int", "logicalType": "date"}),
        (kinds.is_time, {"type": "long", "logicalType": "time-micros"}),
    ]
