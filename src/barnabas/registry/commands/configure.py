"""Change or remove the config of a subject, of a context, or of all (None)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.registry import errors
from barnabas.registry.commands import Decision
from barnabas.registry.commands.delete import require_writable
from barnabas.registry.config import DEFAULT_LEVEL, Config, UnknownLevelError
from barnabas.registry.naming import GLOBAL_SCOPE
from barnabas.registry.records import ConfigKey, ConfigValue, Record
from barnabas.registry.rules import require_valid
from barnabas.registry.state import State


@dataclass(slots=True, frozen=True)
class ChangeConfig:
    scope: str | None
    changes: Mapping[str, Any]  # as the request has them: what is not there stays


@dataclass(slots=True, frozen=True)
class RemoveConfig:
    scope: str | None


def decide_change(request: ChangeConfig, state: State) -> Decision[Config]:
    require_writable(state, request.scope)
    try:
        config = state.configs.get(request.scope, Config()).changed(request.changes)
    except UnknownLevelError:
        raise errors.invalid_compatibility() from None
    require_valid(config.default_rule_set)
    require_valid(config.override_rule_set)
    record = Record(ConfigKey(request.scope), ConfigValue(request.scope, config))
    return Decision(config, (record,))


def decide_removal(request: RemoveConfig, state: State) -> Decision[Config]:
    """The answer is what it was."""
    known = state.configs.get(request.scope)
    if known is None and request.scope not in (None, GLOBAL_SCOPE):
        raise errors.subject_not_found(request.scope)
    require_writable(state, request.scope)
    if known is None:
        return Decision(Config(compatibility_level=DEFAULT_LEVEL))
    return Decision(known, (Record(ConfigKey(request.scope)),))
