"""What a registry can be told about a subject, or about all of them."""

from dataclasses import dataclass
from enum import StrEnum

from barnabas.schema_registry.client.json_form import JsonForm
from barnabas.schema_registry.client.rules import Metadata, RuleSet


class ConfigCompatibilityLevel(StrEnum):
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"
    NONE = "NONE"


@dataclass(slots=True)
class ServerConfig(JsonForm):
    """`compatibility` is what is set, `compatibility_level` what is told of it."""

    compatibility: ConfigCompatibilityLevel | None = None
    compatibility_level: ConfigCompatibilityLevel | None = None
    compatibility_group: str | None = None
    default_metadata: Metadata | None = None
    override_metadata: Metadata | None = None
    default_rule_set: RuleSet | None = None
    override_rule_set: RuleSet | None = None
