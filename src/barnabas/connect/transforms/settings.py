"""Settings that several transforms have."""

from __future__ import annotations

from typing import Any, Final

from barnabas.connect.config_def import (
    REQUIRED,
    ConfigType,
    ConnectorSetting,
    Importance,
    Validator,
    invalid_value,
)
from barnabas.connect.errors import InvalidConfigError

REPLACE_NULL_WITH_DEFAULT: Final = ConnectorSetting(
    "replace.null.with.default",
    ConfigType.BOOLEAN,
    True,
    "Whether a null is replaced by the default of its field.",
    Importance.MEDIUM,
)


def field_list(
    name: str, doc: str, importance: Importance, *, is_required: bool
) -> ConnectorSetting:
    return ConnectorSetting(
        name, ConfigType.LIST, REQUIRED if is_required else [], doc, importance,
        valid_list(is_required=is_required),
    )  # fmt: skip


def valid_list(*, is_required: bool) -> Validator:
    """Checks a list as Kafka does since 4.2. Duplicates are allowed: `unique` removes them."""

    def validate(name: str, value: Any) -> None:
        if is_required and not value:
            raise InvalidConfigError(
                f"Configuration '{name}' must not be empty. "
                "Valid values include: any non-empty value"
            )
        if any(not each for each in value or ()):
            raise InvalidConfigError(f"Configuration '{name}' values must not be empty.")

    return validate


def unique(values: list[str]) -> list[str]:
    return list(dict.fromkeys(values))


def non_empty_list(_: str, value: Any) -> str | None:
    return None if value else "Empty list"


def non_empty_string(_: str, value: Any) -> str | None:
    return "String must be non-empty" if value == "" else None


def pairs(name: str, mappings: list[str]) -> dict[str, str]:
    """Returns the mappings `from:to`. Raises ConfigError."""
    result = {}
    for mapping in mappings:
        parts = java_split(mapping)
        if len(parts) != 2:
            text = f"Invalid rename mapping: {mapping}"
            raise InvalidConfigError(invalid_value(name, mappings, text))
        result[parts[0]] = parts[1]
    return result


def java_split(text: str) -> list[str]:
    """Splits at colons as Java does: empty parts at the end are left out."""
    parts = text.split(":")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return parts if text != ":" * len(text) or not text else []
