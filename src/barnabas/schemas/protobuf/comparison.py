"""Compares Protobuf schemas. The names of differences are Confluent's.

Fields with the same number are the same field. Paths are `#/Message/1`, `#/Outer/Inner/2` or, in a
oneof, `#/Message/oneof/3`. Adding, removing and renaming fields is compatible.

Every pair of messages is compared once: schemas are untrusted, and following every path through
their types could take exponential time. If two messages differ, the fields that use them are
reported as well.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from google.protobuf.descriptor import (
    Descriptor,
    EnumDescriptor,
    FieldDescriptor,
    FileDescriptor,
    OneofDescriptor,
)

from barnabas.schemas import Incompatibility


class ProtobufDifference(StrEnum):
    PACKAGE_CHANGED = "PACKAGE_CHANGED"
    MESSAGE_REMOVED = "MESSAGE_REMOVED"
    FIELD_KIND_CHANGED = "FIELD_KIND_CHANGED"
    FIELD_SCALAR_KIND_CHANGED = "FIELD_SCALAR_KIND_CHANGED"
    FIELD_NAMED_TYPE_CHANGED = "FIELD_NAMED_TYPE_CHANGED"
    FIELD_NUMERIC_LABEL_CHANGED = "FIELD_NUMERIC_LABEL_CHANGED"
    REQUIRED_FIELD_ADDED = "REQUIRED_FIELD_ADDED"
    REQUIRED_FIELD_REMOVED = "REQUIRED_FIELD_REMOVED"
    ONEOF_FIELD_REMOVED = "ONEOF_FIELD_REMOVED"
    MULTIPLE_FIELDS_MOVED_TO_ONEOF = "MULTIPLE_FIELDS_MOVED_TO_ONEOF"
    FIELD_MOVED_TO_EXISTING_ONEOF = "FIELD_MOVED_TO_EXISTING_ONEOF"


def incompatibilities(written: FileDescriptor, reading: FileDescriptor) -> list[Incompatibility]:
    """Returns why data of messages in `written` cannot be read with those in `reading`."""
    comparison = _Comparison()
    if written.package != reading.package:
        comparison.report(
            ProtobufDifference.PACKAGE_CHANGED,
            "#/",
            f"the package is {reading.package!r} in the {{reader}} schema,"
            f" {written.package!r} in the {{writer}} schema",
        )
    comparison.types(
        written.message_types_by_name.values(), reading.message_types_by_name.values(), "#"
    )
    comparison.run()
    return comparison.incompatibilities


_Pair: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class _Comparison:
    incompatibilities: list[Incompatibility] = field(default_factory=list)
    _queued: list[tuple[Descriptor, Descriptor]] = field(default_factory=list)
    _seen: set[_Pair] = field(default_factory=set)
    _differing: set[_Pair] = field(default_factory=set)
    _uses: dict[_Pair, list[tuple[_Pair, str, str]]] = field(default_factory=dict)
    """By pair of messages: the pairs with a field of that type, and the field's path and name."""
    _current: _Pair = ("", "")

    def run(self) -> None:
        while self._queued:
            written, reading = self._queued.pop(0)
            self._current = (written.full_name, reading.full_name)
            self._messages(written, reading, f"#/{_local_name(reading).replace('.', '/')}")
        self._report_users()

    def report(self, difference: ProtobufDifference, path: str, description: str) -> None:
        self.incompatibilities.append(
            Incompatibility(difference, f"At {path}: {description}.", path)
        )
        self._differing.add(self._current)

    def types(
        self, written: Iterable[Descriptor], reading: Iterable[Descriptor], path: str
    ) -> None:
        reading_by_name = _by_name(reading)
        for name, message in _by_name(written).items():
            if name in reading_by_name:
                self._compare_later(message, reading_by_name[name])
            else:
                self.report(
                    ProtobufDifference.MESSAGE_REMOVED,
                    f"{path}/{name}",
                    f"the {{reader}} schema has no message {name}",
                )

    def _compare_later(self, written: Descriptor, reading: Descriptor) -> _Pair:
        pair = (written.full_name, reading.full_name)
        if pair not in self._seen:
            self._seen.add(pair)
            self._queued.append((written, reading))
        return pair

    def _messages(self, written: Descriptor, reading: Descriptor, path: str) -> None:
        before, now = written.fields_by_number, reading.fields_by_number
        for oneof in reading.oneofs:
            if not _is_synthetic(oneof):
                self._oneof(oneof, before, f"{path}/{oneof.name}")
        for number in sorted({*before, *now}):
            written_field, reading_field = before.get(number), now.get(number)
            if reading_field is None:
                self._removed(written_field, reading, path)
            elif written_field is None:
                self._added(reading_field, path)
            else:
                self._fields(
                    written_field, reading_field, f"{_within(reading_field, path)}/{number}"
                )
        self.types(written.nested_types, reading.nested_types, path)

    def _oneof(self, oneof: OneofDescriptor, before: dict[int, FieldDescriptor], path: str) -> None:
        old = [before[one.number] for one in oneof.fields if one.number in before]
        moved = [one for one in old if _oneof_of(one) is None]
        if len(moved) > 1:
            names = ", ".join(one.name for one in moved)
            self.report(
                ProtobufDifference.MULTIPLE_FIELDS_MOVED_TO_ONEOF,
                path,
                f"of the {{writer}} schema's fields {names}, only one can be set in the"
                f" {{reader}} schema: they are in oneof {oneof.name}",
            )
        elif moved and len(old) > 1:
            self.report(
                ProtobufDifference.FIELD_MOVED_TO_EXISTING_ONEOF,
                path,
                f"field {moved[0].name} is in oneof {oneof.name} of the {{reader}} schema,"
                f" and next to it in the {{writer}} schema",
            )

    def _removed(self, written_field: FieldDescriptor, reading: Descriptor, path: str) -> None:
        where = f"{_within(written_field, path)}/{written_field.number}"
        oneof = _oneof_of(written_field)
        if written_field.is_required:
            self.report(
                ProtobufDifference.REQUIRED_FIELD_REMOVED,
                where,
                f"the {{reader}} schema has no field {written_field.name}, required in the"
                " {writer} schema",
            )
        elif oneof is not None and oneof.name in reading.oneofs_by_name:
            self.report(
                ProtobufDifference.ONEOF_FIELD_REMOVED,
                where,
                f"the {{reader}} schema has no field {written_field.name} in oneof {oneof.name}",
            )

    def _added(self, reading_field: FieldDescriptor, path: str) -> None:
        if reading_field.is_required:
            self.report(
                ProtobufDifference.REQUIRED_FIELD_ADDED,
                f"{path}/{reading_field.number}",
                f"field {reading_field.name} is required, and not in the {{writer}} schema",
            )

    def _fields(
        self, written_field: FieldDescriptor, reading_field: FieldDescriptor, path: str
    ) -> None:
        if reading_field.is_required and not written_field.is_required:
            self.report(
                ProtobufDifference.REQUIRED_FIELD_ADDED,
                path,
                f"field {reading_field.name} is required, and not so in the {{writer}} schema",
            )
        self._field_types(written_field, reading_field, path)
        if (
            written_field.is_repeated != reading_field.is_repeated
            and _kind(written_field) == _kind(reading_field) == "scalar"
            and _scalar_group(written_field) == _scalar_group(reading_field) != "string or bytes"
        ):
            self.report(
                ProtobufDifference.FIELD_NUMERIC_LABEL_CHANGED,
                path,
                f"field {reading_field.name} is {_times(reading_field)} in the {{reader}} schema,"
                f" {_times(written_field)} in the {{writer}} schema",
            )

    def _field_types(
        self, written_field: FieldDescriptor, reading_field: FieldDescriptor, path: str
    ) -> None:
        description = (
            f"field {reading_field.name} is {_type_name(reading_field)} in the {{reader}} schema,"
            f" {_type_name(written_field)} in the {{writer}} schema"
        )
        kind = _kind(reading_field)
        if kind != _kind(written_field):
            self.report(ProtobufDifference.FIELD_KIND_CHANGED, path, description)
        elif kind == "scalar":
            if _scalar_group(written_field) != _scalar_group(reading_field):
                self.report(ProtobufDifference.FIELD_SCALAR_KIND_CHANGED, path, description)
        elif kind == "map":
            for part in ("key", "value"):
                self._field_types(
                    written_field.message_type.fields_by_name[part],
                    reading_field.message_type.fields_by_name[part],
                    path,
                )
        elif _local_name(written_field.message_type) != _local_name(reading_field.message_type):
            self.report(ProtobufDifference.FIELD_NAMED_TYPE_CHANGED, path, description)
        else:
            pair = self._compare_later(written_field.message_type, reading_field.message_type)
            self._uses.setdefault(pair, []).append((self._current, path, reading_field.name))

    def _report_users(self) -> None:
        """Reports the fields whose messages differ, and then the fields that use those messages."""
        spreading = sorted(self._differing)
        while spreading:
            pair = spreading.pop()
            for user, path, name in self._uses.pop(pair, []):
                if user not in self._differing:
                    spreading.append(user)
                self._current = user
                self.report(
                    ProtobufDifference.FIELD_NAMED_TYPE_CHANGED,
                    path,
                    f"field {name} is a {pair[1]}, which differs in the two schemas",
                )


