"""Which columns a JSON Schema describes.

`formats.json_schema` reads one to compare it with another, checked by its meta-schema. Executors
need no more than the types of fields, without the libraries that checking takes.

All fields are nullable, as in what Spark itself reads of JSON. A property that may be of several
types, or of any, is the text of its JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import unquote

from barnabas.schemas import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

MAX_DEPTH = 64
MAX_KINDS = 5000
"""A few definitions that refer to each other twice would be more than fit in any memory."""


@dataclass(slots=True, frozen=True)
class Scalar:
    name: str
    """string, integer, number, boolean, null; or json, for the text of anything."""


@dataclass(slots=True, frozen=True)
class Object:
    fields: tuple[tuple[str, Kind], ...]
    required: frozenset[str]
    is_open: bool
    """There may be other properties, which are not read."""


@dataclass(slots=True, frozen=True)
class List:
    items: Kind


@dataclass(slots=True, frozen=True)
class Map:
    values: Kind


Kind: TypeAlias = Scalar | Object | List | Map
JSON = Scalar("json")


def parse(text: str, references: Mapping[str, str]) -> Kind:
    """SchemaError where the text is no JSON Schema."""
    declared = _loaded(text, "The JSON schema")
    return _Parser(declared, references).kind(declared, declared, ())


def arrow_type(kind: Kind) -> pa.DataType:
    import pyarrow as pa

    match kind:
        case Object(fields):
            return pa.struct([pa.field(name, arrow_type(inner)) for name, inner in fields])
        case List(items):
            return pa.list_(pa.field("element", arrow_type(items)))
        case Map(values):
            return pa.map_(
                pa.field("key", pa.string(), nullable=False), pa.field("value", arrow_type(values))
            )
        case Scalar(name):
            return {
                "integer": pa.int64(),
                "number": pa.float64(),
                "boolean": pa.bool_(),
                "null": pa.null(),
            }.get(name, pa.string())


def is_readable_by_arrow(kind: Kind) -> bool:
    """Whether Arrow's own reader takes documents of the kind: it knows objects with fields."""
    return isinstance(kind, Object) and bool(kind.fields) and _is_within_arrow(kind)


def _is_within_arrow(kind: Kind) -> bool:
    match kind:
        case Object(fields):
            return all(_is_within_arrow(inner) for _, inner in fields)
        case List(items):
            return _is_within_arrow(items)
        case Scalar(name):
            return name not in ("json", "null")
    return False


class _Parser:
    def __init__(self, root: Any, references: Mapping[str, str]) -> None:
        self._roots = {"": root}
        self._references = references
        self._count = 0

    def kind(self, declared: Any, root: Any, path: tuple[str, ...]) -> Kind:
        """`path` has the references that led here: one that leads to itself has no columns."""
        self._count += 1
        if self._count > MAX_KINDS:
            raise SchemaError(f"The schema is more than {MAX_KINDS} types, each where it is used.")
        if not isinstance(declared, dict) or len(path) > MAX_DEPTH:
            return JSON
        match declared:
            case {"$ref": str(target)}:
                return self._referred(target, root, path)
            case {"oneOf": list(choices)} | {"anyOf": list(choices)}:
                return self._one_of(choices, root, path)
            case {"allOf": list(parts)} if "type" not in declared:
                return self._all_of([*parts, {**declared, "allOf": None}], root, path)
            case {"type": str(name)}:
                return self._named(name, declared, root, path)
            case {"type": list(names)}:
                return self._named(_single(names), declared, root, path)
            case {"properties": dict()}:
                return self._object(declared, root, path)
            case {"enum": list(values)}:
                return _common(values)
            case {"const": value}:
                return _common([value])
        return JSON

    def _named(self, name: str, declared: dict[str, Any], root: Any, path: tuple[str, ...]) -> Kind:
        match name:
            case "object":
                return self._object(declared, root, path)
            case "array":
                items = declared.get("items")
                if not isinstance(items, dict):
                    return JSON
                return List(self.kind(items, root, (*path, "")))
            case "string" | "integer" | "number" | "boolean" | "null":
                return Scalar(name)
        return JSON

    def _object(self, declared: dict[str, Any], root: Any, path: tuple[str, ...]) -> Kind:
        properties, others = declared.get("properties"), declared.get("additionalProperties")
        if isinstance(properties, dict) and properties:
            return Object(
                tuple(
                    (name, self.kind(inner, root, (*path, "")))
                    for name, inner in properties.items()
                ),
                frozenset(declared.get("required") or ()),
                others is not False,
            )
        if isinstance(others, dict) and others:
            return Map(self.kind(others, root, (*path, "")))
        return JSON

    def _one_of(self, choices: list[Any], root: Any, path: tuple[str, ...]) -> Kind:
        kinds = [self.kind(choice, root, (*path, "")) for choice in choices]
        others = [kind for kind in kinds if kind != Scalar("null")]
        if not others and kinds:
            return Scalar("null")
        return others[0] if others and all(kind == others[0] for kind in others) else JSON

    def _all_of(self, parts: list[Any], root: Any, path: tuple[str, ...]) -> Kind:
        kinds = [self.kind(part, root, (*path, "")) for part in parts]
        objects = [kind for kind in kinds if isinstance(kind, Object)]
        if not objects:
            others = [kind for kind in kinds if kind != JSON]
            return others[0] if len(others) == 1 else JSON
        fields = {name: kind for each in objects for name, kind in each.fields}
        return Object(
            tuple(fields.items()),
            frozenset().union(*(each.required for each in objects)),
            all(each.is_open for each in objects),
        )

    def _referred(self, target: str, root: Any, path: tuple[str, ...]) -> Kind:
        name, _, pointer = target.partition("#")
        place = f"{name or id(root)}#{pointer}"
        if place in path:
            return JSON
        if name:
            root = self._root(name)
        declared = root
        for step in pointer.split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            declared = declared.get(key) if isinstance(declared, dict) else None
        if declared is None:
            raise SchemaError(f"The schema refers to {target!r}, which is not defined.")
        return self.kind(declared, root, (*path, place))

    def _root(self, name: str) -> Any:
        if name not in self._roots:
            if name not in self._references:
                raise SchemaError(f"The schema refers to {name!r}, which is not defined.")
            self._roots[name] = _loaded(self._references[name], f"The reference {name!r}")
        return self._roots[name]


def _loaded(text: str, what: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SchemaError(f"{what} is not JSON: {error}") from error


def _single(names: list[Any]) -> str:
    """The type besides null; none where there are several."""
    others = [name for name in names if name != "null"]
    if sorted(map(str, others)) == ["integer", "number"]:
        return "number"
    if len(others) == 1:
        return str(others[0])
    return "null" if not others else ""


def _common(values: list[Any]) -> Kind:
    """Of constants."""
    if values and all(isinstance(value, str) for value in values):
        return Scalar("string")
    if values and all(type(value) is int for value in values):
        return Scalar("integer")
    return JSON
