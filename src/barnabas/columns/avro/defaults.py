"""Encodes the default of a field, which a schema has as JSON, as Avro."""

from __future__ import annotations

import struct
from typing import Any

from barnabas.schemas import SchemaError
from barnabas.schemas.avro.model import (
    MISSING,
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
)
from barnabas.schemas.framing import write_varint


def encode_default(schema: AvroType, default: Any, path: str) -> bytes:
    """Raises SchemaError, with the field, if the default does not have the field's type."""
    try:
        return _encode(schema, default)
    except (TypeError, ValueError, KeyError, AttributeError, struct.error) as error:
        raise SchemaError(f"The default of field {path!r} is not of its type: {error}") from error


def _encode(schema: AvroType, value: Any) -> bytes:
    match schema:
        case AvroPrimitive(kind):
            return _encode_primitive(kind, value)
        case AvroFixed(size=size):
            content = bytes(value, "latin-1")
            if len(content) != size:
                raise ValueError(f"it has {len(content)} bytes of {size}")
            return content
        case AvroEnum(symbols=symbols):
            return write_varint(symbols.index(value))
        case AvroArray(items):
            return _blocks([_encode(items, item) for item in value])
        case AvroMap(values):
            return _blocks(
                [_sized(key.encode()) + _encode(values, item) for key, item in value.items()]
            )
        case AvroRecord(fields=fields):
            return b"".join(
                _encode(field.type, value.get(field.name, _json_default(field))) for field in fields
            )
        case AvroUnion(branches):
            return _encode_branch(branches, value)


def _json_default(field: AvroField) -> Any:
    return None if field.default is MISSING else field.default


def _encode_branch(branches: tuple[AvroType, ...], value: Any) -> bytes:
    """Encodes with the first branch that accepts it: since Avro 1.12 a default may be of any."""
    for index, branch in enumerate(branches):
        try:
            return write_varint(index) + _encode(branch, value)
        except (TypeError, ValueError, KeyError, AttributeError, struct.error):
            continue
    raise ValueError("no branch of the union accepts it")


def _encode_primitive(kind: str, value: Any) -> bytes:
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
    raise TypeError(f"{value!r} is not {kind}")


def _sized(content: bytes) -> bytes:
    return write_varint(len(content)) + content


def _blocks(items: list[bytes]) -> bytes:
    return (write_varint(len(items)) + b"".join(items) if items else b"") + b"\0"