def _by_name(messages: Iterable[Descriptor]) -> dict[str, Descriptor]:
    return {message.name: message for message in messages if not message.GetOptions().map_entry}


def _local_name(message: Descriptor) -> str:
    return str(message.full_name).removeprefix(f"{message.file.package}.")


def _is_synthetic(oneof: OneofDescriptor) -> bool:
    """Returns whether the compiler generated the oneof, for an optional field of proto3."""
    return len(oneof.fields) == 1 and oneof.name == f"_{oneof.fields[0].name.lstrip('_')}"


def _oneof_of(one: FieldDescriptor) -> OneofDescriptor | None:
    oneof = one.containing_oneof
    return None if oneof is None or _is_synthetic(oneof) else oneof


def _within(one: FieldDescriptor, path: str) -> str:
    oneof = _oneof_of(one)
    return path if oneof is None else f"{path}/{oneof.name}"


def _kind(one: FieldDescriptor) -> str:
    if one.message_type is None:
        return "scalar"
    return "map" if one.message_type.GetOptions().map_entry else "message"


def _type_name(one: FieldDescriptor) -> str:
    named: Descriptor | EnumDescriptor | None = one.message_type or one.enum_type
    if named is None:
        return _SCALAR_NAMES[one.type]
    return "a map" if _kind(one) == "map" else str(named.full_name)


