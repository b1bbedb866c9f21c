"""Prints .proto files in the layout of Confluent's registry.

The text identifies a schema, so it must be the same character for character: declarations have a
fixed order, with a blank line before each kind. In a nested message, blank lines are indented too.
"""

from collections.abc import Iterable, Iterator

from barnabas.schemas import SchemaError
from barnabas.schemas.protobuf.syntax import (
    MAX_FIELD_NUMBER,
    Options,
    OptionValue,
    OptionWord,
    ProtoEnum,
    ProtoExtend,
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
from barnabas.schemas.protobuf.tokens import is_name

MAX_BYTES = 4 * 1024 * 1024
"""The size of a schema, and of a schema and its references together."""


def print_file(file: ProtoFile) -> str:
    """Raises SchemaError if the text is too large: escapes and indents may make it so."""
    text = "".join(f"{line}\n" for line in _Printer(file).file(file))
    if len(text) > MAX_BYTES:
        raise SchemaError(f"The printed schema is larger than {MAX_BYTES} bytes.")
    return text


class _Printer:
    def __init__(self, file: ProtoFile) -> None:
        self._has_bare_names = file.edition is not None

    def file(self, file: ProtoFile) -> Iterator[str]:
        if file.edition is not None:
            yield f"edition = {quote(file.edition)};"
        elif file.syntax is not None:
            yield f'syntax = "{file.syntax}";'
        if file.package:
            yield f"package {file.package};"
        yield from _section(_imports(file))
        yield from _section(_option_statements(file.options))
        types = [line for message in file.messages for line in self._message(message)]
        types += [line for enum in file.enums for line in self._enum(enum)]
        yield from _section(types)
        yield from _section(line for extend in file.extends for line in self._extend(extend))
        yield from _section(line for service in file.services for line in self._service(service))

    def _message(self, message: ProtoMessage) -> Iterator[str]:
        yield from _block(f"message {message.name}", self._members(message))

    def _members(self, message: ProtoMessage) -> list[Iterable[str]]:
        """Returns the sections of a message's body."""
        nested = [line for inner in message.messages for line in self._message(inner)]
        nested += [line for enum in message.enums for line in self._enum(enum)]
        return [
            self._reserved(message.reserved),
            _option_statements(message.options),
            [line for field in message.fields for line in _field(field)],
            [line for oneof in message.oneofs for line in self._oneof(oneof)],
            [line for group in message.groups for line in self._group(group)],
            [
                line
                for one in message.extensions
                for line in _statement(f"extensions {_ranges(one.values)}", one.options)
            ],
            [line for extend in message.extends for line in self._extend(extend)],
            nested,
        ]

    def _oneof(self, oneof: ProtoOneof) -> Iterator[str]:
        fields = [line for field in oneof.fields for line in _field(field)]
        groups = [line for group in oneof.groups for line in self._group(group)]
        yield from _block(
            f"oneof {oneof.name}", [_option_statements(oneof.options), fields, groups]
        )

    def _group(self, group: ProtoGroup) -> Iterator[str]:
        label = f"{group.label} " if group.label else ""
        head = f"{label}group {group.message.name} = {group.number}"
        if group.options:
            head += f" {_list([*group.options])}"
        yield from _block(head, self._members(group.message))

    def _extend(self, extend: ProtoExtend) -> Iterator[str]:
        fields = [line for field in extend.fields for line in _field(field)]
        groups = [line for group in extend.groups for line in self._group(group)]
        yield from _block(f"extend {extend.extendee}", [[*fields, *groups]])

    def _enum(self, enum: ProtoEnum) -> Iterator[str]:
        lines = [*self._reserved(enum.reserved), *_option_statements(enum.options)]
        for value in enum.values:
            lines += _statement(f"{value.name} = {value.number}", value.options)
        yield from _block(f"enum {enum.name}", [lines])

    def _reserved(self, reserved: Iterable[tuple[ReservedValue, ...]]) -> list[str]:
        return [f"reserved {_ranges(values, bare=self._has_bare_names)};" for values in reserved]

    def _service(self, service: ProtoService) -> Iterator[str]:
        rpcs = [line for rpc in service.rpcs for line in _rpc(rpc)]
        yield from _block(f"service {service.name}", [_option_statements(service.options), rpcs])


def _imports(file: ProtoFile) -> Iterator[str]:
    yield from (f"import {quote(name)};" for name in file.imports)
    yield from (f"import weak {quote(name)};" for name in file.weak_imports)
    yield from (f"import public {quote(name)};" for name in file.public_imports)


def _field(field: ProtoField) -> Iterator[str]:
    label = f"{field.label} " if field.label else ""
    kind = field.type if field.key_type is None else f"map<{field.key_type}, {field.type}>"
    yield from _statement(f"{label}{kind} {field.name} = {field.number}", field_options(field))


def field_options(field: ProtoField) -> Options:
    """Returns the options of a field, with its default and JSON name as options."""
    options = list(field.options)
    if field.default is not None:
        options.append(ProtoOption("default", field.default))
    if field.json_name is not None:
        options.append(ProtoOption("json_name", field.json_name))
    return tuple(options)


def _rpc(rpc: ProtoRpc) -> Iterator[str]:
    request = ("stream " if rpc.request_streams else "") + rpc.request
    response = ("stream " if rpc.response_streams else "") + rpc.response
    signature = f"rpc {rpc.name} ({request}) returns ({response})"
    if not rpc.options:
        yield f"{signature};"
        return
    yield f"{signature} {{"
    yield from _indented(_option_statements(rpc.options))
    yield "};"


def _option_statements(options: Options) -> list[str]:
    return [line for option in options for line in f"option {_option(option)};".split("\n")]


def _statement(head: str, options: Options) -> list[str]:
    return (f"{head} {_list([*options])};" if options else f"{head};").split("\n")


def _option(option: ProtoOption) -> str:
    name = f"({option.name})" if option.is_custom else option.name
    match option.value:
        case ProtoOption() as nested:
            return f"{name}.{_option(nested)}"
        case list() as values:
            return f"{name} = {_list(values)}"
        case value:
            return f"{name} = {_value(value)}"


def _list(values: list[OptionValue]) -> str:
    if len(values) == 1:
        return f"[{_value(values[0])}]"
    return f"[\n{_lines(map(_value, values))}]"


def _value(value: OptionValue) -> str:
    match value:
        case str():
            return quote(value)
        case OptionWord(text):
            return text
        case ProtoOption():
            return _option(value)
        case dict():
            return f"{{\n{_lines(f'{name}: {_value(one)}' for name, one in value.items())}}}"
        case list():
            return f"[\n{_lines(map(_value, value))}]"


def _lines(values: Iterable[str]) -> str:
    """Returns indented lines, with commas between the values."""
    text = ",\n".join(values)
    return "".join(f"  {line}\n" for line in text.split("\n")) if text else ""


def _ranges(values: Iterable[ReservedValue], *, bare: bool = False) -> str:
    return ", ".join(_range(value, bare=bare) for value in values)


def _range(value: ReservedValue, *, bare: bool) -> str:
    match value:
        case str():
            return value if bare and is_name(value) else quote(value)
        case int():
            return str(value)
        case first, last:
            return f"{first} to {last if last < MAX_FIELD_NUMBER else 'max'}"


_ESCAPES = str.maketrans(
    {
        "\\": r"\\",
        '"': r"\"",
        "'": r"\'",
        "\a": r"\a",
        "\b": r"\b",
        "\f": r"\f",
        "\n": r"\n",
        "\r": r"\r",
        "\t": r"\t",
        "\v": r"\v",
    }
)


def quote(text: str) -> str:
    escaped = text.translate(_ESCAPES)
    return '"' + "".join(c if c.isprintable() else _octal(c) for c in escaped) + '"'


def _octal(character: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in character.encode(errors="surrogateescape"))


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
        yield f"  {line}"
