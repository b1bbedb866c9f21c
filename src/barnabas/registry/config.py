"""The config of a subject, of a context or of all subjects: compatibility level and more.

None means that this scope does not set the field: a wider scope may.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, Self

from barnabas.registry.definitions import DocumentError, Json, RegistryMetadata, RegistryRuleSet


class CompatibilityLevel(StrEnum):
    """BACKWARD: new schemas read older data. FORWARD: older ones read new data. FULL: both."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Whether every earlier version is compared, not only the latest."""
        return self.endswith("_TRANSITIVE")

    @property
    def new_reads_old(self) -> bool:
        return self.startswith(("BACKWARD", "FULL"))

    @property
    def old_reads_new(self) -> bool:
        return self.startswith(("FORWARD", "FULL"))


DEFAULT_LEVEL = CompatibilityLevel.BACKWARD


class CompatibilityPolicy(StrEnum):
    """STRICT is the default. LENIENT lets JSON schemas with open content models change more.

    LOGICAL, which adds rules for tables of other systems, has no effect here.
    """

    LOGICAL = "LOGICAL"
    STRICT = "STRICT"
    LENIENT = "LENIENT"


@dataclass(slots=True, frozen=True)
class SubjectConfig:
    """The fields are in the order in which records have them."""

    alias: str | None = None
    alias_for_deks: str | None = None
    normalize: bool | None = None
    validate_fields: bool | None = None
    validate_new_schemas: bool | None = None
    validate_rules: bool | None = None
    compatibility_level: CompatibilityLevel | None = None
    compatibility_policy: CompatibilityPolicy | None = None
    compatibility_group: str | None = None
    default_metadata: RegistryMetadata | None = None
    override_metadata: RegistryMetadata | None = None
    default_rule_set: RegistryRuleSet | None = None
    override_rule_set: RegistryRuleSet | None = None

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Reads a record's value or a request, which names the level `compatibility`."""
        return cls(**_read_fields(document))

    def with_changes(self, document: Mapping[str, Any]) -> Self:
        """Returns a config with the fields of a request. A null removes a field."""
        return replace(self, **_read_fields(document))

    def merged_over(self, wider: "SubjectConfig | None") -> "SubjectConfig":
        """Returns this config, with fields of a wider scope where this one has none."""
        if wider is None:
            return self
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(wider, **{name: value for name, value in own.items() if value is not None})

    @property
    def adds_metadata_or_rules(self) -> bool:
        """Whether registered schemas get metadata or rules that their requests do not have."""
        additions = (
            self.default_metadata,
            self.override_metadata,
            self.default_rule_set,
            self.override_rule_set,
        )
        return any(addition is not None for addition in additions)

    def to_json(self) -> Json:
        by_name = {_JSON_NAMES[field.name]: getattr(self, field.name) for field in fields(self)}
        return {
            name: value.to_json()
            if isinstance(value, RegistryMetadata | RegistryRuleSet)
            else value
            for name, value in by_name.items()
            if value is not None
        }


_JSON_NAMES = {
    field.name: re.sub("_([a-z])", lambda match: match[1].upper(), field.name)
    for field in fields(SubjectConfig)
}
_FLAGS = {"normalize", "validate_fields", "validate_new_schemas", "validate_rules"}


def _read_fields(document: Mapping[str, Any]) -> dict[str, Any]:
    values = dict(document)
    if "compatibility" in values:
        values["compatibilityLevel"] = values.pop("compatibility")
    return {
        name: _read_field(name, json_name, values[json_name])
        for name, json_name in _JSON_NAMES.items()
        if json_name in values
    }


def _read_field(name: str, json_name: str, value: object) -> Any:
    if name == "compatibility_level":
        return None if value is None else _parse_level(value)
    if name == "compatibility_policy":
        return _parse_policy(value)
    if name.endswith("_metadata"):
        return RegistryMetadata.from_json(value)
    if name.endswith("_rule_set"):
        return RegistryRuleSet.from_json(value)
    expected = bool if name in _FLAGS else str
    if value is not None and not isinstance(value, expected):
        raise DocumentError(f"{json_name}: a {expected.__name__} is expected, not {value!r}")
    return value


class UnknownLevelError(DocumentError):
    """There is no such compatibility level."""


def _parse_level(value: object) -> CompatibilityLevel:
    try:
        return CompatibilityLevel(str(value).upper())
    except ValueError:
        raise UnknownLevelError(f"{value!r} is no compatibility level") from None


def _parse_policy(value: object) -> CompatibilityPolicy | None:
    """An unknown policy is none, as in Confluent's registry."""
    try:
        return CompatibilityPolicy(str(value).upper())
    except ValueError:
        return None
