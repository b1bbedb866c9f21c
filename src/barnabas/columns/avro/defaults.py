"""The default of a field, which a schema has as JSON, as the bytes it would be written as."""

from __future__ import annotations

import struct
from typing import Any

from barnabas.columns.avro.shapes import (
    Again,
    Array,
    Enum,
    Fixed,
    Map,
    Primitive,
    Record,
    Shape,
    Union,
)
from barnabas.schemas import SchemaError
from barnabas.schemas.varints import write_varint


def encode_default(shape: Shape, default: Any, path: str) -> bytes:
    """SchemaError, naming the field, where the default is not of the field's type."""
    try:
        return _encoded(shape, default)
    except (TypeError, ValueError, KeyError, AttributeError, struct.error) as error:
        raise SchemaError(f"The default of field {path!r} is not of its type: {error}") from error


def _encoded(shape: Shape, value: Any) -> bytes:
    match shape:
        case Primitive(kind):
            return _encoded_primitive(kind, value)
        case Fixed(_, size):
            content = bytes(value, "latin-1")
            if len(content) != size:
                raise ValueError(f"it has {len(content)} bytes of {size}")
            return content
        case Enum(_, symbols):
            return write_varint(symbols.index(value))
        case Array(items):
            return _blocks([_encoded(items, item) for item in value])
        case Map(values):
            return _blocks(
                [_sized(key.encode()) + _encoded(values, item) for key, item in value.items()]
            )
        case Record(_, fields):
            return b"".join(
                _encoded(field.shape, value.get(field.name, field.default)) for field in fields
            )
        case Union(members):
            return _encoded_member(members, value)
        case Again():
            raise TypeError("it is within itself")


def _encoded_member(members: tuple[Shape, ...], value: Any) -> bytes:
    """The first member that takes it: since Avro 1.12 a default may be of any."""
    for index, member in enumerate(members):
        try:
            return write_varint(index) + _encoded(member, value)
        except (TypeError, ValueError, KeyError, AttributeError, struct.error):
            continue
    raise ValueError("no member of the union takes it")


def _encoded_primitive(kind: str, value: Any) -> bytes:
    match kind, value:
        case "null", None:
            return b""
        case "boolean", bool():
            return bytes([value])
        case (("int" | "long"), int()) if not isinstance(value, bool):
            return write_varint(value)
        case "float", int() | float():
            return struct.pack("<f", value)
        case "double", int() | float():
            return struct.pack("<d", value)
        case "bytes", str():
            return _sized(value.encode("latin-1"))
        case "string", str():
            return _sized(value.encode())
    raise TypeError(f"{value!r} is no {kind}")


def _sized(content: bytes) -> bytes:
    return write_varint(len(content)) + content


def _blocks(items: list[bytes]) -> bytes:
    return (write_varint(len(items)) + b"".join(items) if items else b"") + b"\0"
