"""Dataclasses that are sent as JSON objects, with their fields in camel case.

    @dataclass(slots=True)
    class Gate(JsonForm):
        opened_by: str | None = None           # {"openedBy": "..."}
        guards: list[Guard] | None = None      # {"guards": [{...}]}

Fields that are None are omitted. Unknown fields of a response are ignored, so that newer
registries are understood.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum
from functools import cache
from typing import Any, Self, get_args, get_origin, get_type_hints


class JsonObject:
    """Base class of dataclasses. The metadata of a field may have another JSON name."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON object to send."""
        return {
            name: _plain(value)
            for attribute, name, _ in _layout(type(self))
            if (value := getattr(self, attribute)) is not None
        }

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Reads a JSON object that was received."""
        return cls(
            **{
                attribute: read(received)
                for attribute, name, read in _layout(cls)
                if (received := src_dict.get(name)) is not None
            }
        )


def _read_layout(kind: Any) -> list[tuple[str, str, Callable[[Any], Any]]]:
    """Returns the attribute, the JSON name and the reader of each field."""
    types = get_type_hints(kind)
    return [
        (
            field.name,
            field.metadata.get("name") or _camel_case(field.name),
            _reader(types[field.name]),
        )
        for field in fields(kind)
    ]


# Not a decorator: mypy would not accept a class as a hashable argument.
_layout: Callable[[Any], list[tuple[str, str, Callable[[Any], Any]]]] = cache(_read_layout)


def _reader(kind: Any) -> Callable[[Any], Any]:
    for item in get_args(kind) or (kind,):
        if get_origin(item) is list:
            read = _reader(*get_args(item))
            return lambda received: [read(one) for one in received]
        if hasattr(item, "from_dict"):
            from_dict: Callable[[Any], Any] = item.from_dict
            return from_dict
        if isinstance(item, type) and issubclass(item, Enum):
            return item
    return lambda received: received


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return value.to_dict() if hasattr(value, "to_dict") else value
