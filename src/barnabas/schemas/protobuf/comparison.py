"""Compares Protobuf schemas. The names of differences are Confluent's.

Fields with the same number are the same field. Paths are `#/Message/1`, `#/Outer/Inner/2` or, in a
oneof, `#/Message/oneof/3`. Adding, removing and renaming fields is compatible. Nothing needs to be
resolved: two types that are not defined are the same if they have the same name.

Every pair of messages is compared once: schemas are untrusted, and following every path through
their types could take exponential time. If two messages differ, the fields that use them are
reported as well.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from barnabas.schemas import Incompatibility
from barnabas.schemas.protobuf.field_types import (
    FieldType,
    FieldView,
    list_fields,
    resolve_field_type,
)
from barnabas.schemas.protobuf.linker import MAIN_FILE
from barnabas.schemas.protobuf.syntax import ProtoFile, ProtoMessage
from barnabas.schemas.protobuf.type_table import TypeEntry, TypeTable, join_names


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


def incompatibilities(
    written: ProtoFile, written_types: TypeTable, reading: ProtoFile, reading_types: TypeTable
) -> list[Incompatibility]:
    """Returns why data of messages in `written` cannot be read with those in `reading`."""
    comparison = _Comparison(written_types, reading_types)
    if written.package != reading.package:
        comparison.report(
            ProtobufDifference.PACKAGE_CHANGED,
            "#/",
            f"the package is {reading.package!r} in the {{reader}} schema,"
            f" {written.package!r} in the {{writer}} schema",
        )
    comparison.messages(
        _entries(written.messages, written.package, written.package, MAIN_FILE),
        _entries(reading.messages, reading.package, reading.package, MAIN_FILE),
        "#",
    )
    comparison.run()
    return comparison.incompatibilities


_Pair: TypeAlias = tuple[str, str]
_Fields: TypeAlias = dict[int, FieldView]


@dataclass(slots=True)
class _Comparison:
    _written_types: TypeTable
    _reading_types: TypeTable
    incompatibilities: list[Incompatibility] = field(default_factory=list)
    _queued: list[tuple[TypeEntry, TypeEntry]] = field(default_factory=list)
    _seen: set[_Pair] = field(default_factory=set)
    _differing: set[_Pair] = field(default_factory=set)
    _uses: dict[_Pair, list[tuple[_Pair, str, str]]] = field(default_factory=dict)
    """By pair of messages: the pairs with a field of that type, and the field's path and name."""
    _current: _Pair = ("", "")

    def run(self) -> None:
        for written, reading in self._queued:  # which grows meanwhile
            self._current = (written.full_name, reading.full_name)
            self._message(written, reading, f"#/{reading.local_name.replace('.', '/')}")
        self._report_users()

    def report(self, difference: ProtobufDifference, path: str, description: str) -> None:
        self.incompatibilities.append(
            Incompatibility(difference, f"At {path}: {description}.", path)
        )
        self._differing.add(self._current)

    def messages(
        self, written: Iterable[TypeEntry], reading: Iterable[TypeEntry], path: str
    ) -> None:
        reading_by_name = {entry.node.name: entry for entry in reading}
        for entry in written:
            name = entry.node.name
            if name in reading_by_name:
                self._compare_later(entry, reading_by_name[name])
            else:
                self.report(
                    ProtobufDifference.MESSAGE_REMOVED,
                    f"{path}/{name}",
                    f"the {{reader}} schema has no message {name}",
                )

    def _compare_later(self, written: TypeEntry, reading: TypeEntry) -> _Pair:
        pair = (written.full_name, reading.full_name)
        if pair not in self._seen:
            self._seen.add(pair)
            self._queued.append((written, reading))
        return pair

    def _message(self, written: TypeEntry, reading: TypeEntry, path: str) -> None:
        assert isinstance(written.node, ProtoMessage)
        assert isinstance(reading.node, ProtoMessage)
        before = list_fields(written.node, written.full_name)
        now = list_fields(reading.node, reading.full_name)
        self._oneofs(before, now, path)
        kept = {one.oneof for number, one in before.items() if number in now}
        kept |= {oneof.name for oneof in reading.node.oneofs}
        for number in sorted({*before, *now}):
            if number not in now:
                self._removed(before[number], kept, path)
            elif number not in before:
                self._added(now[number], path)
            else:
                self._field(before[number], now[number], now[number].path_in(path))
        self.messages(
            _nested_entries(written, written.node),
            _nested_entries(reading, reading.node),
            path,
        )

    def _oneofs(self, before: _Fields, now: _Fields, path: str) -> None:
        """Reports fields that could be set together, and of which only one can be set now."""
        members: dict[str, list[FieldView]] = {}
        for number, one in now.items():
            if one.oneof is not None and number in before:
                members.setdefault(one.oneof, []).append(before[number])
        for name, old in members.items():
            alone = [one for one in old if one.oneof is None]
            if len(alone) + len({one.oneof for one in old} - {None}) <= 1:
                continue
            names = ", ".join(one.name for one in old)
            self.report(
                ProtobufDifference.MULTIPLE_FIELDS_MOVED_TO_ONEOF
                if len(alone) > 1
                else ProtobufDifference.FIELD_MOVED_TO_EXISTING_ONEOF,
                f"{path}/{name}",
                f"of the fields {names}, which can be set together in the {{writer}} schema,"
                f" only one can be set in the {{reader}} schema: they are in oneof {name}",
            )

    def _removed(self, written: FieldView, kept_oneofs: set[str | None], path: str) -> None:
        where = written.path_in(path)
        if written.oneof is None and written.label == "required":
            self.report(
                ProtobufDifference.REQUIRED_FIELD_REMOVED,
                where,
                f"the {{reader}} schema has no field {written.name}, required in the"
                " {writer} schema",
            )
        elif written.oneof is not None and written.oneof in kept_oneofs:
            self.report(
                ProtobufDifference.ONEOF_FIELD_REMOVED,
                where,
                f"the {{reader}} schema has no field {written.name}, which is in oneof"
                f" {written.oneof} of the {{writer}} schema",
            )

    def _added(self, reading: FieldView, path: str) -> None:
        if reading.label == "required":
            self.report(
                ProtobufDifference.REQUIRED_FIELD_ADDED,
                reading.path_in(path),
                f"field {reading.name} is required, and not in the {{writer}} schema",
            )

    def _field(self, written: FieldView, reading: FieldView, path: str) -> None:
        before = resolve_field_type(written, self._written_types)
        now = resolve_field_type(reading, self._reading_types)
        self._types(before, now, reading.name, path)
        if (
            written.label is not None
            and reading.label is not None
            and written.label != reading.label
            and before.scalar_group == now.scalar_group
            and now.is_number
        ):
            self.report(
                ProtobufDifference.FIELD_NUMERIC_LABEL_CHANGED,
                path,
                f"field {reading.name} is {reading.label} in the {{reader}} schema,"
                f" {written.label} in the {{writer}} schema",
            )

    def _types(self, before: FieldType, now: FieldType, name: str, path: str) -> None:
        description = (
            f"field {name} is {now.description} in the {{reader}} schema,"
            f" {before.description} in the {{writer}} schema"
        )
        if before.kind != now.kind:
            self.report(ProtobufDifference.FIELD_KIND_CHANGED, path, description)
        elif before.scalar_group != now.scalar_group:
            self.report(ProtobufDifference.FIELD_SCALAR_KIND_CHANGED, path, description)
        elif before.parts and now.parts:
            for part_before, part_now in zip(before.parts, now.parts, strict=True):
                self._types(part_before, part_now, name, path)
        elif before.local_name != now.local_name:
            self.report(ProtobufDifference.FIELD_NAMED_TYPE_CHANGED, path, description)
        elif before.message is not None and now.message is not None:
            pair = self._compare_later(before.message, now.message)
            self._uses.setdefault(pair, []).append((self._current, path, name))

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


def _nested_entries(entry: TypeEntry, message: ProtoMessage) -> list[TypeEntry]:
    return _entries(message.messages, entry.full_name, entry.package, entry.file_name)


def _entries(
    messages: Iterable[ProtoMessage], scope: str, package: str, file_name: str
) -> list[TypeEntry]:
    """Returns the entries of messages, without the types of maps.

    The type table may have another type of that name: a second file can declare it too.
    """
    return [
        TypeEntry(join_names(scope, one.name), package, file_name, one)
        for one in messages
        if not one.is_map_entry
    ]
