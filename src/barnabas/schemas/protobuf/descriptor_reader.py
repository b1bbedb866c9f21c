"""Reads a file from its descriptor: serializers with compiled classes send that.

A descriptor has maps as repeated messages with entry types, and so has the file that is read from
it: Confluent's registry stores them in this form, and payloads count entry types in their indexes.
"""

from collections.abc import Iterable
from typing import TypeAlias

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    ServiceDescriptorProto,
)

from barnabas.schemas import SchemaError
from barnabas.schemas.bounds import WalkBounds
from barnabas.schemas.protobuf.descriptor_options import read_options
from barnabas.schemas.protobuf.syntax import (
    OptionValue,
    OptionWord,
    ProtoEnum,
    ProtoEnumValue,
    ProtoExtend,
    ProtoExtensions,
    ProtoField,
    ProtoFile,
    ProtoGroup,
    ProtoMessage,
    ProtoOneof,
    ProtoRpc,
    ProtoService,
    ReservedValue,
)
from barnabas.schemas.protobuf.tokens import unescape

_TYPES = {
    number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()
}
_LABELS = {
    FieldDescriptorProto.LABEL_OPTIONAL: "optional",
    FieldDescriptorProto.LABEL_REQUIRED: "required",
    FieldDescriptorProto.LABEL_REPEATED: "repeated",
}

_GroupMessages: TypeAlias = dict[str, DescriptorProto]


def read_descriptor(file: FileDescriptorProto) -> ProtoFile:
    return _Reader(file).file(file)


class _Reader:
    def __init__(self, file: FileDescriptorProto) -> None:
        self._proto3 = file.syntax == "proto3"
        self._editions = file.syntax == "editions"
        self._bounds = WalkBounds("read its descriptor")

    def file(self, file: FileDescriptorProto) -> ProtoFile:
        public, weak = set(file.public_dependency), set(file.weak_dependency)
        imports = list(enumerate(file.dependency))
        groups = _group_messages(file.extension, file.message_type)
        return ProtoFile(
            syntax=file.syntax if file.syntax in ("proto2", "proto3") else None,
            edition=_edition(file) if self._editions else None,
            package=file.package,
            imports=tuple(name for i, name in imports if i not in public | weak),
            weak_imports=tuple(name for i, name in imports if i in weak - public),
            public_imports=tuple(name for i, name in imports if i in public),
            options=read_options(file.options),
            messages=self._messages(file.message_type, groups),
            enums=tuple(map(self._enum, file.enum_type)),
            extends=self._extends(file.extension, groups),
            services=tuple(map(self._service, file.service)),
        )

    def _messages(
        self, messages: Iterable[DescriptorProto], groups: _GroupMessages
    ) -> tuple[ProtoMessage, ...]:
        return tuple(self._message(one) for one in messages if one.name not in groups)

    def _message(self, message: DescriptorProto) -> ProtoMessage:
        self._bounds.step()
        nested = _group_messages([*message.field, *message.extension], message.nested_type)
        plain = [field for field in message.field if not _is_in_oneof(field)]
        fields, groups = self._fields(plain, nested)
        return ProtoMessage(
            message.name,
            options=read_options(message.options),
            reserved=(
                *(_range(one.start, one.end - 1) for one in message.reserved_range),
                *((name,) for name in message.reserved_name),
            ),
            fields=fields,
            oneofs=self._oneofs(message, nested),
            groups=groups,
            extensions=tuple(
                ProtoExtensions(_range(one.start, one.end - 1), read_options(one.options))
                for one in message.extension_range
            ),
            extends=self._extends(message.extension, nested),
            messages=self._messages(message.nested_type, nested),
            enums=tuple(map(self._enum, message.enum_type)),
        )

    def _oneofs(self, message: DescriptorProto, nested: _GroupMessages) -> tuple[ProtoOneof, ...]:
        """Leaves out the oneofs of optional fields, which have no fields of their own."""
        members: list[list[FieldDescriptorProto]] = [[] for _ in message.oneof_decl]
        for field in message.field:
            if _is_in_oneof(field):
                if not 0 <= field.oneof_index < len(members):
                    raise SchemaError(f"The field {field.name} is in a oneof that does not exist.")
                members[field.oneof_index].append(field)
        oneofs = []
        for oneof, own in zip(message.oneof_decl, members, strict=True):
            fields, groups = self._fields(own, nested)
            if own:
                oneofs.append(ProtoOneof(oneof.name, read_options(oneof.options), fields, groups))
        return tuple(oneofs)

    def _extends(
        self, extensions: Iterable[FieldDescriptorProto], nested: _GroupMessages
    ) -> tuple[ProtoExtend, ...]:
        by_extendee: dict[str, list[FieldDescriptorProto]] = {}
        for field in extensions:
            by_extendee.setdefault(field.extendee, []).append(field)
        return tuple(
            ProtoExtend(extendee, *self._fields(fields, nested))
            for extendee, fields in by_extendee.items()
        )

    def _fields(
        self, fields: Iterable[FieldDescriptorProto], nested: _GroupMessages
    ) -> tuple[tuple[ProtoField, ...], tuple[ProtoGroup, ...]]:
        plain, groups = [], []
        for field in fields:
            self._bounds.step()
            if field.type == FieldDescriptorProto.TYPE_GROUP:
                groups.append(self._group(field, nested))
            else:
                plain.append(self._field(field))
        return tuple(plain), tuple(groups)

    def _field(self, field: FieldDescriptorProto) -> ProtoField:
        return ProtoField(
            field.name,
            field.number,
            field.type_name or _TYPES.get(field.type, ""),
            label=self._label(field),
            default=_default(field) if field.HasField("default_value") else None,
            json_name=field.json_name if field.HasField("json_name") else None,
            options=read_options(field.options),
        )

    def _group(self, field: FieldDescriptorProto, nested: _GroupMessages) -> ProtoGroup:
        message = self._message(nested[_local_name(field.type_name)])
        return ProtoGroup(field.number, message, self._label(field), read_options(field.options))

    def _label(self, field: FieldDescriptorProto) -> str | None:
        if _is_in_oneof(field):
            return None
        implied = self._editions or (self._proto3 and not field.proto3_optional)
        if implied and field.label != FieldDescriptorProto.LABEL_REPEATED:
            return None
        return _LABELS[field.label]

    def _enum(self, enum: EnumDescriptorProto) -> ProtoEnum:
        self._bounds.step(1 + len(enum.value))
        return ProtoEnum(
            enum.name,
            options=read_options(enum.options),
            values=tuple(
                ProtoEnumValue(value.name, value.number, read_options(value.options))
                for value in enum.value
            ),
            reserved=(
                *(_range(one.start, one.end) for one in enum.reserved_range),
                *((name,) for name in enum.reserved_name),
            ),
        )

    def _service(self, service: ServiceDescriptorProto) -> ProtoService:
        self._bounds.step(1 + len(service.method))
        rpcs = tuple(
            ProtoRpc(
                method.name,
                method.input_type,
                method.output_type,
                method.client_streaming,
                method.server_streaming,
                read_options(method.options),
            )
            for method in service.method
        )
        return ProtoService(service.name, read_options(service.options), rpcs)


