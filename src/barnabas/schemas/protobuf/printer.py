"""Prints a FileDescriptorProto as .proto text, in the layout of Confluent's registry.

Parts have a fixed order, with a blank line before each kind. Types have their full names. Parts
that the compiler generated are printed as their source: map entries, the oneof of an optional
field, groups.
"""

from collections.abc import Iterable, Iterator, Sequence

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    Edition,
    EnumDescriptorProto,
    EnumValueDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    MethodDescriptorProto,
    OneofDescriptorProto,
    ServiceDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool

from barnabas.schemas.protobuf.options import OptionsPrinter, quote

FIELD_END = 2**29
"""One past the highest field number: `max` in a range."""
ENUM_END = 2**31 - 1
"""The highest number of an enum: ranges of enums include their end."""

_LABELS = {
    FieldDescriptorProto.LABEL_REPEATED: "repeated ",
    FieldDescriptorProto.LABEL_REQUIRED: "required ",
}
_SCALARS = {
    number: name.removeprefix("TYPE_").lower() for name, number in FieldDescriptorProto.Type.items()
}


def print_file(
    file: FileDescriptorProto, pool: DescriptorPool, *, sort_options: bool = False
) -> str:
    """`pool` must have the custom options that the file uses."""
    printer = _Printer(file, OptionsPrinter(pool, sort=sort_options))
    return "".join(f"{line}\n" for line in printer.file(file))


