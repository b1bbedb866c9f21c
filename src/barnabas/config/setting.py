"""The declaration of a setting: its name, type, default, check and update mode.

`broker/`, `topic.py`, `group.py`, `client/` ... are lists of these declarations. They are named
tuples because a broker creates 400 of them at every start.
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


class SettingType(IntEnum):
    """The type of a setting, with the numbers of DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN, STRING, INT, SHORT, LONG, DOUBLE, LIST, CLASS, PASSWORD = SettingType

Importance = Literal["high", "medium", "low"]
HIGH: Final = "high"
MEDIUM: Final = "medium"
LOW: Final = "low"

UpdateMode = Literal["", "broker", "cluster"]
READ_ONLY: Final = ""
PER_BROKER: Final = "broker"
CLUSTER: Final = "cluster"


class _Required:
    """The default of a setting that must be set."""

    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()


class Setting(NamedTuple):
    """The declaration of one setting. Values are typed: a list is a tuple, a password a Secret."""

    name: str
    type: SettingType
    default: Any
    importance: Importance
    check: Check | None = None
    update: UpdateMode = READ_ONLY
    # The broker settings that are the default of a topic's or group's, in order of precedence.
    synonyms: tuple[str, ...] = ()
    # In effect, but listed by DescribeConfigs only if it is set.
    internal: bool = False

    def parse(self, text: str | None) -> Any:
        """Returns the typed value of `text`. Raises InvalidConfig if it is not allowed."""
        try:
            value = None if text is None else _PARSERS[self.type](text.strip())
        except ValueError as problem:
            raise self.invalid_value(text, str(problem)) from None
        if self.check is not None and (reason := self.check.find_problem(value)):
            raise self.invalid_value(text, reason)
        return value

    def invalid_value(self, text: object, reason: str) -> InvalidConfig:
        """Returns the error for a value of this setting, which never shows a password."""
        if self.type is SettingType.PASSWORD:
            text, reason = HIDDEN, "Value is not allowed"
        shown = "null" if text is None else text
        return InvalidConfig(f"Invalid value {shown} for configuration {self.name}: {reason}")


class Secret:
    """A password, which only `reveal` shows."""

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


def inherited_value(setting: Setting, broker_values: Mapping[str, Any]) -> Any:
    """Returns the value of a topic or group that does not set it: that of the first set synonym."""
    for synonym in setting.synonyms:
        value = broker_values[synonym]
        if value is not None:
            return _in_unit_of(setting.name, synonym, value)
    return setting.default


def _in_unit_of(name: str, synonym: str, value: Any) -> Any:
    """Converts minutes and hours to ms, and every unlimited retention to -1."""
    if synonym.endswith(".minutes"):
        value *= 60_000
    elif synonym.endswith(".hours"):
        value *= 3_600_000
    return max(value, -1) if name == "retention.ms" else value


def to_text(value: Any) -> str | None:
    """Returns a typed value as DescribeConfigs shows it; a password is None."""
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
    """Returns the distinct elements of a comma-separated list; blank text is the empty list."""
    if not text.strip():
        return ()
    return tuple(dict.fromkeys(element.strip() for element in text.split(",")))


def _double_text(value: float) -> str:
    # Java prints doubles from 10^-3 to 10^7 without an exponent, others with one.
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
    # int() accepts forms that Java rejects, such as 1_000 or digits of other scripts.
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


_PARSERS: dict[SettingType, Callable[[str], Any]] = {
    SettingType.BOOLEAN: _boolean,
    SettingType.STRING: str,
    SettingType.INT: lambda text: _integer(text, 32, "INT"),
    SettingType.SHORT: lambda text: _integer(text, 16, "SHORT"),
    SettingType.LONG: lambda text: _integer(text, 64, "LONG"),
    SettingType.DOUBLE: _double,
    SettingType.LIST: split_list,
    SettingType.CLASS: str,
    SettingType.PASSWORD: Secret,
}
