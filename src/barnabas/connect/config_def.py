"""The settings of connectors, converters and transforms, as Kafka's ConfigDef declares them.

    ConfigDef(
        Setting("file", ConfigType.STRING, importance=Importance.HIGH, doc="The file to read."),
        Setting("batch.size", ConfigType.INT, 2000, validator=at_least(1), doc="..."),
    )

`validate` finds all errors at once, each with its setting, and words them as Kafka does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from barnabas.connect.errors import InvalidConfigError


class ConfigType(StrEnum):
    BOOLEAN = "BOOLEAN"
    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"


class Importance(StrEnum):
    HIGH = "HIGH"
    MEDIUM = "MEDIUM"
    LOW = "LOW"


class Width(StrEnum):
    NONE = "NONE"
    SHORT = "SHORT"
    MEDIUM = "MEDIUM"
    LONG = "LONG"


class _Required:
    """The default of a setting that must be given: None is a default value."""

    def __repr__(self) -> str:
        return "REQUIRED"

    def __reduce__(self) -> str:
        return "REQUIRED"


REQUIRED: Final = _Required()

HIDDEN: Final = "[hidden]"
"""What is shown instead of a password."""

Validator = Callable[[str, Any], str | None]
"""Gets the name and the parsed value; returns what is wrong with the value, or None.

Raises ConfigError if the message should not begin with the name and the value.
"""

Recommender = Callable[[Mapping[str, Any]], Sequence[Any]]
"""Gets the parsed settings; returns the valid values."""


@dataclass(slots=True, frozen=True)
class ConnectorSetting:
    """One setting."""

    name: str
    type: ConfigType
    default: Any = REQUIRED
    doc: str = ""
    importance: Importance = Importance.MEDIUM
    validator: Validator | None = None
    group: str | None = None
    width: Width = Width.NONE
    display_name: str | None = None
    dependents: tuple[str, ...] = ()
    recommender: Recommender | None = None

    @property
    def is_required(self) -> bool:
        return isinstance(self.default, _Required)


@dataclass(slots=True)
class ConfigValueInfo:
    """A setting with its value, and what is wrong with it."""

    name: str
    value: Any = None
    """The parsed value; None if it is missing or cannot be parsed."""
    recommended_values: Sequence[Any] = ()
    errors: list[str] = field(default_factory=list)
    is_visible: bool = True


class ConfigDef:
    """An ordered set of settings. It is not changed after its creation."""

    def __init__(self, *settings: ConnectorSetting) -> None:
        self._settings: dict[str, ConnectorSetting] = {}
        for setting in settings:
            if setting.name in self._settings:
                raise InvalidConfigError(f"Configuration {setting.name} is defined twice.")
            self._settings[setting.name] = setting

    def __iter__(self) -> Iterator[ConnectorSetting]:
        return iter(self._settings.values())

    def __contains__(self, name: str) -> bool:
        return name in self._settings

    def __getitem__(self, name: str) -> ConnectorSetting:
        return self._settings[name]

    def __add__(self, other: ConfigDef) -> ConfigDef:
        """Returns the settings of both; those of `other` replace settings of the same name."""
        return ConfigDef(*(self._settings | other._settings).values())

    @property
    def groups(self) -> list[str]:
        """The groups of the settings, in the order in which they first appear."""
        return list(dict.fromkeys(each.group for each in self if each.group is not None))

    def validate(self, config: Mapping[str, str | None]) -> list[ConfigValueInfo]:
        """Returns the value and the errors of each setting."""
        values = {setting.name: _parsed(setting, config) for setting in self}
        parsed = {name: value.value for name, value in values.items()}
        for setting in self:
            if setting.recommender is not None:
                values[setting.name].recommended_values = setting.recommender(parsed)
        return list(values.values())

    def parse(self, config: Mapping[str, str | None]) -> dict[str, Any]:
        """Returns the parsed values. Raises ConfigError with the first error."""
        values = [_parsed(setting, config) for setting in self]
        for value in values:
            for error in value.errors:
                raise InvalidConfigError(error)
        return {value.name: value.value for value in values}


def _parsed(setting: ConnectorSetting, config: Mapping[str, str | None]) -> ConfigValueInfo:
    result = ConfigValueInfo(setting.name)
    if setting.name in config:
        try:
            result.value = parse_value(setting.name, config[setting.name], setting.type)
        except InvalidConfigError as error:
            result.errors.append(str(error))
            return result
    elif setting.is_required:
        result.errors.append(
            f'Missing required configuration "{setting.name}" which has no default value.'
        )
        return result
    else:
        result.value = setting.default
    if setting.validator is not None:
        try:
            complaint = setting.validator(setting.name, result.value)
        except InvalidConfigError as error:
            result.errors.append(str(error))
            return result
        if complaint is not None:
            result.errors.append(invalid_value(setting.name, result.value, complaint))
    return result


def invalid_value(name: str, value: Any, complaint: str | None = None) -> str:
    """Returns Kafka's text for an invalid value."""
    shown = "null" if value is None else _text(value)
    return f"Invalid value {shown} for configuration {name}" + (
        f": {complaint}" if complaint else ""
    )


