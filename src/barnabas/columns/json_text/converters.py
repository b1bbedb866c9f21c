"""Converts parsed documents to values that Arrow accepts, with one function for each type.

A document is checked while it is copied. If it does not match, the error collects the path of the
field while it propagates, so that documents that match do not pay for paths.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from barnabas.columns.json_text.types import JsonArray, JsonKind, JsonMap, JsonScalar, JsonStruct

Converter = Callable[[Any], Any]
"""Converts a value that is not null. Raises DocumentMismatchError if it has another type."""

_INT64_END = 1 << 63
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
"""Raises ValueError for NaN and infinity, which JSON does not have."""


class DocumentMismatchError(Exception):
    """A field has a value of another type than the schema."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self._reason = reason
        self._path = ""

    def within(self, step: str) -> DocumentMismatchError:
        """Returns the error with a field or index before its path."""
        self._path = step + self._path
        return self

    def __str__(self) -> str:
        path = self._path.removeprefix(".")
        return f"field {path!r} {self._reason}" if path else f"it {self._reason}"


def converter(type_: JsonKind) -> Converter:
    match type_:
        case JsonStruct():
            return _object(type_)
        case JsonArray(items):
            return _list(converter(items))
        case JsonMap(values):
            return _map(converter(values))
        case JsonScalar(name):
            return _SCALARS[name]


def _object(type_: JsonStruct) -> Converter:
    parts = [(name, converter(inner)) for name, inner in type_.fields]

    def convert(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _mismatch(value, "object")
        converted = {}
        name = ""
        try:
            for name, inner in parts:
                item = value.get(name)
                if item is not None:
                    converted[name] = inner(item)
        except DocumentMismatchError as error:
            raise error.within(f".{name}") from None
        return converted

    return convert


def _list(items: Converter) -> Converter:
    def convert(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _mismatch(value, "list")
        converted: list[Any] = []
        try:
            for item in value:
                converted.append(None if item is None else items(item))
        except DocumentMismatchError as error:
            raise error.within(f"[{len(converted)}]") from None
        return converted

    return convert


def _map(values: Converter) -> Converter:
    def convert(value: Any) -> list[tuple[str, Any]]:
        if not isinstance(value, dict):
            raise _mismatch(value, "map")
        entries: list[tuple[str, Any]] = []
        key = ""
        try:
            for key, item in value.items():
                entries.append((_text(key), None if item is None else values(item)))
        except DocumentMismatchError as error:
            raise error.within(f".{key}") from None
        return entries

    return convert


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise _mismatch(value, "string")
    return _text(value)


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise DocumentMismatchError("has half of a surrogate pair") from None
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _mismatch(value, "boolean")
    return value


def _integer(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or not -_INT64_END <= value < _INT64_END:
        raise _mismatch(value, "integer")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _mismatch(value, "number")
    try:
        return float(value)
    except OverflowError:
        raise DocumentMismatchError("has a number beyond doubles") from None


def _null(value: Any) -> Any:
    raise _mismatch(value, "null")


def _anything(value: Any) -> str:
    return _text(_compact(value))


def _mismatch(value: Any, expected: str) -> DocumentMismatchError:
    return DocumentMismatchError(f"is {json.dumps(value)[:40]}, not {expected}")


_SCALARS: dict[str, Converter] = {
    "string": _string,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "null": _null,
    "json": _anything,
}
