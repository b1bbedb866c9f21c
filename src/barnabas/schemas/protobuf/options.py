"""Prints the options of a descriptor: the language's own and those that files define.

Options that files define are extensions. A descriptor read without those files keeps them as
bytes, so each options message is read again with a pool that knows them.
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
"""Said by the syntax, and not to be said as an option."""


class OptionsPrinter:
    def __init__(self, pool: DescriptorPool, *, sort: bool) -> None:
        self._pool = pool
        self._sort = sort

    def option_statements(self, options: Message) -> list[str]:
        return [f"option {one};" for one in self.option_assignments(options)]

    def option_assignments(self, options: Message) -> list[str]:
        """`name = value` each."""
        if not options.ByteSize():
            return []
        return self._ordered(
            f"{_name(field)} = {value}"
            for field, found in self._known(options).ListFields()
            if field.name not in _IMPLIED
            for value in _values(field, found)
        )

    def field_options(self, field: FieldDescriptorProto) -> list[str]:
        """Its options, and what is written as if it were one: the default, the JSON name."""
        listed = self.option_assignments(field.options)
        if field.HasField("default_value"):
            default = field.default_value
            if field.type == FieldDescriptorProto.TYPE_BYTES:
                default = f'"{default}"'  # is kept escaped
            elif field.type == FieldDescriptorProto.TYPE_STRING:
                default = quote(default)
            listed.append(f"default = {default}")
        if field.HasField("json_name") and field.json_name != implied_json_name(field.name):
            listed.append(f"json_name = {quote(field.json_name)}")
        return self._ordered(listed)

    def _ordered(self, listed: Iterable[str]) -> list[str]:
        return sorted(listed) if self._sort else list(listed)

    def _known(self, options: Message) -> Message:
        try:
            described = self._pool.FindMessageTypeByName(options.DESCRIPTOR.full_name)
        except KeyError:
            return options
        return GetMessageClass(described).FromString(options.SerializeToString())


def quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else _escaped(c) for c in escaped) + '"'


def implied_json_name(name: str) -> str:
    """What the compiler derives: lower camel case."""
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _escaped(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode())


def _name(field: FieldDescriptor) -> str:
    return f"(.{field.full_name})" if field.is_extension else str(field.name)


def _values(field: FieldDescriptor, found: Any) -> list[str]:
    repeated = found if field.is_repeated else [found]
    return [_value(field, one) for one in repeated]


def _value(field: FieldDescriptor, value: Any) -> str:
    if field.message_type is not None:
        inside = text_format.MessageToString(value, as_one_line=True, as_utf8=True)
        return f"{{ {inside} }}"
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(known.name if known else value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, bytes):
        return '"' + "".join(f"\\{byte:03o}" for byte in value) + '"'
    return str(value)
