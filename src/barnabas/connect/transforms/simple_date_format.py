"""Java's SimpleDateFormat over columns, in UTC and English.

Times are written by slicing the ISO 8601 text that Arrow writes. Texts that are as the pattern says
are put together to ISO 8601 and cast. All others, which Java reads too, are read one by one by
`java_calendar.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Final

from barnabas.connect.transforms.java_calendar import (
    MONTHS,
    WEEKDAYS,
    YEAR_1583_MS,
    Token,
    format_time,
    parse_time,
)

if TYPE_CHECKING:
    import pyarrow as pa

LETTERS: Final = "GyYMLwWDdFEuaHkKhmsSzZX"
_END_OF_YEAR_9999_MS: Final = 253_402_300_800_000


class SimpleDateFormat:
    """Raises ValueError if the pattern is not valid, with Java's message."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.tokens = _tokens_of(pattern)

    def format(self, timestamps: pa.TimestampArray) -> pa.StringArray:
        """Returns the texts of times in milliseconds."""
        import pyarrow as pa
        import pyarrow.compute as pc

        times = timestamps.cast(pa.timestamp("ms"))
        pieces = self._pieces
        if pieces is None or not _is_in_fast_range(times):
            texts = [
                None if each is None else format_time(self.tokens, each)
                for each in times.cast(pa.int64()).to_pylist()
            ]
            return pa.array(texts, pa.string())
        iso = times.cast(pa.string())
        columns = [_column_of(piece, times, iso) for piece in pieces]
        if not any(isinstance(column, pa.Array) for column in columns):
            return pc.if_else(times.is_valid(), "".join(columns), pa.scalar(None, pa.string()))
        return columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, "")

    def parse(self, texts: pa.StringArray) -> tuple[pa.TimestampArray, list[int]]:
        """Returns times in milliseconds, null for texts that do not match, and the rows of these.

        A null text is a null.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        times = self._parse_exact(texts)
        if times is None:
            times = pa.nulls(len(texts), pa.timestamp("ms", "UTC"))
        if times.null_count == texts.null_count:
            return times, []
        rows = pc.indices_nonzero(pc.and_(times.is_null(), texts.is_valid())).to_pylist()
        failed: list[int] = []
        values: list[int | None] = [None] * len(texts)
        for row, text in zip(rows, texts.take(pa.array(rows)).to_pylist(), strict=True):
            value = parse_time(self.tokens, text)
            if value is None or not -(2**63) <= value < 2**63:
                failed.append(row)
            else:
                values[row] = value
        parsed = pa.array(values, pa.int64()).cast(pa.timestamp("ms", "UTC"))
        return pc.coalesce(times, parsed), failed

    def _parse_exact(self, texts: pa.StringArray) -> pa.TimestampArray | None:
        """Returns null for texts that are not as the pattern says; None if it cannot be read so."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self._expression is None:
            return None
        groups = pc.extract_regex(texts, self._expression)
        found = {each.name: pc.struct_field(groups, each.name) for each in groups.type}
        if "month_name" in found:
            found["month"] = _month_numbers(found["month_name"])
        if "half" in found:
            found["hour"] = _hours_of_day(found["half_hour"], found["half"])
        parts: list[pa.Array | str] = []
        for name, default, separator in _ISO_PARTS:
            part = found.get(name, default)
            if name in self._narrow_fields:
                part = pc.utf8_lpad(part, 2, "0")
            if name == "millisecond" and name in found:
                part = pc.utf8_lpad(part, 3, "0")
            parts += [part, separator]
        iso = pc.binary_join_element_wise(*parts[:-1], found.get("zone", "Z"), "")
        try:
            return iso.cast(pa.timestamp("ms", "UTC"))
        except pa.ArrowInvalid:
            return None

    @cached_property
    def _expression(self) -> str | None:
        """What matches texts that are as the pattern says; None if there is no such expression."""
        parts = []
        names: list[str] = []
        for index, token in enumerate(self.tokens):
            if not token.letter:
                parts.append(re.escape(token.text))
                continue
            has_fixed_width = index + 1 < len(self.tokens) and self.tokens[index + 1].is_number
            field = _field_expression(token, has_fixed_width=has_fixed_width)
            if field is None:
                return None
            name, expression = field
            names.append(name)
            parts.append(f"(?P<{name}>{expression})" if name else f"(?:{expression})")
        if not _are_consistent([name for name in names if name]):
            return None
        return f"^{''.join(parts)}$"

    @cached_property
    def _narrow_fields(self) -> set[str]:
        """The fields that may have one digit."""
        return {
            _TWO_DIGITS[token.letter][0]
            for index, token in enumerate(self.tokens)
            if token.letter in _TWO_DIGITS
            and not (index + 1 < len(self.tokens) and self.tokens[index + 1].is_number)
        }

    @cached_property
    def _pieces(self) -> list[_Piece] | None:
        """What a text is put together from; None if Java's calendar is needed for it."""
        pieces: list[_Piece] = []
        for token in self.tokens:
            if token.letter in tuple("YwWF"):
                return None
            _append(pieces, _piece_of(token))
        return pieces


