"""Parsed documents as Arrow takes them, one function made for each kind.

A document is checked while it is copied; where it does not fit, the error learns on its way out
in which field that was, so that one that fits pays for no name.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from barnabas.columns.json_text.kinds import Kind, List, Map, Object, Scalar

Fit = Callable[[Any], Any]
"""Of what is not null; UnfitError where the kind has no place for it."""

_INT64_END = 1 << 63
_compact = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
"""ValueError where it has a number that JSON has not."""


class UnfitError(Exception):
    """Says which field has what in place of what."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self._what = what
        self._path = ""

    def within(self, step: str) -> UnfitError:
        """The same, in a field or at an index of what is around it."""
        self._path = step + self._path
        return self

    def __str__(self) -> str:
        path = self._path.removeprefix(".")
        return f"field {path!r} {self._what}" if path else f"it {self._what}"


def fitting(kind: Kind) -> Fit:
    match kind:
        case Object():
            return _object(kind)
        case List(items):
            return _list(fitting(items))
        case Map(values):
            return _map(fitting(values))
        case Scalar(name):
            return _SCALARS[name]


def _object(kind: Object) -> Fit:
    parts = [(name, fitting(inner)) for name, inner in kind.fields]

    def fit(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _unfit(value, "object")
        fitted = {}
        name = ""
        try:
            for name, inner in parts:
                given = value.get(name)
                if given is not None:
                    fitted[name] = inner(given)
        except UnfitError as error:
            raise error.within(f".{name}") from None
        return fitted

    return fit


def _list(items: Fit) -> Fit:
    def fit(value: Any) -> list[Any]:
        if not isinstance(value, list):
            raise _unfit(value, "list")
        fitted: list[Any] = []
        try:
            for item in value:
                fitted.append(None if item is None else items(item))
        except UnfitError as error:
            raise error.within(f"[{len(fitted)}]") from None
        return fitted

    return fit


def _map(values: Fit) -> Fit:
    def fit(value: Any) -> list[tuple[str, Any]]:
        if not isinstance(value, dict):
            raise _unfit(value, "map")
        entries: list[tuple[str, Any]] = []
        key = ""
        try:
            for key, item in value.items():
                entries.append((_text(key), None if item is None else values(item)))
        except UnfitError as error:
            raise error.within(f".{key}") from None
        return entries

    return fit


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise _unfit(value, "string")
    return _text(value)


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise UnfitError("has half of a surrogate pair") from None
    return value


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _unfit(value, "boolean")
    return value


def _integer(value: Any) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is not int or not -_INT64_END <= value < _INT64_END:
        raise _unfit(value, "integer")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _unfit(value, "number")
    try:
        return float(value)
    except OverflowError:
        raise UnfitError("has a number beyond doubles") from None


def _null(value: Any) -> Any:
    raise _unfit(value, "null")


def _anything(value: Any) -> str:
    return _text(_compact(value))


def _unfit(value: Any, wanted: str) -> UnfitError:
    return UnfitError(f"is {json.dumps(value)[:40]}, not {wanted}")


_SCALARS: dict[str, Fit] = {
    "string": _string,
    "boolean": _boolean,
    "integer": _integer,
    "number": _number,
    "null": _null,
    "json": _anything,
}
