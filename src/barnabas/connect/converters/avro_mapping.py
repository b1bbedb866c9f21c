"""Avro schemas as Connect's, and back: Confluent's mapping.

What Avro cannot express is in attributes: `connect.name`, `connect.version`, `connect.doc`,
`connect.default`, `connect.parameters` and `connect.type`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from barnabas.columns.avro.types import MAX_PRECISION, without_null
from barnabas.connect.data.decimals import decimal_of, unscaled_value
from barnabas.connect.data.schema import (
    DATE,
    DECIMAL,
    NO_DEFAULT,
    SCALE,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    SchemaField,
    Type,
)
from barnabas.connect.errors import DataError, SchemaBuildError
from barnabas.schemas import json_text
from barnabas.schemas.avro.model import (
    MISSING,
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
    Properties,
)

NAMESPACE = "io.confluent.connect.avro"
DEFAULT_NAME = f"{NAMESPACE}.ConnectDefault"
UNION_NAME = f"{NAMESPACE}.Union"
MAP_ENTRY = "MapEntry"
ENUM_PARAMETER = f"{NAMESPACE}.Enum"
PRECISION_PARAMETER = "connect.decimal.precision"
FIXED_SIZE_PARAMETER = "connect.fixed.size"
DEFAULT_PRECISION = 64

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(slots=True, frozen=True)
class AvroMapping:
    """The settings of the mapping."""

    is_enhanced: bool = False
    """Whether enums stay enums, and the full names of a union's members are used."""
    has_metadata: bool = True
    """Whether attributes of Connect are written and read."""
    scrubs_names: bool = False
    """Whether characters that Avro does not allow in names are replaced by underscores."""

    # From Avro

    def connect_schema(self, schema: AvroType) -> ConnectSchema:
        """Raises DataError if Connect has no such type."""
        return self._from(schema, MISSING, None)

    def _from(self, schema: AvroType, default: object, doc: str | None) -> ConnectSchema:
        inner, is_optional = without_null(schema)
        if isinstance(schema, AvroUnion) and schema.branches[0].kind == "null":
            default = MISSING
        if isinstance(inner, AvroUnion):
            converted = self._from_union(inner)
        else:
            converted = self._named_and_documented(self._from_present(inner), inner, doc)
            if default is MISSING and self.has_metadata:
                default = _properties(inner).get("connect.default", MISSING)
        converted = replace(converted, is_optional=is_optional)
        if default is MISSING or default is None:
            return converted
        return replace(converted, default=_default_from_avro(default, converted))

    def _from_union(self, union: AvroUnion) -> ConnectSchema:
        names = [self._member_name(branch) for branch in union.branches]
        if len(set(names)) < len(names):
            names = [_full_name(branch) or branch.kind for branch in union.branches]
        fields = tuple(
            SchemaField(name, self._from(branch, MISSING, None).as_optional())
            for name, branch in zip(names, union.branches, strict=True)
        )
        return ConnectSchema(Type.STRUCT, name=UNION_NAME, fields=fields)

    def _member_name(self, branch: AvroType) -> str:
        full_name = _full_name(branch)
        if full_name is None:
            return branch.kind
        return full_name if self.is_enhanced else full_name.rpartition(".")[2]

    def _from_present(self, schema: AvroType) -> ConnectSchema:
        match schema:
            case AvroPrimitive():
                return _from_primitive(schema)
            case AvroFixed():
                size = {FIXED_SIZE_PARAMETER: str(schema.size)}
                decimal = _from_decimal(schema)
                if decimal is not None:
                    return replace(decimal, parameters={**decimal.parameters, **size})
                return ConnectSchema(Type.BYTES, parameters=size)
            case AvroEnum():
                symbols = {f"{ENUM_PARAMETER}.{symbol}": symbol for symbol in schema.symbols}
                parameters = {ENUM_PARAMETER: schema.name.full, **symbols}
                return ConnectSchema(Type.STRING, parameters=parameters)
            case AvroArray(items):
                entry, _ = without_null(items)
                if isinstance(entry, AvroRecord) and _is_map_entry(entry):
                    key, value = (self._from(field.type, MISSING, None) for field in entry.fields)
                    return ConnectSchema(Type.MAP, key_schema=key, value_schema=value)
                return ConnectSchema(Type.ARRAY, value_schema=self._from(items, MISSING, None))
            case AvroMap(values):
                return ConnectSchema(
                    Type.MAP,
                    key_schema=ConnectSchema(Type.STRING),
                    value_schema=self._from(values, MISSING, None),
                )
            case AvroRecord():
                fields = tuple(
                    SchemaField(field.name, self._from(field.type, field.default, field.doc))
                    for field in schema.fields
                )
                return ConnectSchema(Type.STRUCT, fields=fields)
            case AvroUnion():
                raise AssertionError("unions are converted before")

    def _named_and_documented(
        self, schema: ConnectSchema, avro: AvroType, doc: str | None
    ) -> ConnectSchema:
        properties = _properties(avro)
        name = schema.name or _full_name(avro)
        if self.has_metadata:
            name = _text(properties, "connect.name") or name
            doc = doc or getattr(avro, "doc", None) or _text(properties, "connect.doc")
            version = properties.get("connect.version")
            if isinstance(version, int):
                schema = replace(schema, version=version)
            parameters = properties.get("connect.parameters")
            if isinstance(parameters, Mapping):
                texts = {str(key): str(value) for key, value in parameters.items()}
                schema = replace(schema, parameters={**schema.parameters, **texts})
        else:
            doc = doc or getattr(avro, "doc", None)
        if name is not None and _DEFAULT_NAMES.fullmatch(name):
            name = None
        return replace(schema, name=name, doc=doc)

    # To Avro

    def avro_text(self, schema: ConnectSchema) -> str:
        """Returns the text of an Avro schema. Raises DataError if Avro has no such type."""
        return json_text.write(_AvroWriter(self).node(schema))


