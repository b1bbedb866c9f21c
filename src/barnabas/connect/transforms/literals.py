"""Texts that stand for values: what Kafka's `Values.parseString` reads, and how it writes it again.

`007` is the number 7, `1e3` is 1000, `[1, "a"]` a list, and everything else is the text itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from barnabas.connect.converters.java_text import to_text
from barnabas.connect.transforms.simple_date_format import SimpleDateFormat
from barnabas.connect.transforms.value_text import DATE, TIME, TIMESTAMP, value_texts

_DELIMITERS: Final = ':,{}[]"'
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_TEMPORAL: Final[dict[int, SimpleDateFormat]] = {10: DATE, 13: TIME, 24: TIMESTAMP}


def normalized_literal(text: str) -> str | None:
    """Returns the text of the value that the text stands for; None for null."""
    if not text:
        return text
    value = _Parser(text).parse_whole()
    return None if value is None else value.text


class _NotALiteralError(Exception):
    """The text of a list or map is not one of Kafka's, so the whole is only a text."""


@dataclass(slots=True, frozen=True)
class _Value:
    kind: str
    text: str
    number: Decimal | None = None

    @property
    def embedded(self) -> str:
        """The text in a list or map."""
        if self.kind != "string":
            return self.text
        escaped = self.text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'


_NUMBERS: Final = ("integer", "float32", "float64")
"""The kinds of numbers; in a list, all become the last of them that occurs."""

_WORDS: Final[dict[str, _Value | None]] = {
    "null": None,
    "true": _Value("boolean", "true"),
    "false": _Value("boolean", "false"),
}


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0

    def parse_whole(self) -> _Value | None:
        for word, value in _WORDS.items():
            if self._text.strip() == word:
                return value
        nested = self._nested()
        if nested is not None:
            return nested
        return self._scalar(self._next().strip(), is_embedded=False)

    def _nested(self) -> _Value | None:
        """Returns a list or map, or None if there is none."""
        start = self._position
        try:
            if self._consume("["):
                return self._list()
            if self._consume("{"):
                return self._map()
        except _NotALiteralError:
            self._position = start
        return None

    def _embedded(self) -> _Value | None:
        """Returns a value in a list or map; None for null."""
        if self._position >= len(self._text):
            return None
        if self._consume('"'):
            return self._quoted()
        for word, value in _WORDS.items():
            if self._consume(word):
                return value
        nested = self._nested()
        if nested is not None:
            return nested
        token = self._next()
        if not token.strip():
            return _Value("string", token)
        return self._scalar(token.strip(), is_embedded=True)

    def _quoted(self) -> _Value:
        parts = []
        while self._position < len(self._text) and not self._consume('"'):
            parts.append(self._next())
        content = "".join(parts)
        return _temporal(content) or _Value("string", content)

    def _scalar(self, token: str, *, is_embedded: bool) -> _Value:
        if token[:1].isdigit():
            temporal = self._temporal_of_tokens(token) or _temporal(token)
            if temporal is not None:
                return temporal
        if _NUMBER.fullmatch(token) and not token.startswith("."):
            return _number(Decimal(token))
        if is_embedded:
            raise _NotALiteralError
        return _Value("string", self._text)

    def _temporal_of_tokens(self, token: str) -> _Value | None:
        """Times have colons, which delimit tokens: 12:00:00.000Z is five."""
        start = self._position
        tokens = [token]
        while len(tokens) < 5 and self._position < len(self._text):
            tokens.append(self._next())
        temporal = _temporal("".join(tokens)) if len(tokens) == 5 else None
        if temporal is None:
            self._position = start
        return temporal

    def _list(self) -> _Value:
        items: list[_Value | None] = []
        while self._position < len(self._text):
            if self._consume("]"):
                return _Value("list", f"[{','.join(_aligned(items))}]")
            if self._consume(","):
                raise _NotALiteralError
            items.append(self._embedded())
            mark = self._position
            if self._consume("]"):
                self._position = mark
            elif not self._consume(","):
                raise _NotALiteralError
        raise _NotALiteralError

    def _map(self) -> _Value:
        entries: dict[_Value, _Value | None] = {}
        while self._position < len(self._text):
            if self._consume("}"):
                keys, values = _aligned(list(entries)), _aligned(list(entries.values()))
                pairs = map(":".join, zip(keys, values, strict=True))
                return _Value("map", "{" + ",".join(pairs) + "}")
            if self._consume(","):
                raise _NotALiteralError
            key = self._embedded()
            if key is None or not self._consume(":"):
                raise _NotALiteralError
            entries[key] = self._embedded()
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

    def _consume(self, expected: str) -> bool:
        """Skips the expected token, and blanks before it, if it is the next."""
        start = self._position
        token = self._next()
        while not token.strip() and self._position < len(self._text):
            token = self._next()
        if token.strip() == expected:
            return True
        self._position = start
        return False


def _aligned(values: Sequence[_Value | None]) -> list[str]:
    """Returns the texts of values in a list or map, in the type that all have if there is one."""
    kinds = {value.kind for value in values if value is not None}
    is_common = len(kinds) == 1 or (bool(kinds) and kinds <= set(_NUMBERS))
    if is_common and None in values:
        raise _NotALiteralError
    target = max(kinds, key=_NUMBERS.index) if is_common and len(kinds) > 1 else None
    texts = []
    for value in values:
        if value is None:
            texts.append("null")
        elif target is not None and value.number is not None:
            texts.append(_real_text(value.number, target))
        else:
            texts.append(value.embedded)
    return texts


def _temporal(text: str) -> _Value | None:
    import pyarrow as pa

    text = text.replace("\\:", ":")
    form = _TEMPORAL.get(len(text))
    if form is None:
        return None
    times, failed = form.parse(pa.array([text], pa.string()))
    return None if failed else _Value(f"time {len(text)}", value_texts(times)[0].as_py())


def _number(number: Decimal) -> _Value:
    """Fractions are floats of 32 bits if they are in their range."""
    if number == number.to_integral_value():
        integer = int(number)
        if -(1 << 63) <= integer < 1 << 63:
            return _Value("integer", str(integer), number)
    if number.as_tuple().exponent != 0:
        for kind in ("float32", "float64"):
            text = _real_text(number, kind)
            if "Infinity" not in text:
                return _Value(kind, text, number)
    return _Value("decimal", str(number))


def _real_text(number: Decimal, kind: str) -> str:
    import pyarrow as pa

    arrow_type = pa.float32() if kind == "float32" else pa.float64()
    return str(to_text(pa.array([str(number)]).cast(arrow_type))[0].as_py())
