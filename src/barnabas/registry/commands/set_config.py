"""Changes or removes the config of a subject, of a context, or the global one (None)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.decision import Decision
from barnabas.registry import errors
from barnabas.registry.commands import RegistryDecision
from barnabas.registry.commands.delete import require_writable
from barnabas.registry.config import DEFAULT_LEVEL, SubjectConfig, UnknownLevelError
from barnabas.registry.records import ConfigKey, ConfigValue, RegistryRecord
from barnabas.registry.rules import require_valid_rules
from barnabas.registry.state import RegistryState
from barnabas.registry.subjects import GLOBAL_SCOPE


@dataclass(slots=True, frozen=True)
class ChangeConfig:
    scope: str | None
    changes: Mapping[str, Any]  # as in the request: fields that it does not have stay unchanged


@dataclass(slots=True, frozen=True)
class RemoveConfig:
    scope: str | None


def decide_change(request: ChangeConfig, state: RegistryState) -> RegistryDecision[SubjectConfig]:
    require_writable(state, request.scope)
    try:
        config = state.configs.get(request.scope, SubjectConfig()).with_changes(request.changes)
    except UnknownLevelError:
        raise errors.invalid_compatibility() from None
    require_valid_rules(config.default_rule_set)
    require_valid_rules(config.override_rule_set)
    record = RegistryRecord(ConfigKey(request.scope), ConfigValue(request.scope, config))
    return Decision((record,), config)


def decide_removal(request: RemoveConfig, state: RegistryState) -> RegistryDecision[SubjectConfig]:
    """The response is the removed config."""
    config = state.configs.get(request.scope)
    if config is None and request.scope not in (None, GLOBAL_SCOPE):
        raise errors.subject_not_found(request.scope)
    require_writable(state, request.scope)
    if config is None:
        return Decision((), SubjectConfig(compatibility_level=DEFAULT_LEVEL))
    return Decision((RegistryRecord(ConfigKey(request.scope)),), config)
