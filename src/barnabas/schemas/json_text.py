"""Reads JSON with bounded depth, and writes it compactly as Jackson in Java does.

Registries that share a topic compare texts, so numbers are written as Java writes them.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from barnabas.schemas import SchemaError
from barnabas.schemas.bounds import MAX_DEPTH


def read(text: str) -> object:
    """Raises SchemaError if the text is not JSON or nests too deeply."""
    if _depth(text) > MAX_DEPTH:
        raise SchemaError(f"The schema nests more than {MAX_DEPTH} levels")
    try:
        return json.loads(text, parse_constant=_finite, parse_float=_finite)
    except ValueError as error:
        raise SchemaError(f"The schema is not JSON: {error}") from error


def write(value: object) -> str:
    """Writes a value compactly. Members keep their order."""
    match value:
        case Mapping():
            members = (f"{_string(str(key))}:{write(member)}" for key, member in value.items())
            return "{" + ",".join(members) + "}"
        case str():
            return _string(value)
        case Sequence():
            return "[" + ",".join([write(item) for item in value]) + "]"
        case float():
            return _double(value)
        case _:
            return json.dumps(value)


def kind(value: object) -> str:
    """Returns the kind of a value in words, for error messages."""
    match value:
        case Mapping():
            return "an object"
        case str():
            return "a string"
        case Sequence():
            return "an array"
        case bool():
            return "a boolean"
        case None:
            return "null"
        case _:
            return "a number"


def ordered(value: object) -> object:
    """Returns the value with the members of every object sorted by name."""
    match value:
        case Mapping():
            return {key: ordered(value[key]) for key in sorted(value)}
        case list():
            return [ordered(item) for item in value]
        case _:
            return value


_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]', re.DOTALL)


def _depth(text: str) -> int:
    deepest = depth = 0
    for token in _TOKENS.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
                deepest = max(deepest, depth)
            case "]" | "}":
                depth -= 1
    return deepest


def _finite(text: str) -> float:
    if math.isfinite(number := float(text)):
        return number
    raise ValueError(f"{text} is no number that JSON and a double can hold")


_LOWER_ESCAPES = re.compile(r"(?<!\\)((?:\\\\)*)\\u00([01][0-9a-f])")


def _string(value: str) -> str:
    quoted = json.dumps(value, ensure_ascii=False)
    if "\\u00" not in quoted:
        return quoted
    return _LOWER_ESCAPES.sub(lambda match: f"{match[1]}\\u00{match[2].upper()}", quoted)


def _double(value: float) -> str:
    """Writes a float as Java's Double.toString does: 1.0E10, 1.0E-4, 0.001, 1234567.0."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    shortest = Decimal(repr(value)).normalize()
    sign, digits, _ = shortest.as_tuple()
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{shortest.adjusted()}"
