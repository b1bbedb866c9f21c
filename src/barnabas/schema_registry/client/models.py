"""The models of the REST API: schemas, rules, metadata, configs, associations.

The serializers execute no rules: they reject a schema with rules that they would have to execute.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum, StrEnum
from functools import cache
from typing import Any, Self, get_args, get_origin, get_type_hints


class RuleKind(StrEnum):
    CONDITION = "CONDITION"
    TRANSFORM = "TRANSFORM"


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


class JsonObject:
    """Base class of dataclasses that are sent as JSON objects, with their fields in camel case.

        @dataclass(slots=True)
        class Gate(JsonObject):
            opened_by: str | None = None           # {"openedBy": "..."}
            guards: list[Guard] | None = None      # {"guards": [{...}]}

    Fields that are None are omitted. Unknown fields of a response are ignored, so that newer
    registries are understood. The metadata of a field may have another JSON name.
    """

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON object to send."""
        return {
            name: _plain(value)
            for attribute, name, _ in _layout(type(self))
            if (value := getattr(self, attribute)) is not None
        }

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any]) -> Self:
        """Reads a JSON object that was received."""
        return cls(
            **{
                attribute: read(received)
                for attribute, name, read in _layout(cls)
                if (received := src_dict.get(name)) is not None
            }
        )


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


def _read_layout(kind: Any) -> list[tuple[str, str, Callable[[Any], Any]]]:
    """Returns the attribute, the JSON name and the reader of each field."""
    types = get_type_hints(kind)
    return [
        (
            field.name,
            field.metadata.get("name") or _camel_case(field.name),
            _reader(types[field.name]),
        )
        for field in fields(kind)
    ]


# Not a decorator: mypy would not accept a class as a hashable argument.
_layout: Callable[[Any], list[tuple[str, str, Callable[[Any], Any]]]] = cache(_read_layout)


def _reader(kind: Any) -> Callable[[Any], Any]:
    for item in get_args(kind) or (kind,):
        if get_origin(item) is list:
            read = _reader(*get_args(item))
            return lambda received: [read(one) for one in received]
        if hasattr(item, "from_dict"):
            from_dict: Callable[[Any], Any] = item.from_dict
            return from_dict
        if isinstance(item, type) and issubclass(item, Enum):
            return item
    return lambda received: received


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return value.to_dict() if hasattr(value, "to_dict") else value
