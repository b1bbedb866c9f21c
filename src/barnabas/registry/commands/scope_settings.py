"""Changes or removes the config or mode of a scope.

A scope is a subject or a context; None is the global scope.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.decision import Decision
from barnabas.registry import errors
from barnabas.registry.commands import RegistryDecision
from barnabas.registry.commands.delete import require_writable, tombstones
from barnabas.registry.config import DEFAULT_LEVEL, SubjectConfig, UnknownLevelError
from barnabas.registry.definitions import require_valid_rules
from barnabas.registry.records import (
    ClearSubjectKey,
    ClearSubjectValue,
    ConfigKey,
    ConfigValue,
    ModeKey,
    ModeValue,
    RegistryMode,
    RegistryRecord,
)
from barnabas.registry.state import RegistryState
from barnabas.registry.subjects import GLOBAL_SCOPE, QualifiedSubject


@dataclass(slots=True, frozen=True)
class ChangeConfig:
    scope: str | None
    changes: Mapping[str, Any]  # as in the request: fields that it does not have stay unchanged


@dataclass(slots=True, frozen=True)
class RemoveConfig:
    scope: str | None


def decide_config_change(
    request: ChangeConfig, state: RegistryState
) -> RegistryDecision[SubjectConfig]:
    require_writable(state, request.scope)
    try:
        config = state.configs.get(request.scope, SubjectConfig()).with_changes(request.changes)
    except UnknownLevelError:
        raise errors.invalid_compatibility() from None
    require_valid_rules(config.default_rule_set)
    require_valid_rules(config.override_rule_set)
    record = RegistryRecord(ConfigKey(request.scope), ConfigValue(request.scope, config))
    return Decision((record,), config)


def decide_config_removal(
    request: RemoveConfig, state: RegistryState
) -> RegistryDecision[SubjectConfig]:
    """The response is the removed config."""
    config = state.configs.get(request.scope)
    if config is None and request.scope not in (None, GLOBAL_SCOPE):
        raise errors.subject_not_found(request.scope)
    require_writable(state, request.scope)
    if config is None:
        return Decision((), SubjectConfig(compatibility_level=DEFAULT_LEVEL))
    return Decision((RegistryRecord(ConfigKey(request.scope)),), config)


@dataclass(slots=True, frozen=True)
class SetMode:
    scope: str | None
    mode: RegistryMode | None  # None removes it
    force: bool = False  # allows IMPORT although there are schemas


@dataclass(slots=True, frozen=True)
class RemoveMode:
    scope: str | None
    recursive: bool = False  # also for all subjects of a context


def decide_mode_change(
    request: SetMode, state: RegistryState
) -> RegistryDecision[RegistryMode | None]:
    scope, mode = request.scope, request.mode
    if mode is RegistryMode.FORWARD and scope not in (None, GLOBAL_SCOPE):
        raise errors.RegistryError(42204, "Forward mode only supported on global level")
    records: list[RegistryRecord] = []
    if (
        mode is RegistryMode.IMPORT
        and state.effective_mode(scope) is not RegistryMode.IMPORT
        and not request.force
    ):
        records += _clear(scope, state)
    value = None if mode is None else ModeValue(scope, mode)
    return Decision((*records, RegistryRecord(ModeKey(scope), value)), mode)


def decide_mode_removal(
    request: RemoveMode, state: RegistryState
) -> RegistryDecision[RegistryMode | None]:
    """The response is the removed mode."""
    scope = request.scope
    mode = state.modes.get(scope, RegistryMode.READWRITE if scope in (None, GLOBAL_SCOPE) else None)
    if mode is None and not request.recursive:
        assert scope is not None
        raise errors.subject_not_found(scope)
    scopes = [scope] if scope in state.modes else []
    if request.recursive:
        scopes += [other for other in state.modes if other != scope and _is_within(other, scope)]
    return Decision(tuple(RegistryRecord(ModeKey(scope)) for scope in scopes), mode)


def _clear(scope: str | None, state: RegistryState) -> Iterator[RegistryRecord]:
    """Removes soft-deleted versions before an import, whose ids could clash with theirs."""
    subjects = [name for name in state.subjects() if name == scope or _is_within(name, scope)]
    if any(state.has_versions(name) for name in subjects):
        raise errors.not_permitted("Cannot import since found existing subjects")
    values = [value for name in subjects for value in state.versions(name, deleted=True)]
    for value in values:
        if state.referrers(value.key, deleted=True):
            raise errors.referenced(value.key)
    yield from tombstones(values, state)
    if scope is not None:
        yield RegistryRecord(ClearSubjectKey(scope), ClearSubjectValue(scope))


def _is_within(name: str | None, scope: str | None) -> bool:
    """Returns whether it is a subject of the context `scope`, or of any context if that is None."""
    if name is None:
        return False
    if scope is None or scope == GLOBAL_SCOPE:
        return True
    context = QualifiedSubject.parse(scope)
    return not context.name and QualifiedSubject.parse(name).context == context.context
