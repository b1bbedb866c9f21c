"""Single times as Java's SimpleDateFormat writes and reads them, in UTC and English.

It is the slow path of `simple_date_format.py`: for texts that are not exactly as the pattern says,
and for dates before 1582-10-15, where Java uses the Julian calendar.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

DAY_MS = 86_400_000

YEAR_1583_MS = -12_212_553_600_000
"""The first year that is Gregorian as a whole."""

_GREGORIAN_START_DAY = -141_427
"""1582-10-15: dates before are in the Julian calendar."""


@dataclass(slots=True, frozen=True)
class Token:
    """A run of one pattern letter, or a text that is written as it is."""

    letter: str
    """Empty for a text."""
    count: int
    text: str = ""

    @property
    def is_number(self) -> bool:
        if self.letter in ("M", "L"):
            return self.count <= 2
        return self.letter in tuple("yYwWDdFuHkKhmsS")


@dataclass(slots=True, frozen=True)
class CalendarFields:
    year: int
    """Astronomical: 0 is the year before 1."""
    month: int
    day: int
    day_of_year: int
    weekday: int
    """0 is Monday."""
    millisecond_of_day: int


def fields_of(timestamp_ms: int) -> CalendarFields:
    days, millisecond = divmod(timestamp_ms, DAY_MS)
    year, month, day = _date_of(days)
    day_of_year = days - _day_number(year, 1, 1) + 1
    return CalendarFields(year, month, day, day_of_year, (days + 3) % 7, millisecond)


def format_time(tokens: Sequence[Token], timestamp_ms: int) -> str:
    fields = fields_of(timestamp_ms)
    return "".join(_formatted(token, fields) if token.letter else token.text for token in tokens)


def _formatted(token: Token, fields: CalendarFields) -> str:
    count = token.count
    hour = fields.millisecond_of_day // 3_600_000
    match token.letter:
        case "G":
            return "AD" if fields.year > 0 else "BC"
        case "M" | "L" if count >= 3:
            name = MONTHS[fields.month - 1]
            return name if count >= 4 else name[:3]
        case "E":
            name = WEEKDAYS[fields.weekday]
            return name if count >= 4 else name[:3]
        case "a":
            return "AM" if hour < 12 else "PM"
        case "z":
            return "Coordinated Universal Time" if count >= 4 else "UTC"
        case "Z":
            return "+0000"
        case "X":
            return "Z"
        case "y" | "Y":
            year = fields.year if token.letter == "y" else _week_year(fields)
            year = year if year > 0 else 1 - year
            return f"{year % 100:02d}" if count == 2 else f"{year:0{count}d}"
    return f"{_number(token.letter, fields, hour):0{count}d}"


def _number(letter: str, fields: CalendarFields, hour: int) -> int:
    sunday_first = (fields.weekday + 1) % 7
    match letter:
        case "M" | "L":
            return fields.month
        case "d":
            return fields.day
        case "D":
            return fields.day_of_year
        case "F":
            return (fields.day - 1) // 7 + 1
        case "u":
            return fields.weekday + 1
        case "W":
            return (fields.day - 1 + (sunday_first - fields.day + 1) % 7) // 7 + 1
        case "w":
            if _week_year(fields) != fields.year:
                return 1
            first_weekday = (sunday_first - fields.day_of_year + 1) % 7
            return (fields.day_of_year - 1 + first_weekday) // 7 + 1
        case "H":
            return hour
        case "k":
            return hour or 24
        case "K":
            return hour % 12
        case "h":
            return hour % 12 or 12
        case "m":
            return fields.millisecond_of_day // 60_000 % 60
        case "s":
            return fields.millisecond_of_day // 1000 % 60
        case _:
            return fields.millisecond_of_day % 1000


def _week_year(fields: CalendarFields) -> int:
    """Weeks begin on Sunday; the week of January 1 is the first of its year."""
    saturday = fields.day_of_year + (5 - fields.weekday) % 7
    return fields.year + (saturday > _days_in(fields.year))


def _days_in(year: int) -> int:
    return _day_number(year + 1, 1, 1) - _day_number(year, 1, 1)


# Reading


@dataclass(slots=True)
class _Parsed:
    """What a text has set. Later fields replace earlier ones of the same meaning."""

    values: dict[str, int] = field(default_factory=dict)
    zone_offset_ms: int = 0
    is_two_digit_year: bool = False

    def set(self, name: str, value: int) -> None:
        self.values.pop(name, None)
        self.values[name] = value

    def is_later(self, name: str, other: str) -> bool:
        names = list(self.values)
        return name in self.values and (
            other not in self.values or names.index(name) > names.index(other)
        )


def parse_time(tokens: Sequence[Token], text: str) -> int | None:
    """Returns milliseconds, or None if the text does not match.

    As in Java, numbers may be out of range (month 13 is January of the next year), and what follows
    the last field is ignored.
    """
    parsed = _Parsed()
    position: int | None = 0
    for index, token in enumerate(tokens):
        assert position is not None
        if not token.letter:
            if not text.startswith(token.text, position):
                return None
            position += len(token.text)
            continue
        has_fixed_width = index + 1 < len(tokens) and tokens[index + 1].is_number
        position = _read_field(token, text, position, has_fixed_width, parsed)
        if position is None:
            return None
    return _resolved(parsed)


def _read_field(
    token: Token, text: str, position: int, has_fixed_width: bool, parsed: _Parsed
) -> int | None:
    """Returns where the rest begins, or None if the text does not match.

    Blanks are skipped before numbers and zones. They belong to a number of fixed width, which has
    one if another number follows.
    """
    start = position
    while position < len(text) and text[position] in " \t":
        position += 1
    if position == len(text):
        return None
    if token.is_number:
        end = start + token.count if has_fixed_width else len(text)
        return _read_number(token, text, position, end, parsed)
    match token.letter:
        case "M" | "L":
            return _read_name("month", MONTHS, text, start, parsed, first=1)
        case "E":
            return _read_name("weekday", WEEKDAYS, text, start, parsed, first=0)
        case "a":
            return _read_name("half", ("AM", "PM"), text, start, parsed, first=0)
        case "G":
            return _read_name("era", ("BC", "AD"), text, start, parsed, first=0)
        case _:
            return _read_zone(token, text, position, parsed)


_FIELD_NAMES = {
    "y": "year",
    "Y": "year",
    "M": "month",
    "L": "month",
    "d": "day",
    "D": "day of year",
    "H": "hour of day",
    "k": "hour of day",
    "K": "hour",
    "h": "hour",
    "m": "minute",
    "s": "second",
    "S": "millisecond",
}
_NUMBER = re.compile(r"-?[0-9]+")


def _read_number(token: Token, text: str, position: int, end: int, parsed: _Parsed) -> int | None:
    if end > len(text):
        return None
    number = _NUMBER.match(text, position, end)
    if number is None:
        return None
    value = (int(number[0]) + 2**31) % 2**32 - 2**31
    letter = token.letter
    if letter == "y" and token.count <= 2 and re.fullmatch("[0-9]{2}", number[0]):
        value = _with_century(value)
        parsed.is_two_digit_year = True
    if (letter == "k" and value == 24) or (letter == "h" and value == 12):
        value = 0
    if letter in _FIELD_NAMES:
        parsed.set(_FIELD_NAMES[letter], value)
    return number.end()


def _with_century(value: int) -> int:
    """Two digits are a year between 80 years ago and 20 years ahead."""
    start = time.gmtime().tm_year - 80
    return value + start // 100 * 100 + (100 if value < start % 100 else 0)


def _read_name(
    name: str, names: Sequence[str], text: str, position: int, parsed: _Parsed, *, first: int
) -> int | None:
    for index, full in enumerate(names):
        for candidate in (full, full[:3]):
            if text[position : position + len(candidate)].lower() == candidate.lower():
                parsed.set(name, index + first)
                return position + len(candidate)
    return None


_ZONES = {
    "Coordinated Universal Time": 0,
    "UTC": 0,
    "GMT": 0,
    "EST": -5,
    "EDT": -4,
    "CST": -6,
    "CDT": -5,
    "MST": -7,
    "MDT": -6,
    "PST": -8,
    "PDT": -7,
}
_OFFSETS = {
    "Z": re.compile(r"([+-])([0-9]{2})([0-9]{2})"),
    "X1": re.compile(r"([+-])([0-9]{2})()"),
    "X2": re.compile(r"([+-])([0-9]{2})([0-9]{2})"),
    "X3": re.compile(r"([+-])([0-9]{2}):([0-9]{2})"),
    "GMT": re.compile(r"GMT([+-])([0-9]{1,2}):([0-9]{2})"),
}


def _read_zone(token: Token, text: str, position: int, parsed: _Parsed) -> int | None:
    if token.letter == "X":
        if text.startswith("Z", position):
            return position + 1
        forms = [f"X{token.count}"]
    else:
        forms = ["GMT", "Z"]
    for form in forms:
        offset = _OFFSETS[form].match(text, position)
        if offset is not None and int(offset[2]) <= 23 and int(offset[3] or 0) <= 59:
            minutes = 60 * int(offset[2]) + int(offset[3] or 0)
            parsed.zone_offset_ms = (-1 if offset[1] == "-" else 1) * 60_000 * minutes
            return offset.end()
    if token.letter == "X":
        return None
    for name, hours in _ZONES.items():
        if text[position : position + len(name)].lower() == name.lower():
            parsed.zone_offset_ms = 3_600_000 * hours
            return position + len(name)
    return None


def _resolved(parsed: _Parsed) -> int:
    values = parsed.values
    year = values.get("year", 1970)
    if values.get("era") == 0:
        year = 1 - year
    milliseconds = _resolved_in(parsed, year)
    if parsed.is_two_digit_year:
        now = time.time()
        if milliseconds < 1000 * (now - 80 * 365.2425 * 86400) and year < time.gmtime().tm_year:
            milliseconds = _resolved_in(parsed, year + 100)
    return milliseconds


def _resolved_in(parsed: _Parsed, year: int) -> int:
    values = parsed.values
    if parsed.is_later("day of year", "day"):
        days = _day_number(year, 1, 1) + values["day of year"] - 1
    else:
        days = _day_number(year, values.get("month", 1), values.get("day", 1))
    hour = values.get("hour", 0) + 12 * values.get("half", 0)
    is_hour_of_half_day = "hour" in values and "half" in values
    is_hour_of_day_last = parsed.is_later("hour of day", "hour") and parsed.is_later(
        "hour of day", "half"
    )
    if "hour of day" in values and (is_hour_of_day_last or not is_hour_of_half_day):
        hour = values["hour of day"]
    return (
        days * DAY_MS
        + hour * 3_600_000
        + values.get("minute", 0) * 60_000
        + values.get("second", 0) * 1000
        + values.get("millisecond", 0)
        - parsed.zone_offset_ms
    )


# Calendars


def _day_number(year: int, month: int, day: int) -> int:
    """Returns the days since 1970-01-01 of a date whose month and day may be out of range."""
    days = _days_before_month(year, month, is_julian=False) + day
    if year > 1582 or (year == 1582 and days >= _GREGORIAN_START_DAY):
        return days
    return _days_before_month(year, month, is_julian=True) + day


def _days_before_month(year: int, month: int, *, is_julian: bool) -> int:
    """Returns the days before a month. Years begin in March here, so leap days are at their end."""
    years, index = divmod(year * 12 + month - 3, 12)
    days = 365 * years + years // 4 + (153 * index + 2) // 5
    if is_julian:
        return days - 719_471
    return days - years // 100 + years // 400 - 719_469


def _date_of(days: int) -> tuple[int, int, int]:
    """Returns year, month and day."""
    if days >= _GREGORIAN_START_DAY:
        day = days + 719_468
        era, day = divmod(day, 146_097)
        year_of_era = (day - day // 1460 + day // 36_524 - day // 146_096) // 365
        year = year_of_era + 400 * era
        day -= 365 * year_of_era + year_of_era // 4 - year_of_era // 100
    else:
        cycle, day = divmod(days + 719_470, 1461)
        year_of_cycle = min(day // 365, 3)
        year = 4 * cycle + year_of_cycle
        day -= 365 * year_of_cycle
    index = (5 * day + 2) // 153
    month = index + 3 if index < 10 else index - 9
    return year + (index >= 10), month, day - (153 * index + 2) // 5 + 1
