"""Change or remove the mode of a subject, of a context, or of all (None)."""

from collections.abc import Iterator
from dataclasses import dataclass

from barnabas.registry import errors
from barnabas.registry.commands import Decision
from barnabas.registry.commands.delete import gone_for_good
from barnabas.registry.naming import GLOBAL_SCOPE, Subject
from barnabas.registry.records import (
    ClearSubjectKey,
    ClearSubjectValue,
    Mode,
    ModeKey,
    ModeValue,
    Record,
)
from barnabas.registry.state import State


@dataclass(slots=True, frozen=True)
class SetMode:
    scope: str | None
    mode: Mode | None  # None takes it away
    force: bool = False  # import over what is there


@dataclass(slots=True, frozen=True)
class RemoveMode:
    scope: str | None
    recursive: bool = False  # of all subjects of a context too


def decide_change(request: SetMode, state: State) -> Decision[Mode | None]:
    scope, mode = request.scope, request.mode
    if mode is Mode.FORWARD and scope not in (None, GLOBAL_SCOPE):
        raise errors.RegistryError(42204, "Forward mode only supported on global level")
    records: list[Record] = []
    if mode is Mode.IMPORT and state.mode(scope) is not Mode.IMPORT and not request.force:
        records += _cleared(scope, state)
    value = None if mode is None else ModeValue(scope, mode)
    return Decision(mode, (*records, Record(ModeKey(scope), value)))


def decide_removal(request: RemoveMode, state: State) -> Decision[Mode | None]:
    """The answer is what it was."""
    scope = request.scope
    known = state.modes.get(scope, Mode.READWRITE if scope in (None, GLOBAL_SCOPE) else None)
    if known is None and not request.recursive:
        assert scope is not None
        raise errors.subject_not_found(scope)
    gone = [scope] if scope in state.modes else []
    if request.recursive:
        gone += [each for each in state.modes if each != scope and _is_within(each, scope)]
    return Decision(known, tuple(Record(ModeKey(each)) for each in gone))


def _cleared(scope: str | None, state: State) -> Iterator[Record]:
    """Ids are given by who imports: nothing may be there that they could clash with."""
    subjects = [name for name in state.names() if name == scope or _is_within(name, scope)]
    if any(state.has(name) for name in subjects):
        raise errors.not_permitted("Cannot import since found existing subjects")
    values = [each for name in subjects for each in state.versions(name, deleted=True)]
    for value in values:
        if state.referrers(value.key, deleted=True):
            raise errors.referenced(value.key)
    yield from gone_for_good(values, state)
    if scope is not None:
        yield Record(ClearSubjectKey(scope), ClearSubjectValue(scope))


def _is_within(name: str | None, scope: str | None) -> bool:
    """Whether it is a subject of the context that the scope is; of all contexts if it is None."""
    if name is None:
        return False
    if scope is None or scope == GLOBAL_SCOPE:
        return True
    wider = Subject.parse(scope)
    return not wider.name and Subject.parse(name).context == wider.context
