"""One setting: its name, type, default, what it may be, and who may change it when.

The subjects (`broker/`, `topic.py`, `group.py`, `client/` ...) are lists of these declarations.
They are named tuples since a broker declares 400 of them each time it starts.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Final, Literal, NamedTuple

from barnabas.config.checks import Check
from barnabas.config.errors import InvalidConfig

MAX_INT: Final = 2**31 - 1
MAX_LONG: Final = 2**63 - 1
MAX_DOUBLE: Final = sys.float_info.max
HIDDEN: Final = "[hidden]"


class Type(IntEnum):
    """The type of a setting; the numbers are DescribeConfigs' own."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = Type

Importance = Literal["high", "medium", "low"]
HIGH: Final = "high"
MEDIUM: Final = "medium"
LOW: Final = "low"

Dynamic = Literal["", "broker", "cluster"]
STATIC: Final = ""
PER_BROKER: Final = "broker"
CLUSTER: Final = "cluster"


class _Required:
    """The default of a setting that has none."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


class Setting(NamedTuple):
    """The declaration of one setting. Values are typed: a list is a tuple, a password a Secret."""

    name: str
    type: Type
    default: Any
    importance: Importance
    check: Check | None = None
    dynamic: Dynamic = STATIC
    # Broker settings that a topic's or group's setting falls back to, nearest first.
    synonyms: tuple[str, ...] = ()
    # Known and obeyed, but not listed by DescribeConfigs unless somebody has set it.
    internal: bool = False

    def parse(self, text: str | None) -> Any:
        """The typed value of `text`, or InvalidConfig saying what is allowed instead."""
        try:
            value = None if text is None else _PARSERS[self.type](text.strip())
        except ValueError as problem:
            raise self.invalid(text, str(problem)) from None
        if self.check is not None and (reason := self.check.problem(value)):
            raise self.invalid(text, reason)
        return value

    def invalid(self, text: object, reason: str) -> InvalidConfig:
        """The error for a value of this setting; it never shows a secret."""
        if self.type is Type.PASSWORD:
            text, reason = HIDDEN, "Value is not allowed"
        shown = "null" if text is None else text
        return InvalidConfig(f"Invalid value {shown} for configuration {self.name}: {reason}")


class Secret:
    """A password: shows itself only to those who ask by name."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return HIDDEN


def declare(*settings: Setting) -> dict[str, Setting]:
    return {setting.name: setting for setting in settings}


def inherited(setting: Setting, broker_values: Mapping[str, Any]) -> Any:
    """What a topic or group has that sets nothing itself: the nearest synonym that is set."""
    for synonym in setting.synonyms:
        value = broker_values[synonym]
        if value is not None:
            return _in_unit_of(setting.name, synonym, value)
    return setting.default


def _in_unit_of(name: str, synonym: str, value: Any) -> Any:
    """A broker's value as a topic has it: minutes and hours in ms, every endless retention -1."""
    if synonym.endswith(".minutes"):
        value *= 60_000
    elif synonym.endswith(".hours"):
        value *= 3_600_000
    return max(value, -1) if name == "retention.ms" else value


def to_text(value: Any) -> str | None:
    """A typed value as DescribeConfigs shows it; secrets are not for showing."""
    match value:
        case None | Secret():
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return _double_text(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def split_list(text: str) -> tuple[str, ...]:
    """The elements of a comma-separated list, each once; blank text is the empty list."""
    if not text.strip():
        return ()
    return tuple(dict.fromkeys(element.strip() for element in text.split(",")))


def _double_text(value: float) -> str:
    # As Java prints doubles: plain from 10^-3 up to 10^7, otherwise with an exponent.
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = f"{value:e}".partition("e")
    digits = repr(value).partition("e")[0].replace(".", "").strip("-0") or "0"
    sign = "-" if mantissa.startswith("-") else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{int(exponent)}"


def _boolean(text: str) -> bool:
    match text.lower():
        case "true":
            return True
        case "false":
            return False
    raise ValueError("Expected value to be either true or false")


def _integer(text: str, bits: int, kind: str) -> int:
    # int() takes forms that Java refuses, such as 1_000 or other scripts' digits.
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        raise ValueError(f"Not a number of type {kind}")
    number = int(text)
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise ValueError(f"Not a number of type {kind}")
    return number


def _double(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("Not a number of type DOUBLE") from None


_PARSERS: dict[Type, Callable[[str], Any]] = {
    Type.BOOLEAN: _boolean,
    Type.STRING: str,
    Type.INT: lambda text: _integer(text, 32, "INT"),
    Type.SHORT: lambda text: _integer(text, 16, "SHORT"),
    Type.LONG: lambda text: _integer(text, 64, "LONG"),
    Type.DOUBLE: _double,
    Type.LIST: split_list,
    Type.CLASS: str,
    Type.PASSWORD: Secret,
}