def parse_value(name: str, text: str | None, type_: ConfigType) -> Any:
    """Parses a value that was given as text. Raises ConfigError."""
    if text is None:
        return None
    if not isinstance(text, str):
        text = _text(text)
    trimmed = text.strip()
    match type_:
        case ConfigType.BOOLEAN:
            if trimmed.lower() not in ("true", "false"):
                raise InvalidConfigError(
                    invalid_value(name, text, "Expected value to be either true or false")
                )
            return trimmed.lower() == "true"
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            return _parse_integer(name, trimmed, type_)
        case ConfigType.DOUBLE:
            try:
                return float(trimmed)
            except ValueError:
                complaint = f"Not a number of type {type_}"
                raise InvalidConfigError(invalid_value(name, text, complaint)) from None
        case ConfigType.LIST:
            return re.split(r"\s*,\s*", trimmed) if trimmed else []
        case ConfigType.PASSWORD:
            return text
        case _:
            return trimmed


_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def _parse_integer(name: str, text: str, type_: ConfigType) -> int:
    limit = 1 << (_BITS[type_] - 1)
    if re.fullmatch(r"[+-]?[0-9]{1,20}", text) and -limit <= int(text) < limit:
        return int(text)
    raise InvalidConfigError(invalid_value(name, text, f"Not a number of type {type_}"))


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    return str(value)


# Validators


def at_least(minimum: float) -> Validator:
    def validate(name: str, value: Any) -> str | None:
        if value is None:
            return "Value must be non-null"
        return f"Value must be at least {minimum}" if value < minimum else None

    return validate


def between(minimum: float, maximum: float) -> Validator:
    def validate(name: str, value: Any) -> str | None:
        if value is None:
            return "Value must be non-null"
        if value < minimum:
            return f"Value must be at least {minimum}"
        return f"Value must be no more than {maximum}" if value > maximum else None

    return validate


def one_of(*choices: str, ignore_case: bool = False) -> Validator:
    valid = {choice.lower() for choice in choices} if ignore_case else set(choices)

    def validate(name: str, value: Any) -> str | None:
        given = value.lower() if ignore_case and isinstance(value, str) else value
        if given in valid:
            return None
        rule = "case insensitive " if ignore_case else ""
        return f"String must be one of{' (' + rule.strip() + ')' if rule else ''}: " + ", ".join(
            choices
        )

    return validate


def not_empty(name: str, value: Any) -> str | None:
    if isinstance(value, str) and not value:
        return "String must be non-empty"
    return None


def list_size_at_least(minimum: int) -> Validator:
    def validate(name: str, value: Any) -> str | None:
        if value is None or len(value) < minimum:
            return f"List must have at least {minimum} element" + ("s" if minimum != 1 else "")
        return None

    return validate


def all_of(*validators: Validator) -> Validator:
    def validate(name: str, value: Any) -> str | None:
        complaints = (validator(name, value) for validator in validators)
        return next((complaint for complaint in complaints if complaint is not None), None)

    return validate


def errors_of(values: Iterable[ConfigValueInfo]) -> list[str]:
    """Returns the errors of all settings, in their order."""
    return [error for value in values for error in value.errors]
