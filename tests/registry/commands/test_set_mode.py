"""Modes: what has to be so before one may be set."""

import pytest
from tests.registry.states import state_of

from barnabas.registry.commands.set_mode import (
    RemoveMode,
    SetMode,
    decide_change,
    decide_removal,
)
from barnabas.registry.documents import Definition
from barnabas.registry.errors import RegistryError
from barnabas.registry.records import (
    ClearSubjectKey,
    Mode,
    ModeKey,
    ModeValue,
    NoopKey,
    Record,
    SchemaKey,
    SchemaValue,
)
from barnabas.registry.state import State

ONE = SchemaValue("a", 1, 1, Definition('"int"'))


def test_import_is_for_subjects_without_schemas_unless_it_is_forced() -> None:
    state = state_of(Record(ONE.key, ONE))
    for scope in (None, "a"):
        with pytest.raises(RegistryError, match="found existing subjects"):
            decide_change(SetMode(scope, Mode.IMPORT), state)
        assert decide_change(SetMode(scope, Mode.IMPORT, force=True), state).records
    assert decide_change(SetMode("b", Mode.IMPORT), state).answer is Mode.IMPORT


def test_import_clears_what_was_softly_deleted() -> None:
    state = state_of(Record(ONE.key, ONE.as_deleted()))
    keys = [each.key for each in decide_change(SetMode("a", Mode.IMPORT), state).records]
    assert keys == [SchemaKey("a", 1), NoopKey(), ClearSubjectKey("a"), ModeKey("a")]


def test_forward_is_for_all_or_for_nobody() -> None:
    assert decide_change(SetMode(None, Mode.FORWARD), State()).records
    with pytest.raises(RegistryError, match="global level") as refused:
        decide_change(SetMode("a", Mode.FORWARD), State())
    assert refused.value.error_code == 42204


def test_the_modes_of_a_context_go_together_if_asked() -> None:
    scopes = (":.s:", ":.s:a", ":.t:a", "a")
    state = state_of(*(Record(ModeKey(each), ModeValue(each, Mode.READONLY)) for each in scopes))
    alone = decide_removal(RemoveMode(":.s:"), state)
    assert alone.answer is Mode.READONLY
    assert [each.key for each in alone.records] == [ModeKey(":.s:")]
    both = decide_removal(RemoveMode(":.s:", recursive=True), state)
    assert [each.key for each in both.records] == [ModeKey(":.s:"), ModeKey(":.s:a")]
    with pytest.raises(RegistryError, match="not found"):
        decide_removal(RemoveMode("other"), state)
