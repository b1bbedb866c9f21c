"""Prints the options of a descriptor, both standard and custom ones.

Custom options are extensions, which a descriptor has as unknown fields. So each options message is
parsed again with a pool that has the extensions.
"""

from collections.abc import Iterable
from typing import Any

from google.protobuf import text_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

_IMPLIED = {"map_entry"}
"""Implied by the syntax, and not printed as an option."""


class OptionsPrinter:
    def __init__(self, pool: DescriptorPool, *, sort: bool) -> None:
        self._pool = pool
        self._sort = sort

    def option_statements(self, options: Message) -> list[str]:
        return [f"option {one};" for one in self.option_assignments(options)]

    def option_assignments(self, options: Message) -> list[str]:
        """Returns `name = value` for each option."""
        if not options.ByteSize():
            return []
        return self._ordered(
            f"{_name(field)} = {text}"
            for field, value in self._with_extensions(options).ListFields()
            if field.name not in _IMPLIED
            for text in _values(field, value)
        )

    def field_options(self, field: FieldDescriptorProto) -> list[str]:
        """Returns the options of a field, with its default and JSON name as options."""
        assignments = self.option_assignments(field.options)
        if field.HasField("default_value"):
            default = field.default_value
            if field.type == FieldDescriptorProto.TYPE_BYTES:
                default = f'"{default}"'  # is already escaped
            elif field.type == FieldDescriptorProto.TYPE_STRING:
                default = quote(default)
            assignments.append(f"default = {default}")
        if field.HasField("json_name") and field.json_name != implied_json_name(field.name):
            assignments.append(f"json_name = {quote(field.json_name)}")
        return self._ordered(assignments)

    def _ordered(self, assignments: Iterable[str]) -> list[str]:
        return sorted(assignments) if self._sort else list(assignments)

    def _with_extensions(self, options: Message) -> Message:
        try:
            described = self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
        except KeyError:
            return options
        return GetMessageClass(described).FromString(options.SerializeToString())


def quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else _escaped(c) for c in escaped) + '"'


def implied_json_name(name: str) -> str:
    """Returns the name that the compiler derives: lower camel case."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _escaped(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def _name(field: FieldDescriptor) -> str:
    return f"(.{field.full_name})" if field.is_extension else str(field.name)


def _values(field: FieldDescriptor, value: Any) -> list[str]:
    values = value if field.is_repeated else [value]
    return [_value(field, one) for one in values]


def _value(field: FieldDescriptor, value: Any) -> str:
    if field.message_type is not None:
        content = text_format.MessageToString(value, as_one_line=True, as_utf8=True)
        return f"{{ {content} }}"
    if field.enum_type is not None:
        enum_value = field.enum_type.values_by_number.get(value)
        return str(enum_value.name if enum_value else value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bytes):
        return '"' + "".join(f"\\{byte:03o}" for byte in value) + '"'
    return str(value)
