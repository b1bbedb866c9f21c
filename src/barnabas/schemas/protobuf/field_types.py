"""The fields of a message and their types, as far as they matter for compatibility."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from barnabas.schemas.protobuf.syntax import SCALARS, ProtoField, ProtoGroup, ProtoMessage
from barnabas.schemas.protobuf.type_table import TypeEntry, TypeTable


@dataclass(slots=True, frozen=True)
class FieldView:
    """A field or a group, with the oneof that it is in."""

    name: str
    number: int
    type: str
    label: str | None
    key_type: str | None
    oneof: str | None
    scope: str  # in which its type is resolved

    def path_in(self, message_path: str) -> str:
        oneof = "" if self.oneof is None else f"/{self.oneof}"
        return f"{message_path}{oneof}/{self.number}"


def list_fields(message: ProtoMessage, scope: str) -> dict[int, FieldView]:
    """Returns the fields of a message by number, those of its oneofs too."""
    views = _views(message.fields, message.groups, None, scope)
    for oneof in message.oneofs:
        views += _views(oneof.fields, oneof.groups, oneof.name, scope)
    return {view.number: view for view in views}


def _views(
    fields: Iterable[ProtoField], groups: Iterable[ProtoGroup], oneof: str | None, scope: str
) -> list[FieldView]:
    views = [
        FieldView(one.name, one.number, one.type, one.label, one.key_type, oneof, scope)
        for one in fields
    ]
    for group in groups:
        name = group.message.name
        views.append(FieldView(name, group.number, name, group.label, None, oneof, scope))
    return views


class FieldKind(Enum):
    SCALAR = "scalar"
    MAP = "map"
    MESSAGE = "message"


@dataclass(slots=True, frozen=True)
class FieldType:
    kind: FieldKind
    description: str
    scalar_group: str | None = None  # scalars of one group have the same encoding
    message: TypeEntry | None = None
    local_name: str | None = None  # of a message: within its package
    parts: tuple["FieldType", ...] = ()  # of a map: the types of keys and values

    @property
    def is_number(self) -> bool:
        return self.scalar_group not in (None, _TEXT)


def resolve_field_type(view: FieldView, types: TypeTable) -> FieldType:
    if view.key_type is not None:
        return _map_type(view.key_type, view.type, view.scope, types)
    return _type(view.type, view.scope, types)


def _type(name: str, scope: str, types: TypeTable, *, in_map: bool = False) -> FieldType:
    if name in SCALARS:
        return FieldType(FieldKind.SCALAR, name, scalar_group=_GROUPS[name])
    entry = types.find(name, scope)
    if entry is None:
        return FieldType(FieldKind.MESSAGE, name, local_name=name)
    if not isinstance(entry.node, ProtoMessage):
        return FieldType(FieldKind.SCALAR, entry.full_name, scalar_group=_NUMBER)
    if entry.node.is_map_entry and not in_map:
        parts = {one.name: one.type for one in entry.node.fields}
        if {"key", "value"} <= set(parts):
            return _map_type(parts["key"], parts["value"], entry.full_name, types)
    return FieldType(FieldKind.MESSAGE, entry.full_name, message=entry, local_name=entry.local_name)


def _map_type(key_type: str, value_type: str, scope: str, types: TypeTable) -> FieldType:
    parts = tuple(_type(name, scope, types, in_map=True) for name in (key_type, value_type))
    return FieldType(FieldKind.MAP, "a map", parts=parts)


_NUMBER, _TEXT = "number", "string or bytes"
_GROUPS = {
    **dict.fromkeys(("int32", "int64", "uint32", "uint64", "bool"), _NUMBER),
    **dict.fromkeys(("sint32", "sint64"), "zigzag number"),
    **dict.fromkeys(("string", "bytes"), _TEXT),
    **dict.fromkeys(("fixed32", "sfixed32"), "fixed 32 bits"),
    **dict.fromkeys(("fixed64", "sfixed64"), "fixed 64 bits"),
    "float": "float",
    "double": "double",
}
