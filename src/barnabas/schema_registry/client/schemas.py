"""Schemas as a registry takes them and gives them out."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from barnabas.schema_registry.client.json_form import JsonForm
from barnabas.schema_registry.client.rules import Metadata, RuleSet


@dataclass(slots=True, frozen=True)
class SchemaReference(JsonForm):
    """How a schema calls another, and where the registry has that."""

    name: str | None = None
    subject: str | None = None
    version: int | None = None


@dataclass(slots=True, frozen=True)
class SchemaVersion(JsonForm):
    subject: str | None = None
    version: int | None = None


@dataclass(slots=True, frozen=True)
class Schema(JsonForm):
    """A schema that need not be registered."""

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
        place = {
            "id": self.schema_id,
            "guid": self.guid,
            "subject": self.subject,
            "version": self.version,
        }
        known = {name: value for name, value in place.items() if value is not None}
        return self.schema.to_dict() | known

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        return cls(
            subject=src_dict.get("subject"),
            version=src_dict.get("version"),
            schema_id=src_dict.get("id"),
            guid=src_dict.get("guid"),
            schema=Schema.from_dict(src_dict),
        )
