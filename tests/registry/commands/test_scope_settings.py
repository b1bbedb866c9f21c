"""Decisions on modes: what each mode requires."""

import pytest
from tests.registry.replay import state_of

from barnabas.registry.commands.scope_settings import (
    RemoveMode,
    SetMode,
    decide_mode_change,
    decide_mode_removal,
)
from barnabas.registry.definitions import SchemaDefinition
from barnabas.registry.errors import RegistryError
from barnabas.registry.records import (
    ClearSubjectKey,
    ModeKey,
    ModeValue,
    NoopKey,
    RegistryMode,
    RegistryRecord,
    SchemaKey,
    SchemaValue,
)
from barnabas.registry.state import RegistryState

ONE = SchemaValue("a", 1, 1, SchemaDefinition('"int"'))


def test_import_mode_needs_a_subject_without_schemas_unless_forced() -> None:
    state = state_of(RegistryRecord(ONE.key, ONE))
    for scope in (None, "a"):
        with pytest.raises(RegistryError, match="found existing subjects"):
            decide_mode_change(SetMode(scope, RegistryMode.IMPORT), state)
        assert decide_mode_change(SetMode(scope, RegistryMode.IMPORT, force=True), state).records
    assert (
        decide_mode_change(SetMode("b", RegistryMode.IMPORT), state).response is RegistryMode.IMPORT
    )


def test_import_mode_removes_soft_deleted_versions() -> None:
    state = state_of(RegistryRecord(ONE.key, ONE.as_soft_deleted()))
    keys = [
        record.key
        for record in decide_mode_change(SetMode("a", RegistryMode.IMPORT), state).records
    ]
    assert keys == [SchemaKey("a", 1), NoopKey(), ClearSubjectKey("a"), ModeKey("a")]


def test_forward_mode_is_only_allowed_globally() -> None:
    assert decide_mode_change(SetMode(None, RegistryMode.FORWARD), RegistryState()).records
    with pytest.raises(RegistryError, match="global level") as raised:
        decide_mode_change(SetMode("a", RegistryMode.FORWARD), RegistryState())
    assert raised.value.error_code == 42204


def test_a_recursive_removal_removes_the_modes_of_a_context() -> None:
    scopes = (":.s:", ":.s:a", ":.t:a", "a")
    state = state_of(
        *(
            RegistryRecord(ModeKey(scope), ModeValue(scope, RegistryMode.READONLY))
            for scope in scopes
        )
    )
    alone = decide_mode_removal(RemoveMode(":.s:"), state)
    assert alone.response is RegistryMode.READONLY
    assert [record.key for record in alone.records] == [ModeKey(":.s:")]
    both = decide_mode_removal(RemoveMode(":.s:", recursive=True), state)
    assert [record.key for record in both.records] == [ModeKey(":.s:"), ModeKey(":.s:a")]
    with pytest.raises(RegistryError, match="not found"):
        decide_mode_removal(RemoveMode("other"), state)
