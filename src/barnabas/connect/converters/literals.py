"""The types of values that are written as text: Kafka Connect's `Values.parseString`.

`true` is a boolean, `12` an integer of the fewest bits, `1.5` a float, `2024-02-29` a date,
`[1,2]` an array and `{"a":1}` a map. Anything else is a string.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

from barnabas.connect.data.schema import (
    DATE,
    DECIMAL,
    MAX_DECIMAL128_DIGITS,
    SCALE,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    Type,
)

_MAX_DEPTH = 50
_STRING = ConnectSchema(Type.STRING)
_NUMBER = re.compile(r"[+-]?(?=[0-9.])[0-9]*\.?[0-9]*(?:[eE][+-]?[0-9]{1,3})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_TIME = re.compile(r"[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
_TIMESTAMP = re.compile(rf"{_DATE.pattern}T{_TIME.pattern}")
_TOKEN = re.compile(r'[^\[\]{}":,]+')
_INTEGERS = ((8, Type.INT8), (16, Type.INT16), (32, Type.INT32), (64, Type.INT64))
_NUMBERS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)


@dataclass(slots=True, frozen=True)
class Literal:
    """A value with its schema; both are None for null."""

    schema: ConnectSchema | None
    value: Any


NULL = Literal(None, None)


def parse_literal(text: str) -> Literal:
    """Returns the value that a text stands for."""
    stripped = text.strip()
    if stripped == "null":
        return NULL
    if stripped in ("true", "false"):
        return Literal(ConnectSchema(Type.BOOLEAN), stripped == "true")
    if stripped[:1] in ("[", "{"):
        reader = _Reader(stripped)
        try:
            literal = reader.value(0)
            if reader.at == len(stripped):
                return literal
        except _NotLiteralError:
            pass
        return Literal(_STRING, text)
    return _scalar(stripped) or Literal(_STRING, text)


def _scalar(text: str) -> Literal | None:
    if not text or not (text[0].isdigit() or text[0] in "+-"):
        return None
    return _temporal(text.replace("\\:", ":")) or _number(text)


def _temporal(text: str) -> Literal | None:
    try:
        if _DATE.fullmatch(text):
            return Literal(
                ConnectSchema(Type.INT32, name=DATE, version=1), date.fromisoformat(text)
            )
        if _TIME.fullmatch(text):
            return Literal(
                ConnectSchema(Type.INT32, name=TIME, version=1), time.fromisoformat(text[:-1])
            )
        if _TIMESTAMP.fullmatch(text):
            value = datetime.fromisoformat(text[:-1]).replace(tzinfo=UTC)
            return Literal(ConnectSchema(Type.INT64, name=TIMESTAMP, version=1), value)
    except ValueError:  # a month of 13, for example
        return None
    return None


def _number(text: str) -> Literal | None:
    if not _NUMBER.fullmatch(text) or not any(map(str.isdigit, text)):
        return None
    number = Decimal(text)
    if number == number.to_integral_value() and abs(number) < 1 << 64:
        for bits, type_ in _INTEGERS:
            if -(1 << bits - 1) <= number < 1 << bits - 1:
                return Literal(ConnectSchema(type_), int(number))
    scale = -int(number.as_tuple().exponent)
    if scale != 0:
        if _is_float32(number):
            single = struct.unpack("<f", struct.pack("<f", float(number)))[0]
            return Literal(ConnectSchema(Type.FLOAT32), single)
        if math.isfinite(float(number)):
            return Literal(ConnectSchema(Type.FLOAT64), float(number))
    if scale < 0 or number.adjusted() + 1 + scale > MAX_DECIMAL128_DIGITS:
        return None
    parameters = {SCALE: str(scale)}
    return Literal(
        ConnectSchema(Type.BYTES, name=DECIMAL, version=1, parameters=parameters), number
    )


def _is_float32(number: Decimal) -> bool:
    try:
        struct.pack("<f", float(number))
    except OverflowError:
        return False
    return math.isfinite(float(number))


class _NotLiteralError(Exception):
    """The text is neither an array nor a map, so it is a string."""


class _Reader:
    """Reads arrays and maps."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.at = 0

    def value(self, depth: int) -> Literal:
        if depth > _MAX_DEPTH:
            raise _NotLiteralError
        match self._peek():
            case "[":
                return self._array(depth)
            case "{":
                return self._map(depth)
            case '"':
                return Literal(_STRING, self._quoted())
        return self._unquoted()

    def _peek(self) -> str:
        while self._text[self.at : self.at + 1].isspace():
            self.at += 1
        return self._text[self.at : self.at + 1]

    def _take(self, expected: str) -> bool:
        if self._peek() != expected:
            return False
        self.at += 1
        return True

    def _array(self, depth: int) -> Literal:
        self._take("[")
        items: list[Literal] = []
        while not self._take("]"):
            if items and not self._take(","):
                raise _NotLiteralError
            items.append(self.value(depth + 1))
        schema, values = _aligned(items)
        return Literal(ConnectSchema(Type.ARRAY, value_schema=schema), values)

    def _map(self, depth: int) -> Literal:
        self._take("{")
        keys: list[Literal] = []
        items: list[Literal] = []
        while not self._take("}"):
            if keys and not self._take(","):
                raise _NotLiteralError
            keys.append(self.value(depth + 1))
            if not self._take(":"):
                raise _NotLiteralError
            items.append(self.value(depth + 1))
        key_schema, key_values = _aligned(keys)
        if key_schema.is_optional:
            raise _NotLiteralError
        value_schema, values = _aligned(items)
        schema = ConnectSchema(Type.MAP, key_schema=key_schema, value_schema=value_schema)
        return Literal(schema, list(zip(key_values, values, strict=True)))

    def _quoted(self) -> str:
        self.at += 1
        written: list[str] = []
        while self.at < len(self._text):
            character = self._text[self.at]
            self.at += 1
            if character == '"':
                return "".join(written)
            if character == "\\" and self.at < len(self._text):
                character = self._text[self.at]
                self.at += 1
            written.append(character)
        raise _NotLiteralError

    def _unquoted(self) -> Literal:
        found = next(
            (
                found
                for pattern in (_TIMESTAMP, _TIME, _TOKEN)
                if (found := pattern.match(self._text, self.at)) is not None
            ),
            None,
        )
        if found is None:
            raise _NotLiteralError
        self.at = found.end()
        token = found[0].strip()
        literal = parse_literal(token)
        if literal.schema == _STRING:
            raise _NotLiteralError
        return literal


def _aligned(literals: Sequence[Literal]) -> tuple[ConnectSchema, list[Any]]:
    """Returns the schema that all elements have, and the elements in it."""
    schemas = [each.schema for each in literals if each.schema is not None]
    is_optional = len(schemas) < len(literals)
    if not schemas:  # nothing says which type it is
        return ConnectSchema(Type.STRING, is_optional=True), [None] * len(literals)
    types = [each.type for each in schemas]
    common = schemas[0]
    if all(
        type_ in _NUMBERS and each.name is None for type_, each in zip(types, schemas, strict=True)
    ):
        common = ConnectSchema(max(types, key=_NUMBERS.index))
    elif any(each != common for each in schemas):
        raise _NotLiteralError
    convert = float if common.type in (Type.FLOAT32, Type.FLOAT64) else _same
    values = [None if each.schema is None else convert(each.value) for each in literals]
    return (common.as_optional() if is_optional else common), values


def _same(value: Any) -> Any:
    return value
