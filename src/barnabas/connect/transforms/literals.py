"""Texts that stand for values: what Kafka's `Values.parseString` reads, and how it writes it again.

`007` is the number 7, `1e3` is 1000, `[1, "a"]` a list, and everything else is the text itself.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from barnabas.connect.converters.java_text import to_text
from barnabas.connect.transforms.value_text import DATE, TIME, TIMESTAMP, value_texts

if TYPE_CHECKING:
    from barnabas.connect.transforms.simple_date_format import SimpleDateFormat

_DELIMITERS: Final = ':,{}[]"'
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TEMPORAL: Final[dict[int, SimpleDateFormat]] = {10: DATE, 13: TIME, 24: TIMESTAMP}
_MAX_FLOAT: Final = 3.4028235677973366e38
"""The smallest double that is infinite as a float of 32 bits."""


def normalized_literal(text: str) -> str | None:
    """Returns the text of the value that the text stands for; None for null."""
    if not text:
        return text
    value = _Parser(text).parse_whole()
    return None if value is None else value.text


class _NotALiteralError(Exception):
    """A list or map is not complete, so the text is only a text."""


class _Value:
    """A value that was read."""

    __slots__ = ("is_text", "text")

    def __init__(self, text: str, *, is_text: bool = False) -> None:
        self.text = text
        self.is_text = is_text

    @property
    def embedded(self) -> str:
        """The text in a list or map."""
        if not self.is_text:
            return self.text
        escaped = self.text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def parse_whole(self) -> _Value | None:
        for word, value in _WORDS.items():
            if self._text.strip() == word:
                return value
        try:
            start = self._position
            for opening, parse in (("[", self._list), ("{", self._map)):
                if self._consume(opening):
                    return parse()
        except _NotALiteralError:
            self._position = start
        return self._scalar(self._next().strip(), is_embedded=False)

    def _value(self) -> _Value | None:
        if self._position >= len(self._text):
            raise _NotALiteralError
        if self._consume('"'):
            return self._quoted()
        for word, value in _WORDS.items():
            if self._consume(word):
                return value
        start = self._position
        for opening, parse in (("[", self._list), ("{", self._map)):
            try:
                if self._consume(opening):
                    return parse()
            except _NotALiteralError:
                self._position = start
        token = self._next()
        return self._scalar(token.strip(), is_embedded=True) if token.strip() else _text(token)

    def _quoted(self) -> _Value:
        parts = []
        while self._position < len(self._text) and not self._consume('"', skips_blanks=True):
            parts.append(self._next())
        content = "".join(parts)
        return _temporal(content) or _text(content)

    def _scalar(self, token: str, *, is_embedded: bool) -> _Value:
        if token[:1].isdigit():
            temporal = self._temporal_of_tokens(token) or _temporal(token)
            if temporal is not None:
                return temporal
        if _NUMBER.fullmatch(token) and not token.startswith("."):
            return _Value(_number(Decimal(token)))
        if is_embedded:
            raise _NotALiteralError
        return _text(self._text)

    def _temporal_of_tokens(self, token: str) -> _Value | None:
        """Times have colons, which delimit tokens: 12:00:00.000Z is five."""
        start = self._position
        tokens = [token]
        for _ in range(4):
            if self._position >= len(self._text):
                break
            tokens.append(self._next())
        temporal = _temporal("".join(tokens)) if len(tokens) == 5 else None
        if temporal is None:
            self._position = start
        return temporal

    def _list(self) -> _Value:
        items: list[str] = []
        while self._position < len(self._text):
            if self._consume("]"):
                return _Value(f"[{','.join(items)}]")
            if self._consume(","):
                raise _NotALiteralError
            items.append(_embedded(self._value()))
            mark = self._position
            if self._consume("]"):
                self._position = mark
            elif not self._consume(","):
                raise _NotALiteralError
        raise _NotALiteralError

    def _map(self) -> _Value:
        entries: dict[str, str] = {}
        while self._position < len(self._text):
            if self._consume("}"):
                return _Value("{" + ",".join(f"{k}:{v}" for k, v in entries.items()) + "}")
            if self._consume(","):
                raise _NotALiteralError
            key = self._value()
            if key is None or not self._consume(":"):
                raise _NotALiteralError
            entries[key.embedded] = _embedded(self._value())
            self._consume(",")
        raise _NotALiteralError

    # Tokens

    def _next(self) -> str:
        """Returns a delimiter, or the text up to the next one. A backslash escapes delimiters."""
        text, start = self._text, self._position
        position, is_escaped = start, False
        while position < len(text):
            character = text[position]
            if character in _DELIMITERS and not is_escaped:
                position += position == start
                break
            is_escaped = character == "\\" and not is_escaped
            position += 1
        self._position = position
        return text[start:position]

    def _consume(self, expected: str, *, skips_blanks: bool = True) -> bool:
        start = self._position
        token = self._next()
        while skips_blanks and not token.strip() and self._position < len(self._text):
            token = self._next()
        if token.strip() == expected:
            return True
        self._position = start
        return False


_WORDS: Final[dict[str, _Value | None]] = {
    "null": None,
    "true": _Value("true"),
    "false": _Value("false"),
}


def _text(text: str) -> _Value:
    return _Value(text, is_text=True)


def _embedded(value: _Value | None) -> str:
    return "null" if value is None else value.embedded


def _temporal(text: str) -> _Value | None:
    import pyarrow as pa

    text = text.replace("\\:", ":")
    form = _TEMPORAL.get(len(text))
    if form is None:
        return None
    times, failed = form.parse(pa.array([text], pa.string()))
    return None if failed else _Value(value_texts(times)[0].as_py())


def _number(number: Decimal) -> str:
    """Fractions are floats of 32 bits if they are in their range."""
    import pyarrow as pa

    if number == number.to_integral_value():
        integer = int(number)
        if -(1 << 63) <= integer < 1 << 63:
            return str(integer)
    if number.as_tuple().exponent != 0:
        arrow_type = pa.float32() if abs(number) < _MAX_FLOAT else pa.float64()
        real = pa.array([str(number)]).cast(arrow_type)
        if abs(real[0].as_py()) != float("inf"):
            return str(to_text(real)[0].as_py())
    return str(number)