def _times(one: FieldDescriptor) -> str:
    return "repeated" if one.is_repeated else "single"


def _scalar_group(one: FieldDescriptor) -> str:
    return _GROUPS[one.type]


_GROUPS = {
    FieldDescriptor.TYPE_INT32: "number",
    FieldDescriptor.TYPE_INT64: "number",
    FieldDescriptor.TYPE_UINT32: "number",
    FieldDescriptor.TYPE_UINT64: "number",
    FieldDescriptor.TYPE_BOOL: "number",
    FieldDescriptor.TYPE_ENUM: "number",
    FieldDescriptor.TYPE_SINT32: "zigzag number",
    FieldDescriptor.TYPE_SINT64: "zigzag number",
    FieldDescriptor.TYPE_STRING: "string or bytes",
    FieldDescriptor.TYPE_BYTES: "string or bytes",
    FieldDescriptor.TYPE_FIXED32: "fixed 32 bits",
    FieldDescriptor.TYPE_SFIXED32: "fixed 32 bits",
    FieldDescriptor.TYPE_FIXED64: "fixed 64 bits",
    FieldDescriptor.TYPE_SFIXED64: "fixed 64 bits",
    FieldDescriptor.TYPE_FLOAT: "float",
    FieldDescriptor.TYPE_DOUBLE: "double",
}
"""Scalars of one group have the same encoding, so one can read the other."""
_SCALAR_NAMES = {
    getattr(FieldDescriptor, name): name.removeprefix("TYPE_").lower()
    for name in dir(FieldDescriptor)
    if name.startswith("TYPE_")
}
