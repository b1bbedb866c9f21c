"""Parses .proto text of proto2, proto3 and editions.

Accepts more than a compiler does, because Confluent's registry does: it resolves no import, type or
option, and does not compare numbers or names of fields. `ProtobufSchema.require_resolved` checks
what new schemas must not have.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from barnabas.schemas.protobuf.option_parser import parse_bracketed_options, parse_option
from barnabas.schemas.protobuf.syntax import (
    MAX_ENUM_NUMBER,
    MAX_FIELD_NUMBER,
    OptionValue,
    ProtoEnum,
    ProtoEnumValue,
    ProtoExtend,
    ProtoExtensions,
    ProtoField,
    ProtoFile,
    ProtoGroup,
    ProtoMessage,
    ProtoOneof,
    ProtoOption,
    ProtoRpc,
    ProtoService,
    ReservedValue,
)
from barnabas.schemas.protobuf.tokens import TokenKind, TokenReader

_LABELS = ("required", "optional", "repeated")
_SYNTAXES = ("proto2", "proto3")


def parse_text(text: str) -> ProtoFile:
    """Raises SchemaError, with a line and a column."""
    return _Parser(text).file()


@dataclass(slots=True)
class _Members:
    """The declarations of a file, a message or an extend, while it is parsed."""

    options: list[ProtoOption] = field(default_factory=list)
    reserved: list[tuple[ReservedValue, ...]] = field(default_factory=list)
    fields: list[ProtoField] = field(default_factory=list)
    oneofs: list[ProtoOneof] = field(default_factory=list)
    groups: list[ProtoGroup] = field(default_factory=list)
    extensions: list[ProtoExtensions] = field(default_factory=list)
    extends: list[ProtoExtend] = field(default_factory=list)
    messages: list[ProtoMessage] = field(default_factory=list)
    enums: list[ProtoEnum] = field(default_factory=list)
    services: list[ProtoService] = field(default_factory=list)


T = TypeVar("T")


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = TokenReader(text)
        self._syntax: str | None = None
        self._edition: str | None = None
        self._package = ""
        self._imports: dict[str, list[str]] = {"": [], "weak": [], "public": []}
        self._defined: list[set[str]] = [set()]  # the types of the file, and of open messages

    def file(self) -> ProtoFile:
        tokens, members = self._tokens, _Members()
        self._read_syntax()
        while tokens.kind is not TokenKind.END:
            if not tokens.skip(";"):
                tokens.step()
                self._file_member(members)
        return ProtoFile(
            syntax=self._syntax,
            edition=self._edition,
            package=self._package,
            imports=tuple(self._imports[""]),
            weak_imports=tuple(self._imports["weak"]),
            public_imports=tuple(self._imports["public"]),
            options=tuple(members.options),
            messages=tuple(members.messages),
            enums=tuple(members.enums),
            extends=tuple(members.extends),
            services=tuple(members.services),
        )

    def _read_syntax(self) -> None:
        tokens = self._tokens
        while tokens.skip(";"):
            pass
        if not (tokens.at("syntax") or tokens.at("edition")):
            return
        kind = tokens.take()
        tokens.require("=")
        offset, value = tokens.offset, tokens.take_utf8(f"the {kind} in quotes")
        tokens.require(";")
        if kind == "edition":
            self._edition = value
        elif value in _SYNTAXES:
            self._syntax = value
        else:
            raise tokens.error(f'The syntax "{value:.40}" is not proto2 or proto3', offset)

    def _file_member(self, members: _Members) -> None:
        tokens = self._tokens
        if tokens.at("package"):
            tokens.advance()
            self._package = tokens.take_dotted_name("the name of the package")
            tokens.require(";")
        elif tokens.at("import"):
            tokens.advance()
            kind = tokens.take() if tokens.at("weak") or tokens.at("public") else ""
            self._imports[kind].append(tokens.take_utf8("the imported file in quotes"))
            tokens.require(";")
        elif tokens.at("service"):
            members.services.append(self._service())
        elif not self._common_member(members):
            raise tokens.unexpected("a declaration such as message, enum or import")

    def _new_type(self, kind: str) -> str:
        """Parses `message Name`, or an enum or a group. A scope has one type of a name."""
        tokens = self._tokens
        offset = tokens.offset
        tokens.require(kind)
        name = tokens.take_name(f"the name of {'an' if kind == 'enum' else 'a'} {kind}")
        if name in self._defined[-1]:
            raise tokens.error(f"{name:.40} is defined twice", offset)
        self._defined[-1].add(name)
        return name

    def _common_member(self, members: _Members) -> bool:
        """Parses what both files and messages can have. Returns False if it is something else."""
        tokens = self._tokens
        if tokens.at("message"):
            members.messages.append(self._message_body(self._new_type("message")))
        elif tokens.at("enum"):
            members.enums.append(self._enum())
        elif tokens.at("extend"):
            members.extends.append(self._extend())
        elif tokens.at("option"):
            members.options.append(self._option())
        else:
            return False
        return True

    def _message_body(self, name: str) -> ProtoMessage:
        members = _Members()
        self._defined.append(set())
        self._block(self._message_member, members)
        self._defined.pop()
        return ProtoMessage(
            name,
            options=tuple(members.options),
            reserved=tuple(members.reserved),
            fields=tuple(members.fields),
            oneofs=tuple(members.oneofs),
            groups=tuple(members.groups),
            extensions=tuple(members.extensions),
            extends=tuple(members.extends),
            messages=tuple(members.messages),
            enums=tuple(members.enums),
        )

    def _block(self, parse_member: Callable[[T], object], members: T) -> None:
        tokens = self._tokens
        tokens.enter()
        tokens.require("{")
        while not tokens.at("}"):
            if not tokens.skip(";"):
                tokens.step()
                parse_member(members)
        tokens.leave()
        tokens.advance()

    def _message_member(self, members: _Members) -> None:
        tokens = self._tokens
        if tokens.at("oneof"):
            members.oneofs.append(self._oneof())
        elif tokens.at("reserved"):
            members.reserved.append(self._reserved(MAX_FIELD_NUMBER))
        elif tokens.at("extensions"):
            members.extensions.append(self._extensions())
        elif not self._common_member(members):
            self._field_or_group(members)

    def _field_or_group(self, members: _Members) -> None:
        """Parses a field with its label, in a message or an extend."""
        tokens = self._tokens
        offset = tokens.offset
        label = tokens.take() if any(tokens.at(label) for label in _LABELS) else None
        if label == "required" and self._syntax == "proto3":
            raise tokens.error("A field of proto3 cannot be required", offset)
        if tokens.at("group"):
            members.groups.append(self._group(label))
            return
        parsed = self._field(label)
        if parsed.key_type is not None and label is not None:
            raise tokens.error(f"A map cannot be {label}", offset)
        is_proto2 = self._syntax != "proto3" and self._edition is None
        if label is None and parsed.key_type is None and is_proto2:
            raise tokens.error(
                f"The field {parsed.name} of proto2 needs a label: optional, required or repeated",
                offset,
            )
        members.fields.append(parsed)

    def _field(self, label: str | None) -> ProtoField:
        tokens = self._tokens
        offset, key_type = tokens.offset, None
        type_name = tokens.take_dotted_name("the type of a field")
        if type_name == "map" and tokens.skip("<"):
            key_type = tokens.take_dotted_name("the type of a map's keys")
            tokens.require(",")
            offset = tokens.offset
            type_name = tokens.take_dotted_name("the type of a map's values")
            tokens.require(">")
        name = tokens.take_name("the name of a field")
        tokens.require("=")
        number = tokens.take_integer("the number of a field", 0, MAX_FIELD_NUMBER)
        options = parse_bracketed_options(tokens)
        tokens.require(";")
        json_name = _take_option(options, "json_name")
        return ProtoField(
            name,
            number,
            type_name,
            label=label,
            key_type=key_type,
            default=_take_option(options, "default"),
            json_name=json_name if isinstance(json_name, str) else None,
            options=tuple(option for option in options if not _is_own_field(option)),
            offset=offset,
        )

    def _group(self, label: str | None) -> ProtoGroup:
        tokens = self._tokens
        name = self._new_type("group")
        tokens.require("=")
        number = tokens.take_integer("the number of a group", 0, MAX_FIELD_NUMBER)
        options = parse_bracketed_options(tokens)
        return ProtoGroup(number, self._message_body(name), label, options)

    def _oneof(self) -> ProtoOneof:
        self._tokens.require("oneof")
        name = self._tokens.take_name("the name of a oneof")
        members = _Members()
        self._block(self._oneof_member, members)
        return ProtoOneof(
            name, tuple(members.options), tuple(members.fields), tuple(members.groups)
        )

    def _oneof_member(self, members: _Members) -> None:
        if self._tokens.at("option"):
            members.options.append(self._option())
        elif self._tokens.at("group"):
            members.groups.append(self._group(None))
        else:
            members.fields.append(self._field(None))

    def _extend(self) -> ProtoExtend:
        tokens = self._tokens
        tokens.require("extend")
        offset, extendee = tokens.offset, tokens.take_dotted_name("the extended message")
        members = _Members()
        self._block(self._field_or_group, members)
        return ProtoExtend(extendee, tuple(members.fields), tuple(members.groups), offset)

    def _enum(self) -> ProtoEnum:
        name = self._new_type("enum")
        members, values = _Members(), list[ProtoEnumValue]()

        def parse_member(_: object) -> None:
            if self._tokens.at("option"):
                members.options.append(self._option())
            elif self._tokens.at("reserved"):
                members.reserved.append(self._reserved(MAX_ENUM_NUMBER))
            else:
                values.append(self._enum_value())

        self._block(parse_member, None)
        return ProtoEnum(name, tuple(members.options), tuple(values), tuple(members.reserved))

    def _enum_value(self) -> ProtoEnumValue:
        tokens = self._tokens
        name = tokens.take_name("the name of an enum's value")
        tokens.require("=")
        number = self._enum_number()
        options = parse_bracketed_options(tokens)
        tokens.require(";")
        return ProtoEnumValue(name, number, options)

    def _enum_number(self) -> int:
        return self._tokens.take_integer(
            "the number of an enum's value", -MAX_ENUM_NUMBER - 1, MAX_ENUM_NUMBER
        )

    def _reserved(self, highest: int) -> tuple[ReservedValue, ...]:
        tokens = self._tokens
        tokens.require("reserved")
        values = [self._reserved_value(highest)]
        while tokens.skip(","):
            values.append(self._reserved_value(highest))
        tokens.require(";")
        return tuple(values)

    def _reserved_value(self, highest: int) -> ReservedValue:
        self._tokens.step()
        if self._tokens.kind is TokenKind.STRING:
            return self._tokens.take_string("a name")
        if self._tokens.kind is TokenKind.NAME:  # without quotes since editions
            return self._tokens.take()
        return self._range(highest)

    def _range(self, highest: int) -> int | tuple[int, int]:
        tokens = self._tokens
        tokens.step()
        first = tokens.take_integer("a number or a name", -MAX_ENUM_NUMBER - 1, highest)
        if not tokens.skip("to"):
            return first
        if tokens.skip("max"):
            return first, highest
        return first, tokens.take_integer("a number or max", first, highest)

    def _extensions(self) -> ProtoExtensions:
        tokens = self._tokens
        tokens.require("extensions")
        values: list[ReservedValue] = [self._range(MAX_FIELD_NUMBER)]
        while tokens.skip(","):
            values.append(self._range(MAX_FIELD_NUMBER))
        options = parse_bracketed_options(tokens)
        tokens.require(";")
        return ProtoExtensions(tuple(values), options)

    def _service(self) -> ProtoService:
        self._tokens.require("service")
        name = self._tokens.take_name("the name of a service")
        members, rpcs = _Members(), list[ProtoRpc]()

        def parse_member(_: object) -> None:
            if self._tokens.at("option"):
                members.options.append(self._option())
            else:
                rpcs.append(self._rpc())

        self._block(parse_member, None)
        return ProtoService(name, tuple(members.options), tuple(rpcs))

    def _rpc(self) -> ProtoRpc:
        tokens = self._tokens
        tokens.require("rpc")
        name = tokens.take_name("the name of an rpc")
        offset = tokens.offset
        request, request_streams = self._rpc_type()
        tokens.require("returns")
        response, response_streams = self._rpc_type()
        options: list[ProtoOption] = []
        if tokens.at("{"):
            self._block(lambda into: into.append(self._option()), options)
        else:
            tokens.require(";")
        return ProtoRpc(
            name, request, response, request_streams, response_streams, tuple(options), offset
        )

    def _rpc_type(self) -> tuple[str, bool]:
        tokens = self._tokens
        tokens.require("(")
        streams = tokens.skip("stream")
        if streams and tokens.skip(")"):  # a message of that name
            return "stream", False
        name = tokens.take_dotted_name("the type of a message")
        tokens.require(")")
        return name, streams

    def _option(self) -> ProtoOption:
        self._tokens.require("option")
        option = parse_option(self._tokens)
        self._tokens.require(";")
        return option


def _take_option(options: tuple[ProtoOption, ...], name: str) -> OptionValue | None:
    for option in options:
        if option.name == name and _is_own_field(option):
            return option.value
    return None


def _is_own_field(option: ProtoOption) -> bool:
    """Returns whether it is an option in text only: a descriptor has a field of its own for it."""
    return option.name in ("default", "json_name") and not option.is_custom
