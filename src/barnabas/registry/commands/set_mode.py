"""Changes or removes the mode of a subject, of a context, or the global one (None)."""

from collections.abc import Iterator
from dataclasses import dataclass

from barnabas.decision import Decision
from barnabas.registry import errors
from barnabas.registry.commands import RegistryDecision
from barnabas.registry.commands.delete import tombstones
from barnabas.registry.records import (
    ClearSubjectKey,
    ClearSubjectValue,
    ModeKey,
    ModeValue,
    RegistryMode,
    RegistryRecord,
)
from barnabas.registry.state import RegistryState
from barnabas.registry.subjects import GLOBAL_SCOPE, QualifiedSubject


@dataclass(slots=True, frozen=True)
class SetMode:
    scope: str | None
    mode: RegistryMode | None  # None removes it
    force: bool = False  # allows IMPORT although there are schemas


@dataclass(slots=True, frozen=True)
class RemoveMode:
    scope: str | None
    recursive: bool = False  # also for all subjects of a context


def decide_change(request: SetMode, state: RegistryState) -> RegistryDecision[RegistryMode | None]:
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


def decide_removal(
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
