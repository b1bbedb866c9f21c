"""The models of the REST API: schemas, rules, metadata, configs, associations.

The serializers execute no rules: they reject a schema with rules that they would have to execute.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from barnabas.schema_registry.client.json_object import JsonObject


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
class Rule(JsonObject):
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
class RuleSet(JsonObject):
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
class Metadata(JsonObject):
    tags: MetadataTags | None = None
    properties: MetadataProperties | None = None
    sensitive: list[str] | None = field(default=None, hash=False)


@dataclass(slots=True, frozen=True)
class SchemaReference(JsonObject):
    """A reference: the name that a schema uses, and the version of a subject it stands for."""

    name: str | None = None
    subject: str | None = None
    version: int | None = None


@dataclass(slots=True, frozen=True)
class SchemaVersion(JsonObject):
    subject: str | None = None
    version: int | None = None


@dataclass(slots=True, frozen=True)
class Schema(JsonObject):
    """A schema, registered or not."""

    schema_str: str | None = field(default=None, metadata={"name": "schema"})
    schema_type: str | None = "AVRO"
    references: list[SchemaReference] | None = field(default_factory=list, hash=False)
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None


@dataclass(slots=True, frozen=True)
class RegisteredSchema:
    """A schema as a version of a subject."""

    subject: str | None
    version: int | None
    schema_id: int | None
    guid: str | None
    schema: Schema

    def to_dict(self) -> dict[str, Any]:
        location = {
            "id": self.schema_id,
            "guid": self.guid,
            "subject": self.subject,
            "version": self.version,
        }
        present = {name: value for name, value in location.items() if value is not None}
        return self.schema.to_dict() | present

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        return cls(
            subject=src_dict.get("subject"),
            version=src_dict.get("version"),
            schema_id=src_dict.get("id"),
            guid=src_dict.get("guid"),
            schema=Schema.from_dict(src_dict),
        )


@dataclass(slots=True, frozen=True)
class Association(JsonObject):
    subject: str | None = None
    guid: str | None = None
    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    association_type: str | None = None
    frozen: bool = False


@dataclass(slots=True)
class AssociationInfo(JsonObject):
    """An association in a response."""

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool = False
    schema: Schema | None = None


@dataclass(slots=True)
class AssociationCreateOrUpdateInfo(JsonObject):
    """An association in a request."""

    subject: str | None = None
    association_type: str | None = None
    lifecycle: str | None = None
    frozen: bool | None = None
    schema: Schema | None = None
    normalize: bool | None = None


@dataclass(slots=True)
class AssociationCreateOrUpdateRequest(JsonObject):
    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationCreateOrUpdateInfo] | None = None


@dataclass(slots=True)
class AssociationResponse(JsonObject):
    resource_name: str | None = None
    resource_namespace: str | None = None
    resource_id: str | None = None
    resource_type: str | None = None
    associations: list[AssociationInfo] | None = None


class ConfigCompatibilityLevel(StrEnum):
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"
    NONE = "NONE"


@dataclass(slots=True)
class ServerConfig(JsonObject):
    """Requests have `compatibility`, responses have `compatibility_level`."""

    compatibility: ConfigCompatibilityLevel | None = None
    compatibility_level: ConfigCompatibilityLevel | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None
