"""Parses the options of .proto text: `option a = 1;`, `[a = 1]`, and values in text format."""

from barnabas.schemas.protobuf.syntax import Options, OptionValue, OptionWord, ProtoOption
from barnabas.schemas.protobuf.tokens import TokenKind, TokenReader


def parse_bracketed_options(tokens: TokenReader) -> Options:
    """Parses `[a = 1, (b).c = 2]`, or nothing."""
    if not tokens.skip("["):
        return ()
    options = [parse_option(tokens)]
    while tokens.skip(","):
        options.append(parse_option(tokens))
    tokens.require("]")
    return tuple(options)


def parse_option(tokens: TokenReader) -> ProtoOption:
    """Parses `name = value`. A name that goes on after an extension is a nested option."""
    names = [_name_part(tokens)]
    while tokens.skip("."):
        names.append(_name_part(tokens))
        tokens.require_few_parts(len(names))
    tokens.require("=")
    value = _value(tokens)
    for name, is_custom in reversed(names[1:]):
        value = ProtoOption(name, value, is_custom)
    name, is_custom = names[0]
    return ProtoOption(name, value, is_custom)


def _name_part(tokens: TokenReader) -> tuple[str, bool]:
    """Returns a name, and whether it is an extension. `features.a` is one part."""
    if tokens.skip("("):
        extension = tokens.take_dotted_name("the name of an option")
        tokens.require(")")
        return extension, True
    return tokens.take_name("the name of an option"), False


def _value(tokens: TokenReader) -> OptionValue:
    tokens.enter()
    tokens.step()
    try:
        if tokens.at("{") or tokens.at("<"):
            return _message(tokens)
        if tokens.at("["):
            return _list(tokens)
        if tokens.kind is TokenKind.STRING:
            return tokens.take_string("a string")
        return _word(tokens)
    finally:
        tokens.leave()


def _word(tokens: TokenReader) -> OptionWord:
    sign = "-" if tokens.skip("-") else ""
    if tokens.kind is TokenKind.NUMBER:
        return OptionWord(sign + tokens.take(), is_number=True)
    return OptionWord(sign + tokens.take_name("a value"), is_number=bool(sign))


def _list(tokens: TokenReader) -> list[OptionValue]:
    tokens.require("[")
    values: list[OptionValue] = []
    while not tokens.skip("]"):
        values.append(_value(tokens))
        if not tokens.at("]"):
            tokens.require(",")
    return values


def _message(tokens: TokenReader) -> dict[str, OptionValue]:
    """Parses a message in text format. Values of a repeated name are one list."""
    closing = "}" if tokens.take() == "{" else ">"
    fields: dict[str, OptionValue] = {}
    while not tokens.skip(closing):
        name = _field_name(tokens)
        if not (tokens.at("{") or tokens.at("<")):
            tokens.require(":")
        _add(fields, name, _value(tokens))
        if not tokens.skip(","):
            tokens.skip(";")
    return fields


def _field_name(tokens: TokenReader) -> str:
    """Returns a name, or `[name]` for an extension and for the type of an Any."""
    if not tokens.skip("["):
        return tokens.take_name("the name of a field")
    name = tokens.take_dotted_name("the name of an extension")
    while tokens.skip("/"):
        name += "/" + tokens.take_dotted_name("the name of a type")
    tokens.require("]")
    return f"[{name}]"


def _add(fields: dict[str, OptionValue], name: str, value: OptionValue) -> None:
    if name not in fields:
        fields[name] = value
        return
    previous = fields[name]
    if not isinstance(previous, list):
        previous = fields[name] = [previous]
    if isinstance(value, list):
        previous.extend(value)
    else:
        previous.append(value)
