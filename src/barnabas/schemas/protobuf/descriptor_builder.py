"""Builds the descriptor of a file: of the messages that serializers and columns read and write.

The types of maps come after the nested messages, as in Confluent's registry, so that the index of
a message does not depend on maps.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.text_encoding import CEscape

from barnabas.schemas import SchemaError
from barnabas.schemas.protobuf.descriptor_options import write_options
from barnabas.schemas.protobuf.normalization import UnresolvedTypeError
from barnabas.schemas.protobuf.option_normalization import parse_integer
from barnabas.schemas.protobuf.printer import quote
from barnabas.schemas.protobuf.syntax import (
    SCALARS,
    OptionValue,
    OptionWord,
    ProtoEnum,
    ProtoExtend,
    ProtoField,
    ProtoFile,
    ProtoGroup,
    ProtoMessage,
    ProtoService,
    ReservedValue,
)
from barnabas.schemas.protobuf.tokens import is_utf8
from barnabas.schemas.protobuf.type_table import TypeEntry, TypeTable, join_names

_SCALAR_TYPES = {name: FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}") for name in SCALARS}
_LABELS = {
    None: FieldDescriptorProto.LABEL_OPTIONAL,
    "optional": FieldDescriptorProto.LABEL_OPTIONAL,
    "required": FieldDescriptorProto.LABEL_REQUIRED,
    "repeated": FieldDescriptorProto.LABEL_REPEATED,
}


@dataclass(slots=True, frozen=True)
class BuiltFile:
    descriptor: FileDescriptorProto
    used_files: dict[str, None] = field(default_factory=dict)
    """The files of the types that it uses, whether it imports them or not."""


def build_descriptor(name: str, file: ProtoFile, table: TypeTable) -> BuiltFile:
    """Builds a descriptor without imports. Raises SchemaError."""
    return _Builder(name, file, table).file(file)


class _Builder:
    def __init__(self, name: str, file: ProtoFile, table: TypeTable) -> None:
        self._name = name
        self._table = table
        self._proto3 = file.is_proto3
        self._used_files: dict[str, None] = {}

    def file(self, file: ProtoFile) -> BuiltFile:
        built = FileDescriptorProto(name=self._name, package=file.package)
        if file.edition is not None:
            built.syntax = "editions"
            built.edition = _edition(file.edition)
        elif file.is_proto3:
            built.syntax = "proto3"
        write_options(file.options, built.options)
        for message in file.messages:
            self._message(message, built.message_type.add(), file.package)
        for enum in file.enums:
            self._enum(enum, built.enum_type.add())
        self._extends(file.extends, built.extension, built.message_type, file.package)
        for service in file.services:
            self._service(service, built.service.add(), file.package)
        self._used_files.pop(self._name, None)
        return BuiltFile(built, self._used_files)

    def _message(self, message: ProtoMessage, built: DescriptorProto, scope: str) -> None:
        inner = join_names(scope, message.name)
        built.name = message.name
        write_options(message.options, built.options)
        for nested in message.messages:
            self._message(nested, built.nested_type.add(), inner)
        for enum in message.enums:
            self._enum(enum, built.enum_type.add())
        self._fields(message, built, inner)
        self._extends(message.extends, built.extension, built.nested_type, inner)
        for one in message.extensions:
            for first, last in _ranges(one.values):
                extensions = built.extension_range.add(start=first, end=last + 1)
                write_options(one.options, extensions.options)
        for values in message.reserved:
            for first, last in _ranges(values):
                built.reserved_range.add(start=first, end=last + 1)
            built.reserved_name.extend(_names(values))

    def _fields(self, message: ProtoMessage, built: DescriptorProto, scope: str) -> None:
        for one in message.fields:
            self._field(one, built.field.add(), scope)
            if one.key_type is not None:
                self._map_entry(one, built, scope)
        for group in message.groups:
            self._group(group, built.field.add(), built.nested_type, scope)
        for index, oneof in enumerate(message.oneofs):
            declared = built.oneof_decl.add(name=oneof.name)
            write_options(oneof.options, declared.options)
            for one in oneof.fields:
                self._field(one, built.field.add(oneof_index=index), scope)
            for group in oneof.groups:
                member = built.field.add(oneof_index=index)
                self._group(group, member, built.nested_type, scope)
        if self._proto3:
            _add_presence(message, built)

    def _field(self, one: ProtoField, built: FieldDescriptorProto, scope: str) -> None:
        built.name, built.number, built.label = one.name, one.number, _LABELS[one.label]
        if one.key_type is None:
            self._set_type(built, one.type, scope, one.offset)
        else:
            built.label = FieldDescriptorProto.LABEL_REPEATED
            built.type = FieldDescriptorProto.TYPE_MESSAGE
            built.type_name = f".{scope}.{_entry_name(one.name)}"
        if one.json_name is not None:
            built.json_name = _utf8(one.json_name)
        if one.default is not None:
            built.default_value = _default(one.default, built)
        write_options(one.options, built.options)

    def _map_entry(self, one: ProtoField, built: DescriptorProto, scope: str) -> None:
        assert one.key_type is not None
        entry = built.nested_type.add(name=_entry_name(one.name))
        entry.options.map_entry = True
        for number, name, kind in ((1, "key", one.key_type), (2, "value", one.type)):
            part = entry.field.add(name=name, number=number, label=_LABELS["optional"])
            self._set_type(part, kind, join_names(scope, entry.name), one.offset)

    def _group(
        self, group: ProtoGroup, built: FieldDescriptorProto, nested: Any, scope: str
    ) -> None:
        """`nested` are the messages of the message or file that the group is in."""
        built.name, built.number = group.message.name.lower(), group.number
        built.label = _LABELS[group.label]
        built.type = FieldDescriptorProto.TYPE_GROUP
        built.type_name = f".{join_names(scope, group.message.name)}"
        write_options(group.options, built.options)
        self._message(group.message, nested.add(), scope)

    def _extends(self, extends: Iterable[ProtoExtend], built: Any, nested: Any, scope: str) -> None:
        for extend in extends:
            extendee = f".{self._resolve(extend.extendee, scope, extend.offset).full_name}"
            for one in extend.fields:
                self._field(one, built.add(extendee=extendee), scope)
                built[-1].proto3_optional = self._proto3 and one.label == "optional"
            for group in extend.groups:
                self._group(group, built.add(extendee=extendee), nested, scope)

    def _enum(self, enum: ProtoEnum, built: EnumDescriptorProto) -> None:
        built.name = enum.name
        write_options(enum.options, built.options)
        # A normalized enum of proto3 may have a negative number before its default, which is zero.
        values = enum.values
        if self._proto3:
            values = tuple(sorted(values, key=lambda value: value.number != 0))
        for value in values:
            added = built.value.add(name=value.name, number=value.number)
            write_options(value.options, added.options)
        for reserved in enum.reserved:
            for first, last in _ranges(reserved):
                built.reserved_range.add(start=first, end=last)
            built.reserved_name.extend(_names(reserved))

    def _service(self, service: ProtoService, built: Any, scope: str) -> None:
        built.name = service.name
        write_options(service.options, built.options)
        for rpc in service.rpcs:
            method = built.method.add(
                name=rpc.name,
                input_type=f".{self._resolve(rpc.request, scope, rpc.offset).full_name}",
                output_type=f".{self._resolve(rpc.response, scope, rpc.offset).full_name}",
            )
            if rpc.request_streams:
                method.client_streaming = True
            if rpc.response_streams:
                method.server_streaming = True
            write_options(rpc.options, method.options)

    def _set_type(self, built: FieldDescriptorProto, name: str, scope: str, offset: int) -> None:
        if name in _SCALAR_TYPES:
            built.type = _SCALAR_TYPES[name]
            return
        entry = self._resolve(name, scope, offset)
        kind = "TYPE_ENUM" if entry.is_enum else "TYPE_MESSAGE"
        built.type = FieldDescriptorProto.Type.Value(kind)
        built.type_name = f".{entry.full_name}"

    def _resolve(self, name: str, scope: str, offset: int) -> TypeEntry:
        entry = self._table.find(name, scope)
        if entry is None:
            raise UnresolvedTypeError(name, offset)
        self._used_files[entry.file_name] = None
        return entry


def _add_presence(message: ProtoMessage, built: DescriptorProto) -> None:
    """Puts each optional field of proto3 into a oneof of its own, after the declared ones."""
    optional = {one.name for one in message.fields if one.label == "optional"}
    taken = {one.name for one in (*built.field, *built.oneof_decl)}
    for one in built.field:
        if one.name in optional and not one.HasField("oneof_index"):
            name = f"_{one.name}"
            while name in taken:
                name = f"X{name}"
            taken.add(name)
            one.proto3_optional = True
            one.oneof_index = len(built.oneof_decl)
            built.oneof_decl.add(name=name)


def _entry_name(field_name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in field_name.split("_")) + "Entry"


def _edition(name: str) -> int:
    try:
        return int(Edition.Value(f"EDITION_{name}"))
    except ValueError:
        raise SchemaError(f"The edition {name!r:.40} is not known.") from None


def _ranges(values: Iterable[ReservedValue]) -> Iterable[tuple[int, int]]:
    for value in values:
        if isinstance(value, int):
            yield value, value
        elif not isinstance(value, str):
            yield value


def _names(values: Iterable[ReservedValue]) -> Iterable[str]:
    return (_utf8(value) for value in values if isinstance(value, str))


def _utf8(text: str) -> str:
    """Raises SchemaError if escapes made it bytes that are not text, as only bytes may be."""
    if not is_utf8(text):
        raise SchemaError(f"The string {quote(text):.40} is not UTF-8.")
    return text


def _default(value: OptionValue, built: FieldDescriptorProto) -> str:
    """Returns a default as descriptors have it: numbers in decimal, bytes escaped."""
    if isinstance(value, str):
        if built.type != FieldDescriptorProto.TYPE_BYTES:
            return _utf8(value)
        escaped: str = CEscape(value.encode(errors="surrogateescape"), False)
        return escaped
    if not isinstance(value, OptionWord):
        raise SchemaError(f"The default of the field {built.name} is no single value.")
    if not value.is_number or value.text in ("-inf", "-nan"):
        return value.text
    number = parse_integer(value.text)
    return value.text.rstrip("fF") if number is None else str(number)
