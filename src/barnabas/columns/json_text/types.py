"""The column types of a JSON Schema.

`schemas.json_schema` parses a schema to validate and compare it. Executors need only the types of
fields, without the libraries for validation.

All fields are nullable, as in Spark's own JSON source. A property of several types, or of any
type, is the text of its JSON.
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
MAX_TYPES = 5000
"""A few definitions that refer to each other twice would otherwise not fit in memory."""


@dataclass(slots=True, frozen=True)
class JsonScalar:
    name: str
    """string, integer, number, boolean, null; or json, for the text of any value."""


@dataclass(slots=True, frozen=True)
class JsonStruct:
    fields: tuple[tuple[str, JsonKind], ...]
    required: frozenset[str]
    is_open: bool
    """Whether there may be other properties, which are not read."""


@dataclass(slots=True, frozen=True)
class JsonArray:
    items: JsonKind


@dataclass(slots=True, frozen=True)
class JsonMap:
    values: JsonKind


JsonKind: TypeAlias = JsonScalar | JsonStruct | JsonArray | JsonMap
ANY_JSON = JsonScalar("json")


def parse(text: str, references: Mapping[str, str]) -> JsonKind:
    """Raises SchemaError if the text is not a JSON Schema."""
    declared = _load_json(text, "The JSON schema")
    return _Parser(declared, references).kind(declared, declared, ())


def arrow_type(kind: JsonKind) -> pa.DataType:
    import pyarrow as pa

    match kind:
        case JsonStruct(fields):
            return pa.struct([pa.field(name, arrow_type(inner)) for name, inner in fields])
        case JsonArray(items):
            return pa.list_(pa.field("element", arrow_type(items)))
        case JsonMap(values):
            return pa.map_(
                pa.field("key", pa.string(), nullable=False), pa.field("value", arrow_type(values))
            )
        case JsonScalar(name):
            return {
                "integer": pa.int64(),
                "number": pa.float64(),
                "boolean": pa.bool_(),
                "null": pa.null(),
            }.get(name, pa.string())


def is_readable_by_arrow(kind: JsonKind) -> bool:
    """Whether Arrow's own reader supports the type: only objects with fields."""
    return isinstance(kind, JsonStruct) and bool(kind.fields) and _is_within_arrow(kind)


def _is_within_arrow(kind: JsonKind) -> bool:
    match kind:
        case JsonStruct(fields):
            return all(_is_within_arrow(inner) for _, inner in fields)
        case JsonArray(items):
            return _is_within_arrow(items)
        case JsonScalar(name):
            return name not in ("json", "null")
    return False


class _Parser:
    def __init__(self, root: Any, references: Mapping[str, str]) -> None:
        self._roots = {"": root}
        self._references = references
        self._count = 0

    def kind(self, declared: Any, root: Any, path: tuple[str, ...]) -> JsonKind:
        """`path` has the references that led here: a type that contains itself has no columns."""
        self._count += 1
        if self._count > MAX_TYPES:
            raise SchemaError(f"The schema is more than {MAX_TYPES} types, each where it is used.")
        if not isinstance(declared, dict) or len(path) > MAX_DEPTH:
            return ANY_JSON
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
                return self._named(_single_type(names), declared, root, path)
            case {"properties": dict()}:
                return self._object(declared, root, path)
            case {"enum": list(values)}:
                return _common_type(values)
            case {"const": value}:
                return _common_type([value])
        return ANY_JSON

    def _named(
        self, name: str, declared: dict[str, Any], root: Any, path: tuple[str, ...]
    ) -> JsonKind:
        match name:
            case "object":
                return self._object(declared, root, path)
            case "array":
                items = declared.get("items")
                if not isinstance(items, dict):
                    return ANY_JSON
                return JsonArray(self.kind(items, root, (*path, "")))
            case "string" | "integer" | "number" | "boolean" | "null":
                return JsonScalar(name)
        return ANY_JSON

    def _object(self, declared: dict[str, Any], root: Any, path: tuple[str, ...]) -> JsonKind:
        properties, others = declared.get("properties"), declared.get("additionalProperties")
        if isinstance(properties, dict) and properties:
            return JsonStruct(
                tuple(
                    (name, self.kind(inner, root, (*path, "")))
                    for name, inner in properties.items()
                ),
                frozenset(declared.get("required") or ()),
                others is not False,
            )
        if isinstance(others, dict) and others:
            return JsonMap(self.kind(others, root, (*path, "")))
        return ANY_JSON

    def _one_of(self, choices: list[Any], root: Any, path: tuple[str, ...]) -> JsonKind:
        kinds = [self.kind(choice, root, (*path, "")) for choice in choices]
        others = [kind for kind in kinds if kind != JsonScalar("null")]
        if not others and kinds:
            return JsonScalar("null")
        return others[0] if others and all(kind == others[0] for kind in others) else ANY_JSON

    def _all_of(self, parts: list[Any], root: Any, path: tuple[str, ...]) -> JsonKind:
        kinds = [self.kind(part, root, (*path, "")) for part in parts]
        objects = [kind for kind in kinds if isinstance(kind, JsonStruct)]
        if not objects:
            others = [kind for kind in kinds if kind != ANY_JSON]
            return others[0] if len(others) == 1 else ANY_JSON
        fields = {name: kind for struct in objects for name, kind in struct.fields}
        return JsonStruct(
            tuple(fields.items()),
            frozenset().union(*(struct.required for struct in objects)),
            all(struct.is_open for struct in objects),
        )

    def _referred(self, target: str, root: Any, path: tuple[str, ...]) -> JsonKind:
        name, _, pointer = target.partition("#")
        reference = f"{name or id(root)}#{pointer}"
        if reference in path:
            return ANY_JSON
        if name:
            root = self._root(name)
        declared = root
        for step in pointer.split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            declared = declared.get(key) if isinstance(declared, dict) else None
        if declared is None:
            raise SchemaError(f"The schema refers to {target!r}, which is not defined.")
        return self.kind(declared, root, (*path, reference))

    def _root(self, name: str) -> Any:
        if name not in self._roots:
            if name not in self._references:
                raise SchemaError(f"The schema refers to {name!r}, which is not defined.")
            self._roots[name] = _load_json(self._references[name], f"The reference {name!r}")
        return self._roots[name]


def _load_json(text: str, description: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise SchemaError(f"{description} is not JSON: {error}") from error


def _single_type(names: list[Any]) -> str:
    """Returns the type besides null; "" if there are several."""
    others = [name for name in names if name != "null"]
    if sorted(map(str, others)) == ["integer", "number"]:
        return "number"
    if len(others) == 1:
        return str(others[0])
    return "null" if not others else ""


def _common_type(values: list[Any]) -> JsonKind:
    """Returns the common type of constants."""
    if values and all(isinstance(value, str) for value in values):
        return JsonScalar("string")
    if values and all(type(value) is int for value in values):
        return JsonScalar("integer")
    return ANY_JSON