_Piece = str | slice | Token
"""A text, a part of the ISO 8601 text, or a field that has another form there."""

_ISO_SAMPLE: Final = "YYYY-MM-DD HH:MM:SS.mmm"

_SLICES: Final = {
    "yyyy": slice(0, 4),
    "y": slice(0, 4),
    "yyy": slice(0, 4),
    "yy": slice(2, 4),
    "MM": slice(5, 7),
    "LL": slice(5, 7),
    "dd": slice(8, 10),
    "HH": slice(11, 13),
    "mm": slice(14, 16),
    "ss": slice(17, 19),
    "SSS": slice(20, 23),
}

_TWO_DIGITS: Final = {
    "M": ("month", r"0[1-9]|1[0-2]"),
    "d": ("day", r"0[1-9]|[12]\d|3[01]"),
    "H": ("hour", r"[01]\d|2[0-3]"),
    "h": ("half_hour", r"0[1-9]|1[0-2]"),
    "m": ("minute", r"[0-5]\d"),
    "s": ("second", r"[0-5]\d"),
}
_ZONES: Final = {
    "X": r"Z|[+-](?:[01]\d|2[0-3])",
    "XX": r"Z|[+-](?:[01]\d|2[0-3])[0-5]\d",
    "XXX": r"Z|[+-](?:[01]\d|2[0-3]):[0-5]\d",
    "Z": r"[+-](?:[01]\d|2[0-3])[0-5]\d",
}
_ALTERNATIVES: Final = {
    frozenset(("month", "month_name")),
    frozenset(("hour", "half_hour")),
}


def _field_expression(token: Token, *, has_fixed_width: bool) -> tuple[str, str] | None:
    """Returns the name of a field and what matches it; None if single values must be read.

    Numbers have their full width, but the first of two digits may be missing if no number follows.
    """
    letters = token.letter * token.count
    if letters == "yyyy":
        return "year", r"(?:1[6-9]|[2-9]\d)\d\d"
    if token.letter == "S" and (letters == "SSS" or not has_fixed_width):
        return "millisecond", r"\d{3}" if has_fixed_width else r"\d{1,3}"
    if letters in _ZONES:
        return "zone", _ZONES[letters]
    match token.letter:
        case "M" if token.count >= 3:
            return "month_name", f"(?i:{_names_expression(MONTHS)})"
        case "E":
            return "", f"(?i:{_names_expression(WEEKDAYS)})"
        case "a":
            return "half", "(?i:am|pm)"
    if token.letter not in _TWO_DIGITS or token.count > 2:
        return None
    name, expression = _TWO_DIGITS[token.letter]
    if not has_fixed_width:
        smallest = 1 if name in ("month", "day", "half_hour") else 0
        return name, f"{expression}|[{smallest}-9]"
    return (name, expression) if token.count == 2 else None


def _names_expression(names: Sequence[str]) -> str:
    return "|".join(f"{name[:3]}(?:{name[3:]})?" if name[3:] else name for name in names)


def _are_consistent(names: list[str]) -> bool:
    """Whether there is a year, and no two fields that say the same."""
    return (
        "year" in names
        and len(set(names)) == len(names)
        and not any(each <= set(names) for each in _ALTERNATIVES)
        and ("half" in names) == ("half_hour" in names)
    )


def _month_numbers(names: pa.StringArray) -> pa.StringArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    known = pa.array([name[:3].lower() for name in MONTHS])
    index = pc.index_in(pc.utf8_lower(pc.utf8_slice_codeunits(names, 0, 3)), value_set=known)
    return pc.utf8_lpad(pc.add(index, 1).cast(pa.string()), 2, "0")


def _hours_of_day(hours: pa.StringArray, halves: pa.StringArray) -> pa.StringArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    hour = _modulo(hours.cast(pa.int32()), 12)
    is_afternoon = pc.equal(pc.utf8_lower(halves), "pm")
    hour = pc.if_else(is_afternoon, pc.add(hour, 12), hour)
    return pc.utf8_lpad(hour.cast(pa.string()), 2, "0")


