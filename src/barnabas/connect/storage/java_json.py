"""JSON as Kafka Connect's JsonConverter writes it, byte by byte.

Connect finds the position of a source partition by the bytes of a key, so a worker in Java finds
what we write only if we write the same bytes: without spaces, with the entries of a map in the
order of Java's HashMap, and numbers and escapes as Jackson has them.
"""

import json
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from math import isfinite
from typing import Any

_ESCAPES = re.compile(r"\\(?:u([0-9a-f]{4})|.)")
_FIRST_TABLE_SIZE = 16
_LOAD_FACTOR = 0.75


class UnsupportedValueError(TypeError):
    """A value is not one of JSON's types."""


def encode_java_json(value: Any) -> bytes:
    """Returns the JSON of None, booleans, numbers, text, lists and maps."""
    return _text(value).encode()


def hash_map_order(keys: Iterable[str]) -> list[str]:
    """Returns keys in the order in which a HashMap iterates that they were put into in turn."""
    keys = list(keys)
    size = _FIRST_TABLE_SIZE
    while len(keys) > size * _LOAD_FACTOR:
        size *= 2
    return sorted(keys, key=lambda key: _spread_hash(key) & (size - 1))  # sorting is stable


def _text(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return _double(value)
        case str():
            return _quoted(value)
        case Mapping():
            entries = (f"{_quoted(key)}:{_text(value[key])}" for key in hash_map_order(value))
            return "{" + ",".join(entries) + "}"
        case list() | tuple():
            return "[" + ",".join(map(_text, value)) + "]"
        case _:
            raise UnsupportedValueError(f"{type(value).__name__} is not a type of JSON: {value!r}")


def _quoted(text: str) -> str:
    def upper_case(escape: re.Match[str]) -> str:
        return f"\\u{escape[1].upper()}" if escape[1] else escape[0]

    return _ESCAPES.sub(upper_case, json.dumps(text, ensure_ascii=False))


def _double(value: float) -> str:
    """Returns what Double.toString returns since Java 19, in quotes if it is no number of JSON."""
    if not isfinite(value):
        return '"NaN"' if value != value else f'"{"-" if value < 0 else ""}Infinity"'
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = format(Decimal(repr(value)), "f")
        return text if "." in text else f"{text}.0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    assert isinstance(exponent, int)
    mantissa = "".join(map(str, digits)).rstrip("0")
    return f"{'-' if sign else ''}{mantissa[0]}.{mantissa[1:] or '0'}E{exponent + len(digits) - 1}"


def _spread_hash(text: str) -> int:
    """Returns `hashCode` with its higher bits spread to the lower ones, as HashMap does."""
    encoded = text.encode("utf-16-be", "surrogatepass")
    result = 0
    for at in range(0, len(encoded), 2):
        result = (31 * result + (encoded[at] << 8 | encoded[at + 1])) & 0xFFFFFFFF
    return result ^ (result >> 16)
