"""Derives a Protobuf schema from an Arrow type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from barnabas.schemas import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

_TIMESTAMP = "google.protobuf.Timestamp"
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def derive(arrow_type: pa.DataType, name: str) -> str:
    """Returns the text of a schema that fits all values of the type.

    Dates and decimals are text. Raises SchemaError if Protobuf has no such type, for example for a
    list of lists.
    """
    import pyarrow as pa

    if not pa.types.is_struct(arrow_type):
        raise SchemaError(f"A Protobuf message needs a struct, and the column is {arrow_type}.")
    body = list(_message(arrow_type, _message_name(name)))
    lines = ['syntax = "proto3";', ""]
    if any(_TIMESTAMP in line for line in body):
        lines += ['import "google/protobuf/timestamp.proto";', ""]
    return "\n".join([*lines, *body, ""])


def _message(struct: pa.StructType, name: str) -> Iterator[str]:
    yield f"message {name} {{"
    inner: list[str] = []
    for number, field in enumerate(struct, 1):
        if not _IDENTIFIER.fullmatch(field.name):
            raise SchemaError(
                f"A Protobuf field cannot be named {field.name!r}: rename the column."
            )
        kind = _field(field.type, field.name, inner)
        yield f"  {kind} {field.name} = {number};"
    yield from (f"  {line}" for line in inner)
    yield "}"


def _field(arrow_type: pa.DataType, name: str, inner: list[str]) -> str:
    import pyarrow as pa

    if pa.types.is_list(arrow_type):
        return f"repeated {_value(arrow_type.value_type, name, inner)}"
    if pa.types.is_map(arrow_type):
        key = _value(arrow_type.key_type, name, inner)
        if key not in ("string", "int32", "int64", "bool"):
            raise SchemaError(f"Field {name}: a key of a Protobuf map cannot be a {key}.")
        return f"map<{key}, {_value(arrow_type.item_type, name, inner)}>"
    value = _value(arrow_type, name, inner)
    return value if "." in value or value[0].isupper() else f"optional {value}"


def _value(arrow_type: pa.DataType, name: str, inner: list[str]) -> str:
    import pyarrow as pa

    if pa.types.is_struct(arrow_type):
        message = f"{_message_name(name)}Value"
        inner += _message(arrow_type, message)
        return message
    if pa.types.is_timestamp(arrow_type):
        return _TIMESTAMP
    if pa.types.is_decimal(arrow_type) or pa.types.is_date(arrow_type):
        return "string"
    kind = _SCALARS.get(str(arrow_type))
    if kind is None:
        raise SchemaError(f"Field {name}: Protobuf has no type for {arrow_type} there.")
    return kind


def _message_name(name: str) -> str:
    words = re.split(r"[^A-Za-z0-9]+", name)
    joined = "".join(word[:1].upper() + word[1:] for word in words)
    return joined if joined[:1].isalpha() else f"Message{joined}"


_SCALARS = {
    "bool": "bool",
    "int8": "int32",
    "int16": "int32",
    "int32": "int32",
    "int64": "int64",
    "float": "float",
    "double": "double",
    "string": "string",
    "binary": "bytes",
}
