"""The model of an Avro schema: names are resolved, and everything that its text has is kept.

The registry compares and writes schemas with it, and columns derive their decoding plan from it.
fastavro's parsed form is made for encoding: it drops written namespaces, which the registry has to
return, and accepts schemas that Avro forbids.
"""

from dataclasses import dataclass, field
from typing import Final

PRIMITIVES: Final = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
COMPLEX: Final = ("record", "error", "enum", "array", "map", "fixed")

Properties = dict[str, object]
"""Attributes that are not part of Avro's type syntax, such as logical types, in their order."""


class MissingDefault:
    """The default of a field that has none (None is the default null)."""


MISSING: Final = MissingDefault()


@dataclass(slots=True, frozen=True)
class AvroName:
    simple: str
    namespace: str

    @property
    def full(self) -> str:
        return f"{self.namespace}.{self.simple}" if self.namespace else self.simple

    def relative_to(self, space: str) -> str:
        """Returns the shortest name that means the same inside a namespace."""
        hidden = self.simple in PRIMITIVES or self.simple in COMPLEX
        return self.simple if self.namespace == space and not hidden else self.full


@dataclass(slots=True, frozen=True)
class LogicalType:
    """`precision` and `scale` are those of a decimal."""

    name: str
    precision: int = 0
    scale: int = 0


@dataclass(slots=True, frozen=True, eq=False)
class AvroPrimitive:
    kind: str
    properties: Properties = field(default_factory=dict)

    @property
    def logical_type(self) -> LogicalType | None:
        return _logical_type(self.properties)


@dataclass(slots=True, frozen=True, eq=False)
class AvroArray:
    items: "AvroType"
    properties: Properties
    kind: str = "array"


@dataclass(slots=True, frozen=True, eq=False)
class AvroMap:
    values: "AvroType"
    properties: Properties
    kind: str = "map"


@dataclass(slots=True, frozen=True, eq=False)
class AvroUnion:
    branches: tuple["AvroType", ...]
    kind: str = "union"


@dataclass(slots=True, frozen=True, eq=False)
class AvroFixed:
    name: AvroName
    size: int
    doc: str | None
    aliases: tuple[AvroName, ...]
    properties: Properties
    kind: str = "fixed"

    @property
    def logical_type(self) -> LogicalType | None:
        return _logical_type(self.properties)


@dataclass(slots=True, frozen=True, eq=False)
class AvroEnum:
    name: AvroName
    symbols: tuple[str, ...]
    default: str | None
    doc: str | None
    aliases: tuple[AvroName, ...]
    properties: Properties
    kind: str = "enum"


@dataclass(slots=True, frozen=True, eq=False)
class AvroField:
    name: str
    type: "AvroType"
    default: object
    doc: str | None
    order: str
    aliases: tuple[str, ...]
    properties: Properties


@dataclass(slots=True, frozen=True, eq=False)
class AvroRecord:
    name: AvroName
    doc: str | None
    aliases: tuple[AvroName, ...]
    properties: Properties
    is_error: bool
    fields: list[AvroField] = field(default_factory=list)
    """Appended while they are parsed, because they may refer to the record itself."""
    kind: str = "record"


AvroType = AvroPrimitive | AvroArray | AvroMap | AvroUnion | AvroFixed | AvroEnum | AvroRecord
NamedAvroType = AvroFixed | AvroEnum | AvroRecord


def inner_types(schema: AvroType) -> list[AvroType]:
    """Returns the types of fields, branches, items or values."""
    match schema:
        case AvroRecord(fields=fields):
            return [field.type for field in fields]
        case AvroUnion(branches):
            return list(branches)
        case AvroArray(inner) | AvroMap(inner):
            return [inner]
    return []


def _logical_type(properties: Properties) -> LogicalType | None:
    """Returns None for a malformed one as well: Avro then reads the underlying type."""
    name = properties.get("logicalType")
    if not isinstance(name, str):
        return None
    if name != "decimal":
        return LogicalType(name)
    precision, scale = properties.get("precision"), properties.get("scale", 0)
    if not isinstance(precision, int) or not isinstance(scale, int):
        return None
    return (
        LogicalType(name, precision, scale) if 0 <= scale <= precision and precision > 0 else None
    )
