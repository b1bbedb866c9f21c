"""Reads the tokens of .proto text, one at a time. Errors have a line and a column."""

import re
from enum import Enum

from barnabas.schemas import SchemaError
from barnabas.schemas.bounds import WalkBounds
from barnabas.schemas.protobuf.syntax import NO_OFFSET

MAX_DEPTH = 100
"""Nested messages, groups and option values, and parts of a name."""


MAX_TOKENS = 500_000
"""Tokens of a text: half a second to read."""


class TokenKind(Enum):
    NAME = "name"
    NUMBER = "number"
    STRING = "string"
    SYMBOL = "symbol"
    END = "end"


_SKIPPED = re.compile(r"[ \t\r\n\f\v]+|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r"""
      (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[fF]?)
    | (?P<string>"[^"\\\n]*(?:\\[^\n][^"\\\n]*)*"|'[^'\\\n]*(?:\\[^\n][^'\\\n]*)*')
    | (?P<symbol>[{}()\[\]<>=;:,.-]|/(?!\*))
    """,
    re.VERBOSE | re.ASCII,
)


class TokenReader:
    """Holds the current token. `advance` replaces it by the next one."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._end = 0
        self._depth = 0
        self._count = 0
        self._bounds = WalkBounds("read it")
        self.kind = TokenKind.END
        self.text = ""
        self.offset = 0
        self.advance()

    def advance(self) -> None:
        self.offset = self._end
        while (skipped := _SKIPPED.match(self._text, self.offset)) is not None:
            self.offset = skipped.end()
        self._count += 1
        if self._count > MAX_TOKENS:
            raise self.error(f"The text has more than {MAX_TOKENS} tokens", self.offset)
        token = _TOKEN.match(self._text, self.offset)
        if token is not None:
            self.kind, self.text, self._end = TokenKind(token.lastgroup), token[0], token.end()
        elif self.offset == len(self._text):
            self.kind, self.text, self._end = TokenKind.END, "", self.offset
        else:
            self.kind, self.text = TokenKind.END, self._text[self.offset]
            raise self._error_at_character()

    def take(self) -> str:
        text = self.text
        self.advance()
        return text

    def at(self, text: str) -> bool:
        """Returns whether the current token is this name or symbol."""
        return self.text == text and self.kind is not TokenKind.STRING

    def skip(self, text: str) -> bool:
        if not self.at(text):
            return False
        self.advance()
        return True

    def require(self, text: str) -> None:
        if not self.skip(text):
            raise self.unexpected(f'"{text}"')

    def take_name(self, what: str) -> str:
        if self.kind is not TokenKind.NAME:
            raise self.unexpected(what)
        return self.take()

    def take_dotted_name(self, what: str) -> str:
        """Reads `a.b.c`, with or without a leading dot."""
        parts = [""] if self.skip(".") else []
        parts.append(self.take_name(what))
        while self.skip("."):
            parts.append(self.take_name(what))
            self.require_few_parts(len(parts))
        return ".".join(parts)

    def require_few_parts(self, count: int) -> None:
        if count > MAX_DEPTH:
            raise self.error(f"A name has more than {MAX_DEPTH} parts", self.offset)

    def take_integer(self, what: str, lowest: int, highest: int) -> int:
        offset, sign = self.offset, -1 if self.skip("-") else 1
        if self.kind is not TokenKind.NUMBER:
            raise self.unexpected(what)
        number = _integer(self.text)
        if number is None or not lowest <= sign * number <= highest:
            raise self.error(f"{self.text:.40} is not {what}", offset)
        self.advance()
        return sign * number

    def take_string(self, what: str) -> str:
        """Reads one string or several in a row, which are one."""
        if self.kind is not TokenKind.STRING:
            raise self.unexpected(what)
        content = bytearray()
        while self.kind is TokenKind.STRING:
            content += unescape(self.take()[1:-1])
        return content.decode(errors="surrogateescape")

    def take_utf8(self, what: str) -> str:
        """Reads a string that errors may show: escapes must not make bytes that are not text."""
        offset, content = self.offset, self.take_string(what)
        if not is_utf8(content):
            raise self.error("The string is not UTF-8", offset)
        return content

    def enter(self) -> None:
        """Counts one nested level, until `leave`."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.error("braces are nested too deep", self.offset)

    def leave(self) -> None:
        self._depth -= 1

    def step(self) -> None:
        """Counts one declaration or value."""
        self._bounds.step()

    def unexpected(self, expected: str) -> SchemaError:
        found = f'not "{self.text:.40}"' if self.text else "and the text ends here"
        return self.error(f"Expected {expected}, {found}", self.offset)

    def error(self, message: str, offset: int) -> SchemaError:
        return SchemaError(f"{describe_offset(self._text, offset)}{message}.")

    def _error_at_character(self) -> SchemaError:
        if self.text in "\"'":
            message = "The string has no end on its line"
        elif self._text.startswith("/*", self.offset):
            message = "The comment has no end"
        else:
            message = f"{self.text!r} has no meaning in .proto text"
        return self.error(message, self.offset)


def is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_name(text: str) -> bool:
    token = _TOKEN.fullmatch(text)
    return token is not None and token.lastgroup == "name"


def describe_offset(text: str, offset: int) -> str:
    """Returns `line 3, column 5: `, or nothing if the offset is not known."""
    if offset == NO_OFFSET:
        return ""
    line = text.count("\n", 0, offset) + 1
    column = offset - text.rfind("\n", 0, offset)
    return f"line {line}, column {column}: "


def _integer(text: str) -> int | None:
    if text[:2] in ("0x", "0X"):
        return int(text, 16)
    if not text.isdecimal() or len(text) > 20:
        return None
    if text.startswith("0") and len(text) > 1:
        return int(text, 8) if set(text) <= set("01234567") else None
    return int(text)


_ESCAPE = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|[xX](?P<hex>[0-9a-fA-F]{1,2})"
    r"|u(?P<short>[0-9a-fA-F]{4})|U(?P<long>[0-9a-fA-F]{8})|(?P<other>.))"
)
_ESCAPED = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


def unescape(text: str) -> bytes:
    """Returns the content of a string. An escape that is not known means its character."""
    content, end = bytearray(), 0
    for escape in _ESCAPE.finditer(text):
        content += text[end : escape.start()].encode(errors="surrogatepass")
        content += _escaped_bytes(escape)
        end = escape.end()
    return bytes(content) + text[end:].encode(errors="surrogatepass")


def _escaped_bytes(escape: "re.Match[str]") -> bytes:
    if (other := escape["other"]) is not None:
        return (
            bytes([_ESCAPED[other]]) if other in _ESCAPED else other.encode(errors="surrogatepass")
        )
    if (octal := escape["octal"]) is not None:
        return bytes([int(octal, 8) & 0xFF])
    if (hexadecimal := escape["hex"]) is not None:
        return bytes([int(hexadecimal, 16)])
    code = int(escape["short"] or escape["long"], 16)
    return chr(code if code < 0x110000 else 0xFFFD).encode(errors="replace")
