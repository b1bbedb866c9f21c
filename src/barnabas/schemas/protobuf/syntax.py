"""The syntax of a .proto file: what its text declares, with nothing resolved.

A name is as it was written: `Line`, `Order.Line` or `.shop.Order.Line`. Imports may lead nowhere,
and options may be unknown. `type_table` resolves names where that is needed. Comments and layout
are not kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias, Union

SCALARS = frozenset(
    [
        "double",
        "float",
        "int32",
        "int64",
        "uint32",
        "uint64",
        "sint32",
        "sint64",
        "fixed32",
        "fixed64",
        "sfixed32",
        "sfixed64",
        "bool",
        "string",
        "bytes",
    ]
)
MAX_FIELD_NUMBER = 2**29 - 1
MAX_ENUM_NUMBER = 2**31 - 1
NO_OFFSET = -1
"""The offset of a declaration that comes from a descriptor."""


@dataclass(slots=True, frozen=True)
class OptionWord:
    """A value without quotes: a number, `true`, or the name of an enum's value."""

    text: str
    is_number: bool = False


OptionValue: TypeAlias = Union[
    str, OptionWord, "ProtoOption", dict[str, "OptionValue"], list["OptionValue"]
]
"""A `ProtoOption` is the rest of a longer name: `(a).b = 1` is an `a` whose value is `b = 1`."""


@dataclass(slots=True, frozen=True)
class ProtoOption:
    name: str
    value: OptionValue
    is_custom: bool = False  # the name is an extension, and has parentheses


Options: TypeAlias = tuple[ProtoOption, ...]
ReservedValue: TypeAlias = int | tuple[int, int] | str
"""A number, a range that includes its end, or a name."""


@dataclass(slots=True, frozen=True)
class ProtoField:
    name: str
    number: int
    type: str  # of the values, if it is a map
    label: str | None = None
    key_type: str | None = None  # of a map
    default: OptionValue | None = None
    json_name: str | None = None
    options: Options = ()
    offset: int = field(default=NO_OFFSET, compare=False)


@dataclass(slots=True, frozen=True)
class ProtoGroup:
    """A field and its message, declared as one. The message's name is the group's."""

    number: int
    message: "ProtoMessage"
    label: str | None = None
    options: Options = ()


@dataclass(slots=True, frozen=True)
class ProtoOneof:
    name: str
    options: Options = ()
    fields: tuple[ProtoField, ...] = ()
    groups: tuple[ProtoGroup, ...] = ()


@dataclass(slots=True, frozen=True)
class ProtoExtend:
    extendee: str
    fields: tuple[ProtoField, ...] = ()
    groups: tuple[ProtoGroup, ...] = ()
    offset: int = field(default=NO_OFFSET, compare=False)


@dataclass(slots=True, frozen=True)
class ProtoExtensions:
    """The numbers that extensions of a message may have."""

    values: tuple[ReservedValue, ...]
    options: Options = ()


@dataclass(slots=True, frozen=True)
class ProtoEnumValue:
    name: str
    number: int
    options: Options = ()


@dataclass(slots=True, frozen=True)
class ProtoEnum:
    name: str
    options: Options = ()
    values: tuple[ProtoEnumValue, ...] = ()
    reserved: tuple[tuple[ReservedValue, ...], ...] = ()


@dataclass(slots=True, frozen=True)
class ProtoMessage:
    name: str
    options: Options = ()
    reserved: tuple[tuple[ReservedValue, ...], ...] = ()
    fields: tuple[ProtoField, ...] = ()
    oneofs: tuple[ProtoOneof, ...] = ()
    groups: tuple[ProtoGroup, ...] = ()
    extensions: tuple[ProtoExtensions, ...] = ()
    extends: tuple[ProtoExtend, ...] = ()
    messages: tuple["ProtoMessage", ...] = ()
    enums: tuple[ProtoEnum, ...] = ()

    @property
    def is_map_entry(self) -> bool:
        """Whether the compiler generated it for a map: descriptors have maps in this form."""
        return any(
            option.name == "map_entry" and option.value == OptionWord("true")
            for option in self.options
        )

    def all_groups(self) -> Iterator[ProtoGroup]:
        """Yields the groups whose messages are nested in this one."""
        yield from self.groups
        for oneof in self.oneofs:
            yield from oneof.groups
        for extend in self.extends:
            yield from extend.groups


@dataclass(slots=True, frozen=True)
class ProtoRpc:
    name: str
    request: str
    response: str
    request_streams: bool = False
    response_streams: bool = False
    options: Options = ()
    offset: int = field(default=NO_OFFSET, compare=False)


@dataclass(slots=True, frozen=True)
class ProtoService:
    name: str
    options: Options = ()
    rpcs: tuple[ProtoRpc, ...] = ()


@dataclass(slots=True, frozen=True)
class ProtoFile:
    syntax: str | None = None  # None is proto2, unless there is an edition
    edition: str | None = None
    package: str = ""
    imports: tuple[str, ...] = ()
    weak_imports: tuple[str, ...] = ()
    public_imports: tuple[str, ...] = ()
    options: Options = ()
    messages: tuple[ProtoMessage, ...] = ()
    enums: tuple[ProtoEnum, ...] = ()
    extends: tuple[ProtoExtend, ...] = ()
    services: tuple[ProtoService, ...] = ()

    @property
    def is_proto3(self) -> bool:
        return self.syntax == "proto3"

    def all_imports(self) -> tuple[str, ...]:
        return (*self.imports, *self.weak_imports, *self.public_imports)
