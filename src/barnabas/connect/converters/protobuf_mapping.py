"""Protobuf messages as Connect's schemas, and back: Confluent's mapping.

Fields are optional, as Protobuf has no required ones, unless they are required in proto2. Google's
wrappers are their values. `confluent.field_meta` has what Protobuf cannot express.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.descriptor_pb2 import DESCRIPTOR
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from barnabas.connect.data.schema import (
    DATE,
    DECIMAL,
    SCALE,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    SchemaField,
    Type,
)
from barnabas.connect.errors import DataError, SchemaBuildError
from barnabas.schemas.protobuf.descriptor_options import META_FILE
from barnabas.schemas.protobuf.printer import quote

NAMESPACE = "io.confluent.connect.protobuf"
TAG_PARAMETER = f"{NAMESPACE}.Tag"
ENUM_PARAMETER = f"{NAMESPACE}.Enum"
UNION_PREFIX = f"{NAMESPACE}.Union."
DEFAULT_NAME = "ConnectDefault"
CONNECT_TYPE = "connect.type"
DEFAULT_PRECISION = "64"

_DATE_MESSAGE = "google.type.Date"
_TIME_MESSAGE = "google.type.TimeOfDay"
_TIMESTAMP_MESSAGE = "google.protobuf.Timestamp"
_DECIMAL_MESSAGE = "confluent.type.Decimal"

_IMPORTS = {
    _DATE_MESSAGE: "google/type/date.proto",
    _TIME_MESSAGE: "google/type/timeofday.proto",
    _TIMESTAMP_MESSAGE: "google/protobuf/timestamp.proto",
    _DECIMAL_MESSAGE: "confluent/type/decimal.proto",
}
_META = "confluent/meta.proto"

_LOGICAL_MESSAGES = {
    _DATE_MESSAGE: ConnectSchema(Type.INT32, name=DATE, version=1),
    _TIME_MESSAGE: ConnectSchema(Type.INT32, name=TIME, version=1),
    _TIMESTAMP_MESSAGE: ConnectSchema(Type.INT64, name=TIMESTAMP, version=1),
}
_WRAPPERS = {
    "google.protobuf.DoubleValue": Type.FLOAT64,
    "google.protobuf.FloatValue": Type.FLOAT32,
    "google.protobuf.Int64Value": Type.INT64,
    "google.protobuf.UInt64Value": Type.INT64,
    "google.protobuf.Int32Value": Type.INT32,
    "google.protobuf.UInt32Value": Type.INT64,
    "google.protobuf.BoolValue": Type.BOOLEAN,
    "google.protobuf.StringValue": Type.STRING,
    "google.protobuf.BytesValue": Type.BYTES,
}
_SCALARS = {
    FieldDescriptor.TYPE_DOUBLE: Type.FLOAT64,
    FieldDescriptor.TYPE_FLOAT: Type.FLOAT32,
    FieldDescriptor.TYPE_INT64: Type.INT64,
    FieldDescriptor.TYPE_UINT64: Type.INT64,
    FieldDescriptor.TYPE_INT32: Type.INT32,
    FieldDescriptor.TYPE_FIXED64: Type.INT64,
    FieldDescriptor.TYPE_FIXED32: Type.INT64,
    FieldDescriptor.TYPE_BOOL: Type.BOOLEAN,
    FieldDescriptor.TYPE_STRING: Type.STRING,
    FieldDescriptor.TYPE_BYTES: Type.BYTES,
    FieldDescriptor.TYPE_UINT32: Type.INT64,
    FieldDescriptor.TYPE_SFIXED32: Type.INT32,
    FieldDescriptor.TYPE_SFIXED64: Type.INT64,
    FieldDescriptor.TYPE_SINT32: Type.INT32,
    FieldDescriptor.TYPE_SINT64: Type.INT64,
}
_PROTO_TYPES = {
    Type.INT8: "int32",
    Type.INT16: "int32",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float",
    Type.FLOAT64: "double",
    Type.BOOLEAN: "bool",
    Type.STRING: "string",
    Type.BYTES: "bytes",
}
_KEY_TYPES = ("int32", "int64", "bool", "string")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(slots=True, frozen=True)
class ProtobufMapping:
    """The settings of the mapping."""

    is_enhanced: bool = False
    """Whether schemas have the full names of messages."""
    flattens_unions: bool = False
    """Whether the fields of a oneof are fields of the message, and not of a struct in it."""
    scrubs_names: bool = False
    has_optional_fields: bool = True
    """Whether fields are declared optional, so that null differs from zero."""

    # From Protobuf

    def connect_schema(self, message: Descriptor) -> ConnectSchema:
        return self._message(message, ())

    def _message(self, message: Descriptor, outer: tuple[str, ...]) -> ConnectSchema:
        within = (*outer, str(message.full_name))
        fields = [
            SchemaField(
                name,
                self._union(part, within)
                if isinstance(part, OneofDescriptor)
                else self._field(part, within),
            )
            for name, part in parts_of(message, flattens_unions=self.flattens_unions)
        ]
        name = str(message.full_name if self.is_enhanced else message.name)
        if re.fullmatch(f"(.*[.])?{DEFAULT_NAME}[0-9]*", name):
            return ConnectSchema(Type.STRUCT, fields=tuple(fields))
        return ConnectSchema(Type.STRUCT, name=name, fields=tuple(fields))

    def _union(self, oneof: OneofDescriptor, within: tuple[str, ...]) -> ConnectSchema:
        fields = (SchemaField(str(each.name), self._field(each, within)) for each in oneof.fields)
        return ConnectSchema(Type.STRUCT, True, f"{UNION_PREFIX}{oneof.name}", fields=tuple(fields))

    def _field(self, field: FieldDescriptor, within: tuple[str, ...]) -> ConnectSchema:
        parameters = {TAG_PARAMETER: str(field.number)}
        entry = field.message_type
        if entry is not None and entry.GetOptions().map_entry:
            key, value = entry.fields_by_name["key"], entry.fields_by_name["value"]
            schema = ConnectSchema(
                Type.MAP,
                key_schema=replace(self._value(key, within), is_optional=False),
                value_schema=self._value(value, within).as_optional(),
            )
        elif field.is_repeated:
            items = self._value(field, within).as_optional()
            schema = ConnectSchema(Type.ARRAY, value_schema=items)
        else:
            schema = self._value(field, within)
        return replace(
            schema,
            is_optional=not field.is_required,
            parameters={**schema.parameters, **parameters},
        )

    def _value(self, field: FieldDescriptor, within: tuple[str, ...]) -> ConnectSchema:
        message, meta = field.message_type, field_meta(field)
        if message is None:
            return _scalar(field, meta)
        name = str(message.full_name)
        if name in _LOGICAL_MESSAGES:
            return _LOGICAL_MESSAGES[name]
        if name in _WRAPPERS:
            return ConnectSchema(_WRAPPERS[name])
        if name == _DECIMAL_MESSAGE and meta.get(SCALE, "").lstrip("-").isdigit():
            parameters = {SCALE: meta[SCALE]}
            if meta.get("precision", DEFAULT_PRECISION) != DEFAULT_PRECISION:
                parameters["connect.decimal.precision"] = meta["precision"]
            return ConnectSchema(Type.BYTES, name=DECIMAL, version=1, parameters=parameters)
        if name in within:  # no column contains itself: the inner message stays bytes
            return ConnectSchema(Type.BYTES)
        return self._message(message, within)

    # To Protobuf

    def proto_text(self, schema: ConnectSchema) -> str:
        """Returns the text of a .proto file. Raises DataError if Protobuf has no such type."""
        if schema.type is not Type.STRUCT:
            raise DataError(
                f"Protobuf needs a struct, and the schema is of type {schema.type.name}: use "
                f"another converter, or HoistField."
            )
        return _ProtoWriter(self).file(schema)

    def field_name(self, name: str) -> str:
        """Raises SchemaBuildError if Protobuf does not allow the name."""
        if _NAME.fullmatch(name):
            return name
        if not self.scrubs_names:
            raise SchemaBuildError(
                f"Protobuf does not allow the name {name!r}: rename it, or set scrub.invalid.names."
            )
        scrubbed = re.sub(r"[^A-Za-z0-9_]", "_", name)
        return scrubbed if _NAME.fullmatch(scrubbed) else f"x{scrubbed}"


def parts_of(
    message: Descriptor, *, flattens_unions: bool
) -> Iterator[tuple[str, FieldDescriptor | OneofDescriptor]]:
    """Yields the fields of a message by name; those of a oneof are one part."""
    seen: dict[str, int] = {}
    for field in message.fields:
        oneof = field.containing_oneof
        is_alone = oneof is None or (len(oneof.fields) == 1 and str(oneof.name).startswith("_"))
        if is_alone or flattens_unions:
            yield str(field.name), field
        elif oneof.name not in seen:
            name = f"{oneof.name}_{len(seen)}"
            seen[oneof.name] = len(seen)
            yield name, oneof


@cache
def _options_class() -> Any:
    pool = DescriptorPool()
    pool.AddSerializedFile(DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(META_FILE.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName("google.protobuf.FieldOptions")), (
        pool.FindExtensionByName("confluent.field_meta")
    )


def field_meta(field: FieldDescriptor) -> Mapping[str, str]:
    """Returns the parameters of the option `confluent.field_meta`."""
    written = field.GetOptions().SerializeToString()
    if not written:
        return {}
    options_class, extension = _options_class()
    return dict(options_class.FromString(written).Extensions[extension].params)


def _scalar(field: FieldDescriptor, meta: Mapping[str, str]) -> ConnectSchema:
    if field.enum_type is not None:
        name = str(field.enum_type.name)
        symbols = {
            f"{ENUM_PARAMETER}.{value.name}": str(value.number) for value in field.enum_type.values
        }
        return ConnectSchema(Type.STRING, parameters={ENUM_PARAMETER: name, **symbols})
    schema = ConnectSchema(_SCALARS[field.type])
    narrow = meta.get(CONNECT_TYPE)
    if schema.type is Type.INT32 and narrow in (Type.INT8.value, Type.INT16.value):
        return ConnectSchema(Type(narrow))
    return schema


class _ProtoWriter:
    """Writes one file. Messages within messages are nested where they are used."""

    def __init__(self, mapping: ProtobufMapping) -> None:
        self._mapping = mapping
        self._imports: set[str] = set()
        self._unnamed = 0

    def file(self, schema: ConnectSchema) -> str:
        package, _, _ = (schema.name or "").rpartition(".")
        body = list(self._message(schema, self._message_name(schema)))
        lines = ['syntax = "proto3";']
        if package:
            parts = (self._mapping.field_name(part) for part in package.split("."))
            lines.append(f"package {'.'.join(parts)};")
        lines += ["", *(f'import "{name}";' for name in sorted(self._imports)), ""]
        return "\n".join([*lines, *body, ""])

    def _message_name(self, schema: ConnectSchema) -> str:
        if schema.name is None:
            self._unnamed += 1
            return f"{DEFAULT_NAME}{self._unnamed}"
        return self._mapping.field_name(schema.name.rpartition(".")[2])

    def _message(self, schema: ConnectSchema, name: str) -> Iterator[str]:
        numbers = _Numbers(schema)
        nested: dict[str, tuple[ConnectSchema, list[str]]] = {}
        yield f"message {name} {{"
        for field in schema.fields:
            inner = field.schema
            if inner.type is Type.STRUCT and (inner.name or "").startswith(UNION_PREFIX):
                oneof = (inner.name or "").removeprefix(UNION_PREFIX)
                yield f"  oneof {self._mapping.field_name(oneof)} {{"
                for each in inner.fields:
                    declared = self._field(each, numbers.next(each.schema), nested, in_oneof=True)
                    yield f"    {declared}"
                yield "  }"
            else:
                yield f"  {self._field(field, numbers.next(inner), nested)}"
        for _, lines in nested.values():
            yield from (f"  {line}" for line in lines)
        yield "}"

    def _field(
        self,
        field: SchemaField,
        number: int,
        nested: dict[str, tuple[ConnectSchema, list[str]]],
        *,
        in_oneof: bool = False,
    ) -> str:
        schema, label = field.schema, ""
        value = schema
        if schema.type is Type.ARRAY:
            assert schema.value_schema is not None
            value, label = schema.value_schema, "repeated "
        if schema.type is Type.MAP:
            type_name = self._map(field.name, schema, nested)
        elif value.type in (Type.ARRAY, Type.MAP) or (in_oneof and label):
            raise DataError(f"Field {field.name}: Protobuf has no lists of lists or of maps.")
        else:
            type_name = self._value(value, nested)
            is_scalar = value.type is not Type.STRUCT and "." not in type_name
            if schema.is_optional and is_scalar and not label and not in_oneof:
                label = "optional " if self._mapping.has_optional_fields else ""
        name = self._mapping.field_name(field.name)
        return f"{label}{type_name} {name} = {number}{self._options(value)};"

    def _map(
        self, name: str, schema: ConnectSchema, nested: dict[str, tuple[ConnectSchema, list[str]]]
    ) -> str:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        if schema.value_schema.type in (Type.ARRAY, Type.MAP):
            raise DataError(f"Field {name}: Protobuf has no maps of lists or of maps.")
        key = self._value(schema.key_schema, nested)
        if key not in _KEY_TYPES:
            raise DataError(f"Field {name}: a key of a Protobuf map cannot be a {key}.")
        return f"map<{key}, {self._value(schema.value_schema, nested)}>"

    def _value(
        self, schema: ConnectSchema, nested: dict[str, tuple[ConnectSchema, list[str]]]
    ) -> str:
        if schema.type is Type.STRUCT:
            return self._nested(replace(schema, is_optional=False, parameters={}), nested)
        logical = _message_of(schema)
        if logical is not None:
            self._imports.add(_IMPORTS[logical])
            return logical
        if schema.type is Type.STRING and ENUM_PARAMETER in schema.parameters:
            return self._enum(schema, nested)
        return _PROTO_TYPES[schema.type]

    def _nested(
        self, schema: ConnectSchema, nested: dict[str, tuple[ConnectSchema, list[str]]]
    ) -> str:
        wanted = self._message_name(schema)
        name = wanted
        for number in range(2, 10**6):
            if name not in nested or nested[name][0] == schema:
                break
            name = f"{wanted}{number}"
        if name not in nested:
            nested[name] = (schema, [])
            nested[name][1].extend(self._message(schema, name))
        return name

    def _enum(
        self, schema: ConnectSchema, nested: dict[str, tuple[ConnectSchema, list[str]]]
    ) -> str:
        name = self._mapping.field_name(schema.parameters[ENUM_PARAMETER].rpartition(".")[2])
        prefix = f"{ENUM_PARAMETER}."
        values = sorted(
            (int(number), symbol.removeprefix(prefix))
            for symbol, number in schema.parameters.items()
            if symbol.startswith(prefix)
        )
        values.sort(key=lambda value: value[0] != 0)  # zero is first
        lines = [f"enum {name} {{", *(f"  {symbol} = {number};" for number, symbol in values), "}"]
        nested.setdefault(name, (schema, lines))
        return name

    def _options(self, schema: ConnectSchema) -> str:
        parameters = {}
        if schema.type in (Type.INT8, Type.INT16):
            parameters = {CONNECT_TYPE: schema.type.value}
        if _message_of(schema) == _DECIMAL_MESSAGE:
            precision = schema.parameters.get("connect.decimal.precision", DEFAULT_PRECISION)
            parameters = {"precision": precision, SCALE: schema.parameters[SCALE]}
        if not parameters:
            return ""
        self._imports.add(_META)
        pairs = ", ".join(
            f"{{ key: {quote(key)}, value: {quote(value)} }}" for key, value in parameters.items()
        )
        return f" [(confluent.field_meta) = {{ params: [{pairs}] }}]"


class _Numbers:
    """The numbers of the fields of a message: those they came with, else one after the other."""

    def __init__(self, schema: ConnectSchema) -> None:
        fields = list(_flat(schema))
        tags = [each.parameters.get(TAG_PARAMETER, "") for each in fields]
        self._are_known = len(set(tags)) == len(fields) and all(map(str.isdigit, tags))
        self._last = 0

    def next(self, schema: ConnectSchema) -> int:
        if self._are_known:
            return int(schema.parameters[TAG_PARAMETER])
        self._last += 1
        return self._last


def _flat(schema: ConnectSchema) -> Iterator[ConnectSchema]:
    """Yields the schemas of the fields, and of those of unions."""
    for field in schema.fields:
        if (field.schema.name or "").startswith(UNION_PREFIX):
            yield from (each.schema for each in field.schema.fields)
        else:
            yield field.schema


def _message_of(schema: ConnectSchema) -> str | None:
    """Returns the message for values of a logical type."""
    match schema.name, schema.type:
        case (name, Type.BYTES) if name == DECIMAL:
            return _DECIMAL_MESSAGE
        case (name, Type.INT32) if name == DATE:
            return _DATE_MESSAGE
        case (name, Type.INT32) if name == TIME:
            return _TIME_MESSAGE
        case (name, Type.INT64) if name == TIMESTAMP:
            return _TIMESTAMP_MESSAGE
    return None
