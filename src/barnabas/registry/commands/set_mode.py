"""Change or remove the mode of a subject, of a context, or of all (None)."""

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
    mode: RegistryMode | None  # None takes it away
    force: bool = False  # import over what is there


@dataclass(slots=True, frozen=True)
class RemoveMode:
    scope: str | None
    recursive: bool = False  # of all subjects of a context too


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
        records += _cleared(scope, state)
    value = None if mode is None else ModeValue(scope, mode)
    return Decision((*records, RegistryRecord(ModeKey(scope), value)), mode)


def decide_removal(
    request: RemoveMode, state: RegistryState
) -> RegistryDecision[RegistryMode | None]:
    """The answer is what it was."""
    scope = request.scope
    known = state.modes.get(
        scope, RegistryMode.READWRITE if scope in (None, GLOBAL_SCOPE) else None
    )
    if known is None and not request.recursive:
        assert scope is not None
        raise errors.subject_not_found(scope)
    gone = [scope] if scope in state.modes else []
    if request.recursive:
        gone += [each for each in state.modes if each != scope and _is_within(each, scope)]
    return Decision(tuple(RegistryRecord(ModeKey(each)) for each in gone), known)


def _cleared(scope: str | None, state: RegistryState) -> Iterator[RegistryRecord]:
    """Ids are given by who imports: nothing may be there that they could clash with."""
    subjects = [name for name in state.subjects() if name == scope or _is_within(name, scope)]
    if any(state.has_versions(name) for name in subjects):
        raise errors.not_permitted("Cannot import since found existing subjects")
    values = [each for name in subjects for each in state.versions(name, deleted=True)]
    for value in values:
        if state.referrers(value.key, deleted=True):
            raise errors.referenced(value.key)
    yield from tombstones(values, state)
    if scope is not None:
        yield RegistryRecord(ClearSubjectKey(scope), ClearSubjectValue(scope))


def _is_within(name: str | None, scope: str | None) -> bool:
    """Whether it is a subject of the context that the scope is; of all contexts if it is None."""
    if name is None:
        return False
    if scope is None or scope == GLOBAL_SCOPE:
        return True
    wider = QualifiedSubject.parse(scope)
    return not wider.name and QualifiedSubject.parse(name).context == wider.context
