"""Normalizes files as Confluent's registry does, so that texts that mean the same are one schema.

Everything whose order has no meaning is sorted, and types have their full names. The order of
messages stays, because payloads identify a message by its index in the file.
"""

from collections.abc import Iterable
from dataclasses import replace

from barnabas.schemas import SchemaError
from barnabas.schemas.protobuf.option_normalization import OptionNormalizer
from barnabas.schemas.protobuf.printer import field_options
from barnabas.schemas.protobuf.syntax import (
    NO_OFFSET,
    SCALARS,
    ProtoEnum,
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
from barnabas.schemas.protobuf.type_table import TypeTable, join_names


class UnresolvedTypeError(SchemaError):
    """A type is defined neither in the schema nor in its references."""

    def __init__(self, name: str, offset: int) -> None:
        super().__init__(f'"{name}" is not defined.')
        self.offset = offset


def normalize(file: ProtoFile, table: TypeTable) -> ProtoFile:
    """Raises UnresolvedTypeError."""
    return _Normalizer(table).file(file)


class _Normalizer:
    def __init__(self, table: TypeTable) -> None:
        self._table = table
        self._options = OptionNormalizer(table)

    def file(self, file: ProtoFile) -> ProtoFile:
        scope = file.package
        return replace(
            file,
            syntax=file.syntax if file.is_proto3 else None,
            imports=tuple(sorted(set(file.imports))),
            weak_imports=tuple(sorted(set(file.weak_imports))),
            public_imports=tuple(sorted(set(file.public_imports))),
            options=self._options.normalize(file.options, scope),
            messages=self._messages(file.messages, scope),
            enums=tuple(self._enum(enum, scope) for enum in file.enums),
            extends=self._extends(file.extends, scope),
            services=tuple(self._service(service, scope) for service in file.services),
        )

    def _messages(self, messages: Iterable[ProtoMessage], scope: str) -> tuple[ProtoMessage, ...]:
        return tuple(
            self._message(message, scope) for message in messages if not message.is_map_entry
        )

    def _message(self, message: ProtoMessage, scope: str) -> ProtoMessage:
        inner = join_names(scope, message.name)
        oneofs = [self._oneof(oneof, inner) for oneof in message.oneofs]
        extensions = [
            ProtoExtensions((_single(value),), self._options.normalize(one.options, inner))
            for one in message.extensions
            for value in one.values
        ]
        return replace(
            message,
            options=self._options.normalize(message.options, inner),
            reserved=_sorted_reserved(message.reserved),
            fields=self._fields(message.fields, inner),
            oneofs=tuple(sorted(oneofs, key=_first_number)),
            groups=self._groups(message.groups, inner),
            extensions=tuple(sorted(extensions, key=lambda one: _start(one.values[0]))),
            extends=self._extends(message.extends, inner),
            messages=self._messages(message.messages, inner),
            enums=tuple(self._enum(enum, inner) for enum in message.enums),
        )

    def _oneof(self, oneof: ProtoOneof, scope: str) -> ProtoOneof:
        return replace(
            oneof,
            options=self._options.normalize(oneof.options, scope),
            fields=self._fields(oneof.fields, scope),
            groups=self._groups(oneof.groups, scope),
        )

    def _fields(self, fields: Iterable[ProtoField], scope: str) -> tuple[ProtoField, ...]:
        normal = (self._field(field, scope) for field in fields)
        return tuple(sorted(normal, key=lambda field: field.number))

    def _field(self, field: ProtoField, scope: str) -> ProtoField:
        options = self._options.normalize(field_options(field), scope)
        field = replace(field, options=options, default=None, json_name=None)
        if field.type in SCALARS:
            return field
        entry = self._table.find(field.type, scope)
        if entry is None:
            raise UnresolvedTypeError(field.type, field.offset)
        if isinstance(entry.node, ProtoMessage) and entry.node.is_map_entry:
            return self._map_field(field, entry.node, entry.full_name)
        return replace(field, type=f".{entry.full_name}")

    def _map_field(self, field: ProtoField, entry: ProtoMessage, scope: str) -> ProtoField:
        """Returns the field as `map<...>`: descriptors have maps as repeated messages."""
        types = {one.name: one.type for one in entry.fields}
        if not {"key", "value"} <= set(types):
            return replace(field, type=f".{scope}")
        found = None if types["value"] in SCALARS else self._table.find(types["value"], scope)
        value = types["value"] if found is None else f".{found.full_name}"
        return replace(field, label=None, key_type=types["key"], type=value)

    def _groups(self, groups: Iterable[ProtoGroup], scope: str) -> tuple[ProtoGroup, ...]:
        normal = (
            replace(
                group,
                message=self._message(group.message, scope),
                options=self._options.normalize(group.options, scope),
            )
            for group in groups
        )
        return tuple(sorted(normal, key=lambda group: group.number))

    def _extends(self, extends: Iterable[ProtoExtend], scope: str) -> tuple[ProtoExtend, ...]:
        """Returns one extend for each extended message."""
        merged: dict[str, ProtoExtend] = {}
        for extend in extends:
            name = self._resolve(extend.extendee, scope, extend.offset)
            previous = merged.get(name, ProtoExtend(name))
            merged[name] = ProtoExtend(
                name, (*previous.fields, *extend.fields), (*previous.groups, *extend.groups)
            )
        return tuple(
            replace(
                extend,
                fields=self._fields(extend.fields, scope),
                groups=self._groups(extend.groups, scope),
            )
            for extend in merged.values()
        )

    def _enum(self, enum: ProtoEnum, scope: str) -> ProtoEnum:
        inner = join_names(scope, enum.name)
        values = [
            replace(value, options=self._options.normalize(value.options, inner))
            for value in enum.values
        ]
        return replace(
            enum,
            options=self._options.normalize(enum.options, inner),
            reserved=_sorted_reserved(enum.reserved),
            values=tuple(sorted(values, key=lambda value: (value.number, value.name))),
        )

    def _service(self, service: ProtoService, scope: str) -> ProtoService:
        return replace(
            service,
            options=self._options.normalize(service.options, scope),
            rpcs=tuple(self._rpc(rpc, scope) for rpc in service.rpcs),
        )

    def _rpc(self, rpc: ProtoRpc, scope: str) -> ProtoRpc:
        return replace(
            rpc,
            request=self._resolve(rpc.request, scope, rpc.offset),
            response=self._resolve(rpc.response, scope, rpc.offset),
            options=self._options.normalize(rpc.options, scope),
        )

    def _resolve(self, name: str, scope: str, offset: int = NO_OFFSET) -> str:
        entry = self._table.find(name, scope)
        if entry is None:
            raise UnresolvedTypeError(name, offset)
        return f".{entry.full_name}"


def _first_number(oneof: ProtoOneof) -> int:
    numbers = [field.number for field in oneof.fields] + [group.number for group in oneof.groups]
    return min(numbers, default=0)


def _sorted_reserved(
    reserved: Iterable[tuple[ReservedValue, ...]],
) -> tuple[tuple[ReservedValue, ...], ...]:
    """Returns each value as a statement of its own: first numbers, then names."""
    values = [_single(value) for values in reserved for value in values]
    names = sorted(value for value in values if isinstance(value, str))
    numbers = [value for value in values if not isinstance(value, str)]
    return tuple((value,) for value in (*sorted(numbers, key=_sort_key), *names))


def _single(value: ReservedValue) -> ReservedValue:
    return value[0] if isinstance(value, tuple) and value[0] == value[1] else value


def _start(value: ReservedValue) -> int:
    return value[0] if isinstance(value, tuple) else int(value)


def _sort_key(value: int | tuple[int, int]) -> tuple[int, str]:
    return _start(value), str(value)
