"""Rules and metadata that a registry keeps with a schema, as values.

The serializers here run no rules; they refuse a schema that has some which they would have to run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from barnabas.schema_registry.client.json_form import JsonForm


class RuleKind(StrEnum):
    CONDITION = "CONDITION"
    TRANSFORM = "TRANSFORM"


class RulePhase(StrEnum):
    MIGRATION = "MIGRATION"
    DOMAIN = "DOMAIN"
    ENCODING = "ENCODING"


class RuleMode(StrEnum):
    UPGRADE = "UPGRADE"
    DOWNGRADE = "DOWNGRADE"
    UPDOWN = "UPDOWN"
    READ = "READ"
    WRITE = "WRITE"
    WRITEREAD = "WRITEREAD"


@dataclass(slots=True)
class RuleParams:
    params: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return dict(self.params)

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        return cls(dict(src_dict))

    def __hash__(self) -> int:
        return hash(frozenset(self.params.items()))


@dataclass(slots=True, frozen=True)
class Rule(JsonForm):
    name: str | None = None
    doc: str | None = None
    kind: RuleKind | None = None
    mode: RuleMode | None = None
    type: str | None = None
    tags: list[str] | None = field(default=None, hash=False)
    params: RuleParams | None = None
    expr: str | None = None
    on_success: str | None = None
    on_failure: str | None = None
    disabled: bool | None = None


@dataclass(slots=True)
class RuleSet(JsonForm):
    migration_rules: list[Rule] | None = None
    domain_rules: list[Rule] | None = None
    encoding_rules: list[Rule] | None = None
    enable_at: str | None = None

    def __hash__(self) -> int:
        kinds = (self.migration_rules, self.domain_rules, self.encoding_rules)
        return hash((*(frozenset(rules or ()) for rules in kinds), self.enable_at))


@dataclass(slots=True)
class MetadataTags:
    tags: dict[str, list[str]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return dict(self.tags)

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        return cls(dict(src_dict))

    def __hash__(self) -> int:
        return hash(frozenset((path, *tags) for path, tags in self.tags.items()))


@dataclass(slots=True)
class MetadataProperties:
    properties: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return dict(self.properties)

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        return cls(dict(src_dict))

    def __hash__(self) -> int:
        return hash(frozenset(self.properties.items()))


@dataclass(slots=True, frozen=True)
class Metadata(JsonForm):
    tags: MetadataTags | None = None
    properties: MetadataProperties | None = None
    sensitive: list[str] | None = field(default=None, hash=False)
