"""Avro schemas as trees of values: names are looked up, and every type stands where it is used.

`formats.avro` reads schemas strictly, to decide what may be registered, and keeps all of their
text. Here is read what any registry has let in, namespaces with hyphens and all, and kept is what
decides about columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from barnabas.schemas import SchemaError
from barnabas.schemas.avro.model import PRIMITIVES

MAX_DEPTH = 64
"""Of types within types: beyond it Spark, too, gives up."""
MAX_TYPES = 5000
"""A few records that contain each other twice would be more than fit in any memory."""


@dataclass(slots=True, frozen=True)
class Logical:
    name: str
    precision: int = 0
    scale: int = 0


@dataclass(slots=True, frozen=True)
class Primitive:
    kind: str
    logical: Logical | None = None


@dataclass(slots=True, frozen=True)
class Fixed:
    name: str
    size: int
    logical: Logical | None = None
    kind: str = "fixed"


@dataclass(slots=True, frozen=True)
class Enum:
    name: str
    symbols: tuple[str, ...]
    default: str | None
    kind: str = "enum"


@dataclass(slots=True, frozen=True)
class Array:
    items: Shape
    kind: str = "array"


@dataclass(slots=True, frozen=True)
class Map:
    values: Shape
    kind: str = "map"


@dataclass(slots=True, frozen=True)
class Union:
    members: tuple[Shape, ...]
    kind: str = "union"


@dataclass(slots=True, frozen=True)
class Field:
    name: str
    shape: Shape
    aliases: tuple[str, ...]
    has_default: bool
    default: Any
    """As JSON has it."""


@dataclass(slots=True, frozen=True)
class Record:
    name: str
    fields: tuple[Field, ...]
    kind: str = "record"


@dataclass(slots=True, frozen=True)
class Again:
    """A record within itself: the one of that name."""

    name: str
    kind: str = "record"


Shape: TypeAlias = Primitive | Fixed | Enum | Array | Map | Union | Record | Again
MAP_KEY = Primitive("string")


@dataclass(slots=True, frozen=True)
class Written:
    """What a schema writes, which may be more than fits columns."""

    shape: Shape
    records: Mapping[str, Shape]
    """By their names, for those that are within themselves."""


def parse(text: str, references: Mapping[str, str]) -> Shape:
    """SchemaError where the text is no Avro schema, or one whose values fit no column."""
    parser = _Parser(references)
    shape = parser.parse(text)
    for name in parser.within_themselves:
        raise SchemaError(f"Record {name} contains itself, which no column can.")
    if _size(shape, {}) > MAX_TYPES:
        raise SchemaError(f"The schema is more than {MAX_TYPES} types, each where it is used.")
    return shape


def parse_written(text: str, references: Mapping[str, str]) -> Written:
    """SchemaError where the text is no Avro schema."""
    parser = _Parser(references)
    shape = parser.parse(text)
    return Written(shape, {name: parser.named[name] for name in parser.within_themselves})


def is_null(shape: Shape) -> bool:
    return shape.kind == "null"


class _Parser:
    def __init__(self, references: Mapping[str, str]) -> None:
        self.named: dict[str, Shape] = {}
        self.within_themselves: set[str] = set()
        self._references = references
        self._open: list[str] = []
        """The names that are being defined, or looked up: the outermost first."""
        self._depth = 0

    def parse(self, text: str) -> Shape:
        try:
            declared = json.loads(text)
        except ValueError as error:
            if text.strip() in PRIMITIVES:
                return Primitive(text.strip())
            raise SchemaError(f"The Avro schema is not JSON: {error}") from error
        return self._shape(declared, "")

    def _shape(self, declared: Any, namespace: str) -> Shape:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SchemaError(f"The schema nests types more than {MAX_DEPTH} deep.")
        try:
            match declared:
                case str():
                    return self._by_name(declared, namespace)
                case list():
                    return self._union(declared, namespace)
                case {"type": "record" | "error"}:
                    return self._record(declared, namespace)
                case {"type": "enum"}:
                    return self._enum(declared, namespace)
                case {"type": "fixed"}:
                    return self._fixed(declared, namespace)
                case {"type": "array", "items": items}:
                    return Array(self._shape(items, namespace))
                case {"type": "map", "values": values}:
                    return Map(self._shape(values, namespace))
                case {"type": str(kind)} if kind in PRIMITIVES:
                    return Primitive(kind, _logical(declared))
                case {"type": inner}:
                    return self._shape(inner, namespace)
            raise SchemaError(f"{json.dumps(declared)[:80]} is no Avro type.")
        finally:
            self._depth -= 1

    def _by_name(self, name: str, namespace: str) -> Shape:
        if name in PRIMITIVES:
            return Primitive(name)
        full = _full_name(name, namespace)
        if full in self._open:
            self.within_themselves.add(full)
            return Again(full)
        if full not in self.named and name not in self.named:
            self._look_into_references(full)
        shape = self.named.get(full) or self.named.get(name)
        if shape is None:
            raise SchemaError(f"The schema refers to {full}, which is not defined.")
        return shape

    def _look_into_references(self, full: str) -> None:
        """Reads the text that is called so; where none is, all that were not read yet."""
        names = [full] if full in self._references else list(self._references)
        for name in names:
            if full not in self.named and name not in self._open:
                try:
                    declared = json.loads(self._references[name])
                except ValueError as error:
                    raise SchemaError(f"The reference {name!r} is not JSON: {error}") from error
                self._shape(declared, "")

    def _union(self, members: list[Any], namespace: str) -> Shape:
        shapes = tuple(self._shape(member, namespace) for member in members)
        if not shapes:
            raise SchemaError("A union has no members.")
        return Union(shapes)

    def _record(self, declared: dict[str, Any], namespace: str) -> Shape:
        name = _defined_name(declared, namespace)
        inner = name.rpartition(".")[0]
        self._open.append(name)
        fields = tuple(self._field(field, name, inner) for field in declared.get("fields") or [])
        self._open.pop()
        if len({field.name for field in fields}) < len(fields):
            raise SchemaError(f"Record {name} has two fields of one name.")
        return self._define(name, Record(name, fields))

    def _field(self, declared: Any, record: str, namespace: str) -> Field:
        match declared:
            case {"name": str(name), "type": kind}:
                return Field(
                    name,
                    self._shape(kind, namespace),
                    tuple(declared.get("aliases") or ()),
                    "default" in declared,
                    declared.get("default"),
                )
        raise SchemaError(f"A field of record {record} has no name or no type.")

    def _enum(self, declared: dict[str, Any], namespace: str) -> Shape:
        name = _defined_name(declared, namespace)
        symbols = declared.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(each, str) for each in symbols):
            raise SchemaError(f"Enum {name} has no list of symbols.")
        return self._define(name, Enum(name, tuple(symbols), declared.get("default")))

    def _fixed(self, declared: dict[str, Any], namespace: str) -> Shape:
        name = _defined_name(declared, namespace)
        size = declared.get("size")
        if not isinstance(size, int) or size < 0:
            raise SchemaError(f"Fixed {name} has no size.")
        return self._define(name, Fixed(name, size, _logical(declared)))

    def _define(self, name: str, shape: Shape) -> Shape:
        self.named[name] = shape
        return shape


def _size(shape: Shape, known: dict[int, int]) -> int:
    """How many types it is of, when each stands where it is used; `known` are those of objects."""
    match shape:
        case Record(_, fields):
            parts = tuple(field.shape for field in fields)
        case Union(members):
            parts = members
        case Array(inner) | Map(inner):
            parts = (inner,)
        case _:
            return 1
    if id(shape) not in known:
        known[id(shape)] = 1 + sum(_size(part, known) for part in parts)
    return known[id(shape)]


def _logical(declared: dict[str, Any]) -> Logical | None:
    """None where there is none, or one that is not well formed: Avro then leaves the type as is."""
    name = declared.get("logicalType")
    if not isinstance(name, str):
        return None
    if name != "decimal":
        return Logical(name)
    precision, scale = declared.get("precision"), declared.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int):
        return None
    return Logical(name, precision, scale) if 0 <= scale <= precision and precision > 0 else None


def _defined_name(declared: dict[str, Any], namespace: str) -> str:
    name = declared.get("name")
    if not isinstance(name, str) or not name:
        raise SchemaError(f"{json.dumps(declared)[:80]} has no name.")
    return _full_name(name, declared.get("namespace", namespace) or "")


def _full_name(name: str, namespace: str) -> str:
    return name if "." in name or not namespace else f"{namespace}.{name}"
