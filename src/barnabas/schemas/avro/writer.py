"""Writes Avro schemas as JSON text, in the form in which Avro in Java writes them."""

from collections.abc import Iterable
from typing import Final

from barnabas.schemas import json_text
from barnabas.schemas.avro.model import (
    MISSING,
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroName,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
    NamedAvroType,
    Properties,
)


def write_schema(schema: AvroType, known: Iterable[str], *, normalize: bool) -> str:
    """Writes types in `known` by name, and all others where they occur first.

    A normalized text has its properties and aliases sorted, and no empty docs.
    """
    return json_text.write(_Writer(known, normalize=normalize).node(schema, ""))


class _Writer:
    def __init__(self, known: Iterable[str], *, normalize: bool) -> None:
        self._written = set(known)
        self._normalize = normalize

    def node(self, schema: AvroType, space: str) -> object:
        match schema:
            case AvroPrimitive():
                if not schema.properties:
                    return schema.kind
                return {"type": schema.kind, **self._properties(schema)}
            case AvroArray():
                items = self.node(schema.items, space)
                return {"type": "array", "items": items, **self._properties(schema)}
            case AvroMap():
                values = self.node(schema.values, space)
                return {"type": "map", "values": values, **self._properties(schema)}
            case AvroUnion():
                return [self.node(branch, space) for branch in schema.branches]
            case _:
                return self._named(schema, space)

    def _named(self, schema: NamedAvroType, space: str) -> object:
        if schema.name.full in self._written:
            return schema.name.relative_to(space)
        self._written.add(schema.name.full)
        node: dict[str, object] = {"type": schema.kind, "name": schema.name.simple}
        if schema.name.namespace != space:
            node["namespace"] = schema.name.namespace
        if schema.doc or (schema.doc is not None and not self._normalize):
            node["doc"] = schema.doc
        match schema:
            case AvroRecord():
                node["type"] = "error" if schema.is_error and not self._normalize else "record"
                node["fields"] = [
                    self._field(field, schema.name.namespace) for field in schema.fields
                ]
            case AvroEnum():
                node["symbols"] = schema.symbols
                if schema.default is not None:
                    node["default"] = schema.default
            case AvroFixed():
                node["size"] = schema.size
        node |= self._properties(schema)
        if schema.aliases:
            node["aliases"] = self._aliases(schema.aliases, schema.name.namespace)
        return node

    def _field(self, field: AvroField, space: str) -> object:
        node: dict[str, object] = {"name": field.name, "type": self.node(field.type, space)}
        if field.doc is not None:
            node["doc"] = field.doc
        if field.default is not MISSING:
            default = field.default
            node["default"] = json_text.ordered(default) if self._normalize else default
        if field.order != "ascending":
            node["order"] = field.order
        if field.aliases:
            node["aliases"] = sorted(field.aliases) if self._normalize else field.aliases
        properties = field.properties
        return node | (_in_order(properties, []) if self._normalize else properties)

    def _aliases(self, aliases: tuple[AvroName, ...], space: str) -> list[str]:
        ordered = sorted(aliases, key=lambda alias: alias.full) if self._normalize else aliases
        return [alias.relative_to(space) for alias in ordered]

    def _properties(
        self, schema: AvroPrimitive | AvroArray | AvroMap | NamedAvroType
    ) -> Properties:
        if not self._normalize:
            return schema.properties
        return _in_order(schema.properties, _logical_first(schema))


_LOGICAL_TYPES: Final = {
    "decimal": ("bytes", "fixed"),
    "big-decimal": ("bytes",),
    "uuid": ("string", "fixed"),
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "duration": ("fixed",),
}


def _logical_first(schema: AvroPrimitive | AvroArray | AvroMap | NamedAvroType) -> list[str]:
    """A logical type that its type supports precedes the other properties."""
    logical_type = schema.properties.get("logicalType")
    if not isinstance(logical_type, str) or schema.kind not in _LOGICAL_TYPES.get(logical_type, ()):
        return []
    if logical_type != "decimal":
        return ["logicalType"]
    return ["logicalType", "precision", *(["scale"] if schema.properties.get("scale") else [])]


def _in_order(properties: Properties, first: list[str]) -> Properties:
    names = [name for name in first if name in properties]
    names += sorted(name for name in properties if name not in first)
    return {name: json_text.ordered(properties[name]) for name in names}
