"""An Avro schema as it was read: names resolved, and everything kept that its text carries.

fastavro's parsed form is made for encoding: it forgets which namespaces were written and takes
what Avro forbids. The registry gives schemas back, so it keeps them whole.
"""

from dataclasses import dataclass, field
from typing import Final

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
COMPLEX: Final = ("record", "error", "enum", "array", "map", "fixed")

Properties = dict[str, object]
"""Attributes that Avro does not define, logical types among them, in the order they came."""


class Missing:
    """The default of a field that has none (None is the default null)."""


MISSING: Final = Missing()


@dataclass(slots=True, frozen=True)
class Name:
    simple: str
    space: str

    @property
    def full(self) -> str:
        return f"{self.space}.{self.simple}" if self.space else self.simple

    def seen_from(self, space: str) -> str:
        """The shortest way to say it inside a namespace."""
        hidden = self.simple in PRIMITIVES or self.simple in COMPLEX
        return self.simple if self.space == space and not hidden else self.full


@dataclass(slots=True, frozen=True, eq=False)
class Primitive:
    kind: str
    properties: Properties


@dataclass(slots=True, frozen=True, eq=False)
class Array:
    items: "AvroType"
    properties: Properties
    kind: str = "array"


@dataclass(slots=True, frozen=True, eq=False)
class Map:
    values: "AvroType"
    properties: Properties
    kind: str = "map"


@dataclass(slots=True, frozen=True, eq=False)
class Union:
    branches: tuple["AvroType", ...]
    kind: str = "union"


@dataclass(slots=True, frozen=True, eq=False)
class Fixed:
    name: Name
    size: int
    doc: str | None
    aliases: tuple[Name, ...]
    properties: Properties
    kind: str = "fixed"


@dataclass(slots=True, frozen=True, eq=False)
class Enum:
    name: Name
    symbols: tuple[str, ...]
    default: str | None
    doc: str | None
    aliases: tuple[Name, ...]
    properties: Properties
    kind: str = "enum"


@dataclass(slots=True, frozen=True, eq=False)
class Field:
    name: str
    type: "AvroType"
    default: object
    doc: str | None
    order: str
    aliases: tuple[str, ...]
    properties: Properties


@dataclass(slots=True, frozen=True, eq=False)
class Record:
    name: Name
    doc: str | None
    aliases: tuple[Name, ...]
    properties: Properties
    is_error: bool
    fields: list[Field] = field(default_factory=list)
    """Filled while they are read: they may speak of the record itself."""
    kind: str = "record"


AvroType = Primitive | Array | Map | Union | Fixed | Enum | Record
Named = Fixed | Enum | Record
