"""Parses Avro schemas from JSON. Errors name the record and field.

A name may be used before its definition, as in Avro since 1.12. Invalid names and defaults are
accepted here, because registered schemas may have them: `validation` rejects them in new ones.
"""

from collections.abc import Iterable, Mapping
from typing import Final, cast

from barnabas.schemas import SchemaError, json_text
from barnabas.schemas.avro.model import (
    COMPLEX,
    MISSING,
    PRIMITIVES,
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
from barnabas.schemas.bounds import WalkBounds

Attributes = Mapping[str, object]


def parse_stored_schema(text: str, references: Mapping[str, str]) -> AvroType:
    """Parses a schema that any registry may have accepted, less strictly than `schemas.parse`."""
    if text.strip() in PRIMITIVES:
        return AvroPrimitive(text.strip())
    parser = AvroParser(references, accepts_nested_types=True)
    parser.parse_references()
    return parser.parse(text)


class AvroParser:
    """Parses texts that may use each other's names. References are parsed when first used."""

    def __init__(
        self, references: Mapping[str, str], *, accepts_nested_types: bool = False
    ) -> None:
        """`accepts_nested_types` reads {"type": {"type": ...}}, which Avro in Java rejects."""
        self._accepts_nested_types = accepts_nested_types
        self.named: dict[str, NamedAvroType] = {}
        self._parsed_nodes: dict[int, NamedAvroType] = {}  # by the id() of the defining node
        self._unparsed_references = dict(references)
        self._unsearched: list[object] = []  # documents with definitions after their uses
        self._definitions: dict[str, tuple[Attributes, str]] = {}
        self._bounds = WalkBounds("read it")

    def parse_references(self) -> None:
        while self._unparsed_references:
            self._parse_reference(next(iter(self._unparsed_references)))

    def parse(self, text: str) -> AvroType:
        document = json_text.read(text)
        self._unsearched.append(document)
        return self._type(document, "", "the schema")

    def _parse_reference(self, name: str) -> None:
        text = self._unparsed_references.pop(name)
        try:
            self.parse(text)
        except SchemaError as error:
            raise SchemaError(f"In the reference {name}: {error}") from error

    def _type(self, node: object, namespace: str, location: str) -> AvroType:
        with self._bounds.level():
            match node:
                case str():
                    return self._by_name(node, namespace, location)
                case list():
                    return self._union(node, namespace, location)
                case dict():
                    return self._described(node, namespace, location)
                case _:
                    raise SchemaError(
                        f"The type of {location} is {json_text.kind(node)}, no schema"
                    )

    def _by_name(self, name: str, namespace: str, location: str) -> AvroType:
        if name in PRIMITIVES:
            return AvroPrimitive(name, {})
        candidates = [name] if "." in name or not namespace else [f"{namespace}.{name}", name]
        for full_name in candidates:
            if full_name not in self.named and full_name in self._unparsed_references:
                self._parse_reference(full_name)
            if full_name in self.named:
                return self.named[full_name]
            if (definition := self._find_later_definition(full_name)) is not None:
                return self._described(*definition, location)
        raise SchemaError(
            f"The type of {location} is {name}, which is neither a primitive type"
            " nor defined in the schema nor in a reference"
        )

    def _find_later_definition(self, full_name: str) -> tuple[Attributes, str] | None:
        while self._unsearched:
            self._definitions |= _definitions(self._unsearched.pop())
        return self._definitions.get(full_name)

    def _union(self, nodes: list[object], namespace: str, location: str) -> AvroUnion:
        branches = tuple(self._type(node, namespace, location) for node in nodes)
        labels: set[str] = set()
        for branch in branches:
            if isinstance(branch, AvroUnion):
                raise SchemaError(f"The union of {location} holds another union")
            label = branch.name.full if isinstance(branch, NamedAvroType) else branch.kind
            if label in labels:
                raise SchemaError(f"The union of {location} has {label} twice")
            labels.add(label)
        return AvroUnion(branches)

    def _described(self, node: Attributes, namespace: str, location: str) -> AvroType:
        if id(node) in self._parsed_nodes:
            return self._parsed_nodes[id(node)]
        match node.get("type"):
            case str(kind) if kind in PRIMITIVES:
                return AvroPrimitive(kind, _properties(node, _TYPE_ATTRIBUTES))
            case "record" | "error":
                return self._record(node, namespace, location)
            case "enum":
                return self._enum(node, namespace, location)
            case "fixed":
                return self._fixed(node, namespace, location)
            case "array":
                items = self._type(
                    _required(node, "items", f"The array of {location}"), namespace, location
                )
                return AvroArray(items, _properties(node, _TYPE_ATTRIBUTES))
            case "map":
                values = self._type(
                    _required(node, "values", f"The map of {location}"), namespace, location
                )
                return AvroMap(values, _properties(node, _TYPE_ATTRIBUTES))
            case str(name):
                return self._by_name(name, namespace, location)
            case None:
                raise SchemaError(f"The schema of {location} has no type")
            case dict() | list() as nested if self._accepts_nested_types:
                return self._type(nested, namespace, location)
            case other:
                raise SchemaError(
                    f'The "type" of {location} is {json_text.kind(other)} where it must name'
                    f" a primitive type or one of {', '.join(COMPLEX)}"
                )

    def _record(self, node: Attributes, namespace: str, location: str) -> AvroRecord:
        name = _name(node, namespace, location)
        record = AvroRecord(
            name,
            _text(node, "doc"),
            _type_aliases(node, name),
            _properties(node, _TYPE_ATTRIBUTES),
            node["type"] == "error",
        )
        self._define(node, record)
        fields = _required(node, "fields", f"The record {name.full}")
        if not isinstance(fields, list):
            raise SchemaError(f"The fields of the record {name.full} are no array")
        names: set[str] = set()
        for attributes in fields:
            field = self._field(attributes, record)
            if field.name in names:
                raise SchemaError(f"The record {name.full} has two fields called {field.name}")
            names.add(field.name)
            record.fields.append(field)
        return record

    def _field(self, node: object, record: AvroRecord) -> AvroField:
        owner = record.name.full
        if not isinstance(node, dict):
            raise SchemaError(f"A field of the record {owner} is {json_text.kind(node)}, no object")
        name = node.get("name")
        if not isinstance(name, str):
            raise SchemaError(f"A field of the record {owner} has no name")
        location = f"the field {owner}.{name}"
        type_ = self._type(
            _required(node, "type", f"T{location[1:]}"), record.name.namespace, location
        )
        order = node.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise SchemaError(f"The order of {location} is none of {', '.join(_ORDERS)}")
        return AvroField(
            name,
            type_,
            _number_from_text(node.get("default", MISSING), type_, location),
            _text(node, "doc"),
            order.lower(),
            _aliases(node, location),
            _properties(node, _FIELD_ATTRIBUTES),
        )

    def _enum(self, node: Attributes, namespace: str, location: str) -> AvroEnum:
        name = _name(node, namespace, location)
        symbols = _required(node, "symbols", f"The enum {name.full}")
        if not isinstance(symbols, list) or not all(isinstance(item, str) for item in symbols):
            raise SchemaError(f"The symbols of the enum {name.full} are no array of strings")
        names: set[str] = set()
        for symbol in symbols:
            if symbol in names:
                raise SchemaError(f"The enum {name.full} has the symbol {symbol} twice")
            names.add(symbol)
        default = node.get("default")
        if default is not None and default not in symbols:
            raise SchemaError(
                f"The default of the enum {name.full} is {json_text.write(default)},"
                " none of its symbols"
            )
        enum = AvroEnum(
            name,
            tuple(symbols),
            cast("str | None", default),
            _text(node, "doc"),
            _type_aliases(node, name),
            _properties(node, _TYPE_ATTRIBUTES | {"default"}),
        )
        self._define(node, enum)
        return enum

    def _fixed(self, node: Attributes, namespace: str, location: str) -> AvroFixed:
        name = _name(node, namespace, location)
        size = _required(node, "size", f"The fixed {name.full}")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 2**31:
            raise SchemaError(f"The size of the fixed {name.full} is no number of bytes")
        fixed = AvroFixed(
            name,
            size,
            _text(node, "doc"),
            _type_aliases(node, name),
            _properties(node, _TYPE_ATTRIBUTES),
        )
        self._define(node, fixed)
        return fixed

    def _define(self, node: Attributes, defined: NamedAvroType) -> None:
        if defined.name.full in self.named:
            raise SchemaError(f"The name {defined.name.full} is defined twice")
        self.named[defined.name.full] = self._parsed_nodes[id(node)] = defined


_TYPE_ATTRIBUTES: Final = frozenset(
    ["doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"]
)
_FIELD_ATTRIBUTES: Final = frozenset(["default", "doc", "name", "order", "type", "aliases"])
_ORDERS: Final = ("ascending", "descending", "ignore")
_NAMED_KINDS: Final = ("record", "error", "enum", "fixed")


def _definitions(document: object) -> dict[str, tuple[Attributes, str]]:
    """Returns all named definitions of a document, with their enclosing namespaces."""
    definitions: dict[str, tuple[Attributes, str]] = {}
    pending: list[tuple[object, str]] = [(document, "")]
    while pending:
        node, namespace = pending.pop()
        if isinstance(node, list):
            pending += [(branch, namespace) for branch in node]
        if not isinstance(node, dict):
            continue
        pending += [(node.get("items"), namespace), (node.get("values"), namespace)]
        if isinstance(node.get("name"), str) and node.get("type") in _NAMED_KINDS:
            name = _name(node, namespace, "the schema")
            definitions.setdefault(name.full, (node, namespace))
            fields = node.get("fields")
            for field in fields if isinstance(fields, list) else ():
                if isinstance(field, dict):
                    pending.append((field.get("type"), name.namespace))
    return definitions


def _name(node: Attributes, namespace: str, location: str) -> AvroName:
    written = node.get("name")
    if not isinstance(written, str):
        raise SchemaError(f"The {node['type']} of {location} has no name")
    explicit = _text(node, "namespace")
    name = _qualified(written, namespace if explicit is None else explicit)
    if name.full in PRIMITIVES:
        raise SchemaError(
            f"The {node['type']} of {location} is named after a primitive: {name.full}"
        )
    return name


def _qualified(written: str, namespace: str) -> AvroName:
    before, dot, simple = written.rpartition(".")
    return AvroName(simple, before if dot else namespace)


def _type_aliases(node: Attributes, name: AvroName) -> tuple[AvroName, ...]:
    aliases = _aliases(node, f"the {node['type']} {name.full}")
    return tuple(_qualified(alias, name.namespace) for alias in aliases)


def _aliases(node: Attributes, location: str) -> tuple[str, ...]:
    aliases = node.get("aliases", [])
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise SchemaError(f"The aliases of {location} are no array of strings")
    return tuple(dict.fromkeys(aliases))


def _required(node: Attributes, attribute: str, location: str) -> object:
    if attribute not in node:
        raise SchemaError(f"{location} has no {attribute}")
    return node[attribute]


def _text(node: Attributes, attribute: str) -> str | None:
    value = node.get(attribute)
    return value if isinstance(value, str) else None


def _properties(node: Attributes, defined: Iterable[str]) -> Properties:
    return {key: value for key, value in node.items() if key not in defined}


def _number_from_text(default: object, type_: AvroType, location: str) -> object:
    """Avro in Java accepts "1.5" as the default of a float or double."""
    if not isinstance(default, str) or type_.kind not in ("float", "double"):
        return default
    try:
        return float(default)
    except ValueError:
        raise SchemaError(f"Invalid default for {location}: {default!r} is no number") from None
