"""Derives a JSON Schema from an Arrow type."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa


def derive(kind: pa.DataType, name: str) -> str:
    declared = {"$schema": "http://json-schema.org/draft-07/schema#", "title": name}
    return json.dumps({**declared, **_type(kind)})


def _type(kind: pa.DataType) -> dict[str, Any]:
    import pyarrow as pa

    is_type = pa.types
    if is_type.is_struct(kind):
        return {
            "type": "object",
            "properties": {field.name: _nullable(field) for field in kind},
            "required": [field.name for field in kind if not field.nullable],
        }
    if is_type.is_map(kind):
        return {"type": "object", "additionalProperties": _nullable(kind.item_field)}
    if is_type.is_list(kind) or is_type.is_large_list(kind):
        return {"type": "array", "items": _nullable(kind.value_field)}
    if is_type.is_boolean(kind):
        return {"type": "boolean"}
    if is_type.is_integer(kind):
        return {"type": "integer"}
    if is_type.is_floating(kind) or is_type.is_decimal(kind):
        return {"type": "number"}
    if is_type.is_null(kind):
        return {"type": "null"}
    if is_type.is_timestamp(kind):
        return {"type": "string", "format": "date-time"} if kind.tz else {"type": "string"}
    return {"type": "string", "format": "date"} if is_type.is_date(kind) else {"type": "string"}


def _nullable(field: pa.Field) -> dict[str, Any]:
    declared = _type(field.type)
    return {"oneOf": [{"type": "null"}, declared]} if field.nullable else declared