class _Printer:
    def __init__(self, file: FileDescriptorProto, options: OptionsPrinter) -> None:
        self._options = options
        self._proto3 = file.syntax == "proto3"
        self._editions = file.syntax == "editions"

    def file(self, file: FileDescriptorProto) -> Iterator[str]:
        if self._editions:
            yield f'edition = "{_edition(file)}";'
        else:
            yield f'syntax = "{file.syntax or "proto2"}";'
        if file.package:
            yield f"package {file.package};"
        yield from _section(_imports(file))
        yield from _section(self._options.option_statements(file.options))
        groups = _group_names(file.extension, file.message_type)
        own = [message for message in file.message_type if message.name not in groups]
        types = [line for message in own for line in self._message(message)]
        types += [line for enum in file.enum_type for line in self._enum(enum)]
        yield from _section(types)
        yield from _section(self._extends(file.extension, file.message_type))
        yield from _section(line for service in file.service for line in self._service(service))

    def _message(self, message: DescriptorProto) -> Iterator[str]:
        yield from _block(f"message {message.name}", self._members(message))

    def _members(self, message: DescriptorProto) -> list[Iterable[str]]:
        """Returns the sections of a message's body."""
        groups = _group_names([*message.field, *message.extension], message.nested_type)
        plain = [field for field in message.field if not _in_oneof(field)]
        synthetic = {field.oneof_index for field in message.field if field.proto3_optional}
        own = [one for one in message.nested_type if one.name not in groups]
        late = own[_after_last_entry(own) :]
        shown = self._fields(plain, own[: len(own) - len(late)])
        grouped = [
            line
            for field in plain
            if field.type == FieldDescriptorProto.TYPE_GROUP
            for line in self._group(field, message.nested_type)
        ]
        oneofs = [
            line
            for index, oneof in enumerate(message.oneof_decl)
            if index not in synthetic
            for line in self._oneof(oneof, index, message)
        ]
        nested = [line for inner in late for line in self._message(inner)]
        nested += [line for enum in message.enum_type for line in self._enum(enum)]
        return [
            _reserved(message.reserved_range, message.reserved_name, FIELD_END, self._editions),
            self._options.option_statements(message.options),
            *shown,
            oneofs,
            grouped,
            self._extension_ranges(message),
            self._extends(message.extension, message.nested_type),
            nested,
        ]

    def _fields(
        self, fields: Iterable[FieldDescriptorProto], early: Iterable[DescriptorProto]
    ) -> list[list[str]]:
        """Returns fields, and the messages that must be between map fields.

        A map's entry type is a message too, and payloads identify messages by their index.
        """
        remaining = [field for field in fields if field.type != FieldDescriptorProto.TYPE_GROUP]
        early = list(early)
        entries = {one.name: one for one in early if _is_entry(one)}
        sections: list[list[str]] = [[]]
        for message in early:
            if not _is_entry(message):
                sections += [list(self._message(message)), []]
                continue
            ends = [i for i, field in enumerate(remaining) if _local_type(field) == message.name]
            for _ in range(ends[0] + 1 if ends else 0):
                sections[-1] += self._field(remaining.pop(0), entries)
        sections[-1] += [line for field in remaining for line in self._field(field, entries)]
        return sections

    def _oneof(
        self, oneof: OneofDescriptorProto, index: int, message: DescriptorProto
    ) -> Iterator[str]:
        members = [field for field in message.field if _in_oneof(field)]
        mine = [field for field in members if field.oneof_index == index]
        fields = [
            line
            for field in mine
            for line in (
                self._group(field, message.nested_type)
                if field.type == FieldDescriptorProto.TYPE_GROUP
                else self._field(field, {}, label="")
            )
        ]
        statements = self._options.option_statements(oneof.options)
        yield from _block(f"oneof {oneof.name}", [statements, fields])

    def _field(
        self,
        field: FieldDescriptorProto,
        entries: dict[str, DescriptorProto],
        label: str | None = None,
    ) -> Iterator[str]:
        kind = _type(field)
        entry = entries.get(_local_type(field))
        if entry is not None and _repeated(field):
            key, value = entry.field
            kind, label = f"map<{_type(key)}, {_type(value)}>", ""
        if label is None:
            label = self._label(field)
        yield from self._with_options(
            f"{label}{kind} {field.name} = {field.number}", self._options.field_options(field)
        )

    def _label(self, field: FieldDescriptorProto) -> str:
        if field.label != FieldDescriptorProto.LABEL_OPTIONAL:
            return _LABELS[field.label]
        if self._editions or (self._proto3 and not field.proto3_optional):
            return ""
        return "optional "

    def _group(
        self, field: FieldDescriptorProto, nested: Sequence[DescriptorProto]
    ) -> Iterator[str]:
        name = _local_type(field)
        body = next(message for message in nested if message.name == name)
        label = "" if _in_oneof(field) else self._label(field)
        options = self._options.field_options(field)
        marked = f" [{', '.join(options)}]" if options else ""
        yield from _block(f"{label}group {name} = {field.number}{marked}", self._members(body))

    def _extension_ranges(self, message: DescriptorProto) -> Iterator[str]:
        for one in message.extension_range:
            options = self._options.option_assignments(one.options)
            yield from self._with_options(
                f"extensions {_range(one.start, one.end - 1, FIELD_END - 1)}", options
            )

    def _extends(
        self, extensions: Iterable[FieldDescriptorProto], nested: Sequence[DescriptorProto]
    ) -> Iterator[str]:
        by_extendee: dict[str, list[str]] = {}
        for field in extensions:
            lines = by_extendee.setdefault(field.extendee, [])
            if field.type == FieldDescriptorProto.TYPE_GROUP:
                lines += self._group(field, nested)
            else:
                lines += self._field(field, {})
        for extendee, fields in by_extendee.items():
            yield from _block(f"extend {extendee}", [fields])

    def _enum(self, enum: EnumDescriptorProto) -> Iterator[str]:
        reserved = _reserved(enum.reserved_range, enum.reserved_name, ENUM_END, self._editions)
        head = [*reserved, *self._options.option_statements(enum.options)]
        values = [line for value in enum.value for line in self._enum_value(value)]
        yield from _block(f"enum {enum.name}", [[*head, *values]])

    def _enum_value(self, value: EnumValueDescriptorProto) -> Iterator[str]:
        options = self._options.option_assignments(value.options)
        yield from self._with_options(f"{value.name} = {value.number}", options)

    def _service(self, service: ServiceDescriptorProto) -> Iterator[str]:
        methods = [line for method in service.method for line in self._method(method)]
        statements = self._options.option_statements(service.options)
        yield from _block(f"service {service.name}", [statements, methods])

    def _method(self, method: MethodDescriptorProto) -> Iterator[str]:
        request = ("stream " if method.client_streaming else "") + method.input_type
        response = ("stream " if method.server_streaming else "") + method.output_type
        signature = f"rpc {method.name} ({request}) returns ({response})"
        statements = self._options.option_statements(method.options)
        if not statements:
            yield f"{signature};"
            return
        yield f"{signature} {{"
        yield from _indented(statements)
        yield "};"

    def _with_options(self, statement: str, options: Sequence[str]) -> Iterator[str]:
        if not options:
            yield f"{statement};"
        elif len(options) == 1:
            yield f"{statement} [{options[0]}];"
        else:
            yield f"{statement} ["
            yield from (f"  {option}," for option in options[:-1])
            yield f"  {options[-1]}"
            yield "];"