class _AvroWriter:
    """Writes one schema: a named type is written where it occurs first."""

    def __init__(self, mapping: AvroMapping) -> None:
        self._mapping = mapping
        self._named: dict[str, ConnectSchema] = {}
        self._space = ""  # the namespace of the record whose fields are written

    def node(self, schema: ConnectSchema) -> Any:
        if schema.name == UNION_NAME and schema.type is Type.STRUCT:
            branches = [
                self.node(replace(each.schema, is_optional=False)) for each in schema.fields
            ]
            return ["null", *branches] if schema.is_optional else branches
        present = self._present(schema)
        if not schema.is_optional:
            return present
        has_default = schema.has_default and schema.default is not None
        return [present, "null"] if has_default else ["null", present]

    def _present(self, schema: ConnectSchema) -> Any:
        match schema.type:
            case Type.STRUCT:
                return self._record(schema)
            case Type.STRING if self._mapping.is_enhanced and ENUM_PARAMETER in schema.parameters:
                return self._enum(schema)
            case Type.BYTES if FIXED_SIZE_PARAMETER in schema.parameters:
                return self._fixed(schema)
            case Type.ARRAY:
                assert schema.value_schema is not None
                node = {"type": "array", "items": self.node(schema.value_schema)}
            case Type.MAP:
                node = self._map(schema)
            case _:
                node = {"type": _AVRO_KINDS[schema.type]}
        node |= self._attributes(schema)
        return node["type"] if list(node) == ["type"] else node

    def _map(self, schema: ConnectSchema) -> dict[str, Any]:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        if schema.key_schema.type is Type.STRING and not schema.key_schema.is_optional:
            return {"type": "map", "values": self.node(schema.value_schema)}
        name = MAP_ENTRY if f"{NAMESPACE}.{MAP_ENTRY}" not in self._named else self._unused()
        self._named[f"{NAMESPACE}.{name}"] = schema
        properties = {"connect.internal.type": MAP_ENTRY}
        pairs = [("key", schema.key_schema), ("value", schema.value_schema)]
        entry = self._named_node("record", NAMESPACE, name) | properties
        return {"type": "array", "items": entry | self._fields(NAMESPACE, pairs)}

    def _record(self, schema: ConnectSchema) -> Any:
        namespace, name = self._name(schema)
        declared = self._declared(schema, namespace, name)
        if isinstance(declared, str):
            return declared
        node, _ = declared
        fields = self._fields(namespace, [(each.name, each.schema) for each in schema.fields])
        return node | fields | self._attributes(schema)

    def _declared(
        self, schema: ConnectSchema, namespace: str, name: str
    ) -> str | tuple[dict[str, Any], str]:
        """Returns a reference to a type that was written before, or the beginning of a new one.

        A type without a namespace cannot be referred to from within one.
        """
        known = self._named.get(f"{namespace}.{name}")
        if known is not None:
            is_same = replace(known, is_optional=schema.is_optional) == schema
            if is_same and namespace == self._space:
                return name
            if is_same and namespace:
                return f"{namespace}.{name}"
            name = self._unused(name)
        self._named[f"{namespace}.{name}"] = schema
        return self._named_node(
            "fixed" if schema.type is Type.BYTES else "record", namespace, name
        ), name

    def _named_node(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        node: dict[str, Any] = {"type": kind, "name": name}
        if namespace != self._space:
            node["namespace"] = namespace
        return node

    def _fields(self, namespace: str, fields: list[tuple[str, ConnectSchema]]) -> dict[str, Any]:
        enclosing, self._space = self._space, namespace
        nodes = [self._field(name, schema) for name, schema in fields]
        self._space = enclosing
        return {"fields": nodes}

    def _unused(self, name: str = MAP_ENTRY) -> str:
        """Returns a name for another type of the same name, which Avro does not allow."""
        taken = {each.rpartition(".")[2] for each in self._named}
        return next(each for number in range(2, 10**6) if (each := f"{name}{number}") not in taken)

    def _field(self, name: str, schema: ConnectSchema) -> dict[str, Any]:
        node: dict[str, Any] = {"name": self._scrubbed(name), "type": self.node(schema)}
        if schema.doc is not None:
            node["doc"] = schema.doc
        if schema.has_default and schema.default is not None:
            node["default"] = _default_to_avro(schema.default, schema)
        elif schema.is_optional:
            node["default"] = None
        return node

    def _enum(self, schema: ConnectSchema) -> Any:
        full_name = schema.parameters[ENUM_PARAMETER]
        namespace, _, name = full_name.rpartition(".")
        prefix = f"{ENUM_PARAMETER}."
        symbols = [key.removeprefix(prefix) for key in schema.parameters if key.startswith(prefix)]
        declared = self._declared(schema, namespace, name)
        if isinstance(declared, str):
            return declared
        return {**declared[0], "type": "enum", "symbols": symbols}

    def _fixed(self, schema: ConnectSchema) -> Any:
        size = int(schema.parameters[FIXED_SIZE_PARAMETER])
        namespace, name = self._name(schema)
        if schema.is_logical:
            namespace, name = NAMESPACE, f"Fixed{size}"
        declared = self._declared(schema, namespace, name)
        if isinstance(declared, str):
            return declared
        return {**declared[0], "size": size} | self._attributes(schema)

    def _attributes(self, schema: ConnectSchema) -> dict[str, Any]:
        node: dict[str, Any] = {}
        is_decimal = schema.name == DECIMAL and schema.type is Type.BYTES
        if is_decimal:
            node["scale"] = int(schema.parameters[SCALE])
            node["precision"] = int(schema.parameters.get(PRECISION_PARAMETER, DEFAULT_PRECISION))
        if self._mapping.has_metadata:
            if schema.doc is not None:
                node["connect.doc"] = schema.doc
            if schema.version is not None:
                node["connect.version"] = schema.version
            if schema.parameters:
                node["connect.parameters"] = dict(schema.parameters)
            if schema.has_default and schema.default is not None:
                node["connect.default"] = _default_to_avro(schema.default, schema)
            if schema.name is not None:
                node["connect.name"] = schema.name
            if schema.type in (Type.INT8, Type.INT16):
                node["connect.type"] = schema.type.value
        logical = "decimal" if is_decimal else _AVRO_LOGICAL.get((schema.name, schema.type))
        if logical is not None:
            node["logicalType"] = logical
        return node

    def _name(self, schema: ConnectSchema) -> tuple[str, str]:
        namespace, _, name = (schema.name or DEFAULT_NAME).rpartition(".")
        return ".".join(map(self._scrubbed, namespace.split("."))) if namespace else "", (
            self._scrubbed(name)
        )

    def _scrubbed(self, name: str) -> str:
        if _AVRO_NAME.fullmatch(name):
            return name
        if not self._mapping.scrubs_names:
            raise SchemaBuildError(
                f"Avro does not allow the name {name!r}: rename it, or set scrub.invalid.names."
            )
        scrubbed = re.sub(r"[^A-Za-z0-9_]", "_", name)
        return scrubbed if _AVRO_NAME.fullmatch(scrubbed) else f"x{scrubbed}"


_DEFAULT_NAMES = re.compile(re.escape(DEFAULT_NAME) + "[0-9]*")
_AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_AVRO_KINDS = {
    Type.BOOLEAN: "boolean",
    Type.INT8: "int",
    Type.INT16: "int",
    Type.INT32: "int",
    Type.INT64: "long",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_AVRO_LOGICAL: dict[tuple[str | None, Type], str] = {
    (DATE, Type.INT32): "date",
    (TIME, Type.INT32): "time-millis",
    (TIMESTAMP, Type.INT64): "timestamp-millis",
}
_CONNECT_LOGICAL = {
    ("int", "date"): ConnectSchema(Type.INT32, name=DATE, version=1),
    ("int", "time-millis"): ConnectSchema(Type.INT32, name=TIME, version=1),
    ("long", "timestamp-millis"): ConnectSchema(Type.INT64, name=TIMESTAMP, version=1),
}
_CONNECT_TYPES = {
    "boolean": Type.BOOLEAN,
    "int": Type.INT32,
    "long": Type.INT64,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "string": Type.STRING,
    "bytes": Type.BYTES,
}


def codec_schema(schema: AvroType) -> AvroType:
    """Returns the schema with only those logical types that are Connect's too.

    Decimals get as many digits as columns have: Confluent's converters declare 64 for all.
    """
    match schema:
        case AvroPrimitive(kind, properties):
            return AvroPrimitive(kind, _codec_properties(kind, properties))
        case AvroFixed(name, size, doc, aliases, properties):
            return AvroFixed(name, size, doc, aliases, _codec_properties("bytes", properties))
        case AvroArray(items, properties):
            return AvroArray(codec_schema(items), properties)
        case AvroMap(values, properties):
            return AvroMap(codec_schema(values), properties)
        case AvroUnion(branches):
            return AvroUnion(tuple(map(codec_schema, branches)))
        case AvroRecord():
            fields = [_codec_field(field) for field in schema.fields]
            return replace(schema, fields=fields)
        case AvroEnum():
            return schema


def _codec_field(field: AvroField) -> AvroField:
    return replace(field, type=codec_schema(field.type))


def _codec_properties(kind: str, properties: Properties) -> Properties:
    logical = properties.get("logicalType")
    precision = properties.get("precision")
    if logical == "decimal" and kind == "bytes" and isinstance(precision, int):
        return {**properties, "precision": MAX_PRECISION}
    return {"logicalType": logical} if (kind, logical) in _CONNECT_LOGICAL else {}


def _from_primitive(schema: AvroPrimitive) -> ConnectSchema:
    logical = schema.logical_type
    decimal = _from_decimal(schema)
    if decimal is not None:
        return decimal
    if logical is not None and (schema.kind, logical.name) in _CONNECT_LOGICAL:
        return _CONNECT_LOGICAL[schema.kind, logical.name]
    narrow = schema.properties.get("connect.type")
    if schema.kind == "int" and narrow in (Type.INT8.value, Type.INT16.value):
        return ConnectSchema(Type(str(narrow)))
    if schema.kind not in _CONNECT_TYPES:
        raise DataError(f"Connect has no type for Avro's {schema.kind} alone")
    return ConnectSchema(_CONNECT_TYPES[schema.kind])


def _from_decimal(schema: AvroPrimitive | AvroFixed) -> ConnectSchema | None:
    logical = schema.logical_type
    if logical is None or logical.name != "decimal" or schema.kind not in ("bytes", "fixed"):
        return None
    if logical.scale > MAX_PRECISION:
        raise DataError(f"A decimal of scale {logical.scale} has more digits than columns can have")
    parameters = {SCALE: str(logical.scale)}
    if logical.precision != DEFAULT_PRECISION:
        parameters[PRECISION_PARAMETER] = str(logical.precision)
    return ConnectSchema(Type.BYTES, name=DECIMAL, version=1, parameters=parameters)


def _is_map_entry(record: AvroRecord) -> bool:
    if [field.name for field in record.fields] != ["key", "value"]:
        return False
    is_named = record.name.full == f"{NAMESPACE}.{MAP_ENTRY}"
    return is_named or record.properties.get("connect.internal.type") == MAP_ENTRY


def _full_name(schema: AvroType) -> str | None:
    return schema.name.full if isinstance(schema, AvroRecord | AvroEnum | AvroFixed) else None


def _properties(schema: AvroType) -> Properties:
    return {} if isinstance(schema, AvroUnion) else schema.properties


def _text(properties: Properties, name: str) -> str | None:
    value = properties.get(name)
    return value if isinstance(value, str) else None


# Defaults


def _default_from_avro(value: Any, schema: ConnectSchema) -> Any:
    """Returns a default of Avro's JSON as the Python value that Arrow returns for the type."""
    try:
        return _value_from_json(value, schema)
    except (ValueError, TypeError, AttributeError, KeyError, OverflowError):
        return NO_DEFAULT


def _value_from_json(value: Any, schema: ConnectSchema) -> Any:
    if value is None:
        return None
    match schema.name, schema.type:
        case (name, Type.BYTES) if name == DECIMAL:
            unscaled = int.from_bytes(value.encode("latin-1"), "big", signed=True)
            return decimal_of(unscaled, int(schema.parameters[SCALE]))
        case (name, Type.INT32) if name == DATE:
            return date(1970, 1, 1) + timedelta(days=value)
        case (name, Type.INT32) if name == TIME:
            return (EPOCH + timedelta(milliseconds=value)).time()
        case (name, Type.INT64) if name == TIMESTAMP:
            return EPOCH + timedelta(milliseconds=value)
        case _, Type.BYTES:
            return value.encode("latin-1")
        case _, Type.ARRAY:
            assert schema.value_schema is not None
            return [_value_from_json(each, schema.value_schema) for each in value]
        case _, Type.MAP:
            assert schema.value_schema is not None
            return [
                (key, _value_from_json(each, schema.value_schema)) for key, each in value.items()
            ]
        case _, Type.STRUCT:
            return {
                each.name: _value_from_json(value.get(each.name), each.schema)
                for each in schema.fields
            }
        case _, Type.FLOAT32 | Type.FLOAT64:
            return float(value)
        case _:
            return value


def _default_to_avro(value: Any, schema: ConnectSchema) -> Any:
    if value is None:
        return None
    match schema.name, schema.type:
        case (name, Type.BYTES) if name == DECIMAL:
            unscaled = unscaled_value(Decimal(value), int(schema.parameters[SCALE]))
            size = (unscaled.bit_length() + 8) // 8
            return unscaled.to_bytes(size, "big", signed=True).decode("latin-1")
        case (name, Type.INT32) if name == DATE:
            return (value - date(1970, 1, 1)).days
        case (name, Type.INT32) if name == TIME:
            assert isinstance(value, time)
            whole = (value.hour * 60 + value.minute) * 60 + value.second
            return whole * 1000 + value.microsecond // 1000
        case (name, Type.INT64) if name == TIMESTAMP:
            return (value - EPOCH) // timedelta(milliseconds=1)
        case _, Type.BYTES:
            return bytes(value).decode("latin-1")
        case _, Type.ARRAY:
            assert schema.value_schema is not None
            return [_default_to_avro(each, schema.value_schema) for each in value]
        case _, Type.MAP:
            assert schema.value_schema is not None
            entries = value.items() if isinstance(value, Mapping) else value
            return {key: _default_to_avro(each, schema.value_schema) for key, each in entries}
        case _, Type.STRUCT:
            return {
                each.name: _default_to_avro(value.get(each.name), each.schema)
                for each in schema.fields
            }
        case _:
            return value
