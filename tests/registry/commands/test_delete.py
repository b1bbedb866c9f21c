"""Decisions on deletions of versions, subjects and contexts."""

from typing import Any

import pytest
from tests.registry.replay import state_of

from barnabas.registry.commands import RegistryDecision, register
from barnabas.registry.commands.delete import (
    DeleteSubject,
    DeleteVersion,
    RemoveContext,
    decide_context,
    decide_subject,
    decide_version,
)
from barnabas.registry.commands.register import Register
from barnabas.registry.config import SubjectConfig
from barnabas.registry.definitions import RegistryReference, SchemaDefinition
from barnabas.registry.errors import RegistryError
from barnabas.registry.records import (
    ConfigKey,
    ConfigValue,
    DeleteSubjectKey,
    ModeKey,
    ModeValue,
    NoopKey,
    RegistryKey,
    RegistryMode,
    RegistryRecord,
    RegistryValue,
    SchemaKey,
    SchemaValue,
)
from barnabas.registry.state import RegistryState


def written(value: SchemaValue) -> RegistryRecord:
    return RegistryRecord(value.key, value)


def version(subject: str, number: int, text: str, *references: RegistryReference) -> SchemaValue:
    id_ = sum(map(ord, text))
    return SchemaValue(subject, number, id_, SchemaDefinition(text, references=references))


ONE, TWO = version("a", 1, "one"), version("a", 2, "two")


def error_code(decide: object, request: object, state: RegistryState) -> int:
    with pytest.raises(RegistryError) as raised:
        decide(request, state)  # type: ignore[operator]
    return raised.value.error_code


def test_a_version_is_soft_deleted_before_it_is_deleted_permanently() -> None:
    state = state_of(written(ONE), written(TWO))
    assert error_code(decide_version, DeleteVersion("a", 1, permanent=True), state) == 40407
    soft = decide_version(DeleteVersion("a", 1), state)
    assert soft.response == 1
    state.apply(soft.records[0])
    assert error_code(decide_version, DeleteVersion("a", 1), state) == 40406
    assert decide_version(DeleteVersion("a", 1, permanent=True), state).records == (
        RegistryRecord(SchemaKey("a", 1)),
    )


def test_version_minus_one_deletes_the_latest_version() -> None:
    assert (
        decide_version(DeleteVersion("a", -1), state_of(written(ONE), written(TWO))).response == 2
    )


def test_deleting_a_missing_version_or_subject_is_not_found() -> None:
    state = state_of(written(ONE))
    assert error_code(decide_version, DeleteVersion("b", 1), state) == 40401
    assert error_code(decide_version, DeleteVersion("a", 9), state) == 40402
    assert error_code(decide_subject, DeleteSubject("b"), state) == 40401


def test_deleting_the_last_version_removes_the_subjects_config_and_mode() -> None:
    state = state_of(written(ONE.as_soft_deleted()))
    state.apply(RegistryRecord(ConfigKey("a"), ConfigValue("a", SubjectConfig(normalize=True))))
    state.apply(RegistryRecord(ModeKey("a"), ModeValue("a", RegistryMode.READWRITE)))
    decision = decide_version(DeleteVersion("a", 1, permanent=True), state)
    keys = {record.key for record in decision.records}
    assert keys == {ONE.key, NoopKey(), ConfigKey("a"), ModeKey("a")}


def test_a_subject_is_soft_deleted_before_it_is_deleted_permanently() -> None:
    state = state_of(written(ONE), written(TWO))
    assert error_code(decide_subject, DeleteSubject("a", permanent=True), state) == 40405
    soft = decide_subject(DeleteSubject("a"), state)
    assert soft.response == [1, 2]
    assert [record.key for record in soft.records] == [DeleteSubjectKey("a")]
    state.apply(soft.records[0])
    assert error_code(decide_subject, DeleteSubject("a"), state) == 40404
    removed = decide_subject(DeleteSubject("a", permanent=True), state)
    assert [record.key for record in removed.records] == [TWO.key, ONE.key, NoopKey()]


@pytest.mark.parametrize("context", ["", ":.s:"])
def test_an_id_is_never_assigned_again(context: str) -> None:
    """Not even if all schemas are deleted and compaction has removed their records."""
    topic: dict[RegistryKey, RegistryValue | None] = {}
    state = RegistryState()

    def write(decision: RegistryDecision[Any]) -> Any:
        for record in decision.records:
            topic[record.key] = record.value
            state.apply(record)
        return decision.response

    ids = []
    for name in ("fixed", "enum", "other"):
        text = f'{{"type":"fixed","name":"{name}","size":1}}'
        ids.append(
            write(register.decide(Register(f"{context}a", SchemaDefinition(text)), state)).id
        )
        write(decide_subject(DeleteSubject(f"{context}a"), state))
        write(decide_subject(DeleteSubject(f"{context}a", permanent=True), state))
        write(decide_context(RemoveContext(".s"), state))
        topic = {key: value for key, value in topic.items() if value is not None}
        state = state_of(*(RegistryRecord(key, value) for key, value in topic.items()))
    assert ids == [1, 2, 3]
    assert set(topic) == {NoopKey(), DeleteSubjectKey(f"{context}a")}


def test_a_version_that_others_refer_to_is_not_deleted() -> None:
    referring = version("b", 1, "three", RegistryReference("A", "a", 1))
    state = state_of(written(ONE), written(referring))
    assert error_code(decide_version, DeleteVersion("a", 1), state) == 42206
    assert error_code(decide_subject, DeleteSubject("a"), state) == 42206
    state.apply(RegistryRecord(referring.key, referring.as_soft_deleted()))
    assert decide_subject(DeleteSubject("a"), state).response == [1]


def test_nothing_is_deleted_in_a_read_only_mode() -> None:
    state = state_of(written(ONE))
    state.apply(RegistryRecord(ModeKey(None), ModeValue(None, RegistryMode.READONLY)))
    assert error_code(decide_version, DeleteVersion("a", 1), state) == 42205
    assert error_code(decide_subject, DeleteSubject("a"), state) == 42205