def _is_in_oneof(field: FieldDescriptorProto) -> bool:
    return bool(field.HasField("oneof_index")) and not field.proto3_optional


def _group_messages(
    fields: Iterable[FieldDescriptorProto], nested: Iterable[DescriptorProto]
) -> _GroupMessages:
    """Returns the messages of the groups in one scope, by name.

    Two groups cannot have one message: it would be read once for each of them, and so would the
    groups in it.
    """
    by_name: dict[str, DescriptorProto] = {}
    for message in nested:
        if by_name.setdefault(message.name, message) is not message:
            raise SchemaError(f"The message {message.name} is defined twice.")
    groups: _GroupMessages = {}
    for field in fields:
        if field.type == FieldDescriptorProto.TYPE_GROUP:
            name = _local_name(field.type_name)
            if name not in by_name:
                raise SchemaError(f"The group {name} has no message.")
            if name in groups:
                raise SchemaError(f"Two groups have the message {name}.")
            groups[name] = by_name[name]
    return groups


def _local_name(full_name: str) -> str:
    return full_name.rpartition(".")[2]


def _edition(file: FileDescriptorProto) -> str:
    name = str(Edition.Name(file.edition)).removeprefix("EDITION_")
    if not name.isdecimal():
        raise SchemaError(f"The edition {name} of the descriptor is not known.")
    return name


def _default(field: FieldDescriptorProto) -> OptionValue:
    if field.type == FieldDescriptorProto.TYPE_STRING:
        return str(field.default_value)
    if field.type == FieldDescriptorProto.TYPE_BYTES:
        return unescape(field.default_value).decode(errors="surrogateescape")
    is_number = not field.type_name and field.type != FieldDescriptorProto.TYPE_BOOL
    return OptionWord(field.default_value, is_number)


def _range(first: int, last: int) -> tuple[ReservedValue]:
    return (first if first == last else (first, last),)