_ISO_PARTS: Final = (
    ("year", "1970", "-"),
    ("month", "01", "-"),
    ("day", "01", "T"),
    ("hour", "00", ":"),
    ("minute", "00", ":"),
    ("second", "00", "."),
    ("millisecond", "000", ""),
)


def _tokens_of(pattern: str) -> list[Token]:
    tokens: list[Token] = []
    text: list[str] = []

    def end_text() -> None:
        if text:
            tokens.append(Token("", 0, "".join(text)))
            text.clear()

    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "'":
            quoted, position = _quoted(pattern, position + 1)
            text.append(quoted)
        elif character.isascii() and character.isalpha():
            end = position
            while end < len(pattern) and pattern[end] == character:
                end += 1
            if character not in LETTERS:
                raise ValueError(f"Illegal pattern character '{character}'")
            if character == "X" and end - position > 3:
                raise ValueError(f"invalid ISO 8601 format: length={end - position}")
            end_text()
            tokens.append(Token(character, end - position))
            position = end
        else:
            text.append(character)
            position += 1
    end_text()
    return tokens


def _quoted(pattern: str, position: int) -> tuple[str, int]:
    """Returns a quoted text, and where the rest begins. Two quotes are one, also outside."""
    if pattern.startswith("'", position):
        return "'", position + 1
    text = ""
    while True:
        end = pattern.find("'", position)
        if end < 0:
            raise ValueError("Unterminated quote")
        text += pattern[position:end]
        if not pattern.startswith("'", end + 1):
            return text, end + 1
        text += "'"
        position = end + 2


def _piece_of(token: Token) -> _Piece:
    if not token.letter:
        return token.text
    match token.letter:
        case "G":
            return "AD"
        case "z":
            return "Coordinated Universal Time" if token.count >= 4 else "UTC"
        case "Z":
            return "+0000"
        case "X":
            return "Z"
    return _SLICES.get(token.letter * token.count, token)


def _append(pieces: list[_Piece], piece: _Piece) -> None:
    """Adds a piece; one slice replaces two whose separator is that of ISO 8601."""
    if isinstance(piece, str) and pieces and isinstance(pieces[-1], str):
        pieces[-1] += piece
        return
    if isinstance(piece, slice) and len(pieces) >= 2:
        before, separator = pieces[-2:]
        if isinstance(before, slice) and separator == _ISO_SAMPLE[before.stop : piece.start]:
            pieces[-2:] = [slice(before.start, piece.stop)]
            return
    pieces.append(piece)


def _is_in_fast_range(times: pa.TimestampArray) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    bounds = pc.min_max(times.cast(pa.int64())).as_py()
    if bounds["min"] is None:
        return True
    return bool(bounds["min"] >= YEAR_1583_MS and bounds["max"] < _END_OF_YEAR_9999_MS)


def _column_of(piece: _Piece, times: pa.TimestampArray, iso: pa.StringArray) -> pa.Array | str:
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(piece, str):
        return piece
    if isinstance(piece, slice):
        if piece == slice(0, len(_ISO_SAMPLE)):
            return iso
        return pc.utf8_slice_codeunits(iso, piece.start, piece.stop)
    count = piece.count
    hour = pc.divide(pc.cast(times.cast(pa.time32("ms")), pa.int32()), 3_600_000)
    match piece.letter:
        case "M" | "L" if count >= 3:
            names = MONTHS if count >= 4 else [name[:3] for name in MONTHS]
            return pa.array(names).take(pc.subtract(pc.month(times), 1))
        case "E":
            weekdays = WEEKDAYS if count >= 4 else [name[:3] for name in WEEKDAYS]
            return pa.array(weekdays).take(pc.day_of_week(times))
        case "a":
            return pc.if_else(pc.less(hour, 12), "AM", "PM")
        case "y":
            number = pc.year(times)
        case "M" | "L":
            number = pc.month(times)
        case "d":
            number = pc.day(times)
        case "D":
            number = pc.day_of_year(times)
        case "u":
            number = pc.day_of_week(times, count_from_zero=False)
        case "H":
            number = hour
        case "k":
            number = pc.if_else(pc.equal(hour, 0), 24, hour)
        case "K":
            number = _modulo(hour, 12)
        case "h":
            twelfth = _modulo(hour, 12)
            number = pc.if_else(pc.equal(twelfth, 0), 12, twelfth)
        case "m":
            number = pc.minute(times)
        case "s":
            number = pc.second(times)
        case _:
            number = pc.millisecond(times)
    return pc.utf8_lpad(number.cast(pa.string()), count, "0")


def _modulo(numbers: pa.Array, divisor: int) -> pa.Array:
    import pyarrow.compute as pc

    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, divisor), divisor))