def _imports(file: FileDescriptorProto) -> Iterator[str]:
    public, weak = set(file.public_dependency), set(file.weak_dependency)
    for index, name in enumerate(file.dependency):
        if index not in public:
            yield f"import {'weak ' if index in weak else ''}{quote(name)};"
    for index in file.public_dependency:
        yield f"import public {quote(file.dependency[index])};"
    for name in getattr(file, "option_dependency", ()):  # since edition 2024
        yield f"import option {quote(name)};"


def _edition(file: FileDescriptorProto) -> str:
    return str(Edition.Name(file.edition)).removeprefix("EDITION_")


def _type(field: FieldDescriptorProto) -> str:
    return str(field.type_name) or _SCALARS[field.type]


def _local_type(field: FieldDescriptorProto) -> str:
    return str(field.type_name).rpartition(".")[2]


def _after_last_entry(messages: Sequence[DescriptorProto]) -> int:
    return max((i + 1 for i, one in enumerate(messages) if _is_entry(one)), default=0)


def _repeated(field: FieldDescriptorProto) -> bool:
    return bool(field.label == FieldDescriptorProto.LABEL_REPEATED)


def _in_oneof(field: FieldDescriptorProto) -> bool:
    return bool(field.HasField("oneof_index")) and not field.proto3_optional


def _is_entry(message: DescriptorProto) -> bool:
    return bool(message.options.map_entry)


def _group_names(
    fields: Iterable[FieldDescriptorProto], nested: Iterable[DescriptorProto]
) -> set[str]:
    used = {_local_type(field) for field in fields if field.type == FieldDescriptorProto.TYPE_GROUP}
    return {message.name for message in nested if message.name in used}


def _reserved(
    ranges: Iterable[DescriptorProto.ReservedRange | EnumDescriptorProto.EnumReservedRange],
    names: Iterable[str],
    highest: int,
    bare_names: bool,
) -> list[str]:
    past = 1 if highest == FIELD_END else 0  # ranges of messages exclude their end
    lines = [f"reserved {_range(one.start, one.end - past, highest - past)};" for one in ranges]
    return lines + [f"reserved {name if bare_names else quote(name)};" for name in names]


def _range(first: int, last: int, highest: int) -> str:
    if first == last:
        return str(first)
    return f"{first} to {'max' if last == highest else last}"


def _section(lines: Iterable[str]) -> list[str]:
    section = list(lines)
    return ["", *section] if section else []


def _block(head: str, sections: Iterable[Iterable[str]]) -> Iterator[str]:
    """Puts a blank line between sections."""
    filled = [lines for lines in map(list, sections) if lines]
    if not filled:
        yield f"{head} {{}}"
        return
    yield f"{head} {{"
    for index, lines in enumerate(filled):
        if index:
            yield ""
        yield from _indented(lines)
    yield "}"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield f"  {line}" if line else line
