"""What may be deleted, and how."""

from typing import Any

import pytest
from tests.registry.states import state_of

from barnabas.registry.commands import Decision, register, remove_context
from barnabas.registry.commands.delete import (
    DeleteSubject,
    DeleteVersion,
    decide_subject,
    decide_version,
)
from barnabas.registry.commands.register import Register
from barnabas.registry.commands.remove_context import RemoveContext
from barnabas.registry.config import Config
from barnabas.registry.documents import Definition, Reference
from barnabas.registry.errors import RegistryError
from barnabas.registry.records import (
    ConfigKey,
    ConfigValue,
    DeleteSubjectKey,
    Key,
    Mode,
    ModeKey,
    ModeValue,
    NoopKey,
    Record,
    SchemaKey,
    SchemaValue,
    Value,
)
from barnabas.registry.state import State


def written(value: SchemaValue) -> Record:
    return Record(value.key, value)


def version(subject: str, number: int, text: str, *references: Reference) -> SchemaValue:
    id_ = sum(map(ord, text))
    return SchemaValue(subject, number, id_, Definition(text, references=references))


ONE, TWO = version("a", 1, "one"), version("a", 2, "two")


def error_code(decide: object, request: object, state: State) -> int:
    with pytest.raises(RegistryError) as refused:
        decide(request, state)  # type: ignore[operator]
    return refused.value.error_code


def test_a_version_is_deleted_softly_and_then_for_good() -> None:
    state = state_of(written(ONE), written(TWO))
    assert error_code(decide_version, DeleteVersion("a", 1, permanent=True), state) == 40407
    soft = decide_version(DeleteVersion("a", 1), state)
    assert soft.answer == 1
    state.apply(soft.records[0])
    assert error_code(decide_version, DeleteVersion("a", 1), state) == 40406
    assert decide_version(DeleteVersion("a", 1, permanent=True), state).records == (
        Record(SchemaKey("a", 1)),
    )


def test_the_latest_is_deleted_by_its_own_name() -> None:
    assert decide_version(DeleteVersion("a", -1), state_of(written(ONE), written(TWO))).answer == 2


def test_what_is_not_there_is_not_deleted() -> None:
    state = state_of(written(ONE))
    assert error_code(decide_version, DeleteVersion("b", 1), state) == 40401
    assert error_code(decide_version, DeleteVersion("a", 9), state) == 40402
    assert error_code(decide_subject, DeleteSubject("b"), state) == 40401


def test_the_last_version_takes_the_settings_of_its_subject_along() -> None:
    state = state_of(written(ONE.as_deleted()))
    state.apply(Record(ConfigKey("a"), ConfigValue("a", Config(normalize=True))))
    state.apply(Record(ModeKey("a"), ModeValue("a", Mode.READWRITE)))
    decision = decide_version(DeleteVersion("a", 1, permanent=True), state)
    keys = {each.key for each in decision.records}
    assert keys == {ONE.key, NoopKey(), ConfigKey("a"), ModeKey("a")}


def test_a_subject_is_deleted_softly_and_then_for_good() -> None:
    state = state_of(written(ONE), written(TWO))
    assert error_code(decide_subject, DeleteSubject("a", permanent=True), state) == 40405
    soft = decide_subject(DeleteSubject("a"), state)
    assert soft.answer == [1, 2]
    assert [each.key for each in soft.records] == [DeleteSubjectKey("a")]
    state.apply(soft.records[0])
    assert error_code(decide_subject, DeleteSubject("a"), state) == 40404
    gone = decide_subject(DeleteSubject("a", permanent=True), state)
    assert [each.key for each in gone.records] == [TWO.key, ONE.key, NoopKey()]


@pytest.mark.parametrize("context", ["", ":.s:"])
def test_an_id_is_never_given_again(context: str) -> None:
    """Not even when all are gone, and compaction has left nothing of them."""
    topic: dict[Key, Value | None] = {}
    state = State()

    def write(decision: Decision[Any]) -> Any:
        for each in decision.records:
            topic[each.key] = each.value
            state.apply(each)
        return decision.answer

    given = []
    for name in ("fixed", "enum", "other"):
        text = f'{{"type":"fixed","name":"{name}","size":1}}'
        given.append(write(register.decide(Register(f"{context}a", Definition(text)), state)).id)
        write(decide_subject(DeleteSubject(f"{context}a"), state))
        write(decide_subject(DeleteSubject(f"{context}a", permanent=True), state))
        write(remove_context.decide(RemoveContext(".s"), state))
        topic = {key: value for key, value in topic.items() if value is not None}
        state = state_of(*(Record(key, value) for key, value in topic.items()))
    assert given == [1, 2, 3]
    assert set(topic) == {NoopKey(), DeleteSubjectKey(f"{context}a")}


def test_what_others_refer_to_stays() -> None:
    referring = version("b", 1, "three", Reference("A", "a", 1))
    state = state_of(written(ONE), written(referring))
    assert error_code(decide_version, DeleteVersion("a", 1), state) == 42206
    assert error_code(decide_subject, DeleteSubject("a"), state) == 42206
    state.apply(Record(referring.key, referring.as_deleted()))
    assert decide_subject(DeleteSubject("a"), state).answer == [1]


def test_nothing_is_deleted_in_a_read_only_mode() -> None:
    state = state_of(written(ONE))
    state.apply(Record(ModeKey(None), ModeValue(None, Mode.READONLY)))
    assert error_code(decide_version, DeleteVersion("a", 1), state) == 42205
    assert error_code(decide_subject, DeleteSubject("a"), state) == 42205
