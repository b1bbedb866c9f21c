"""The state that records build when they are applied in order."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.registry.replay import state_of

from barnabas.registry.config import CompatibilityLevel, SubjectConfig
from barnabas.registry.definitions import RegistryReference, SchemaDefinition
from barnabas.registry.records import (
    ConfigKey,
    ConfigValue,
    DeleteSubjectKey,
    DeleteSubjectValue,
    ModeKey,
    ModeValue,
    RegistryKey,
    RegistryMode,
    RegistryRecord,
    SchemaKey,
    SchemaValue,
)
from barnabas.registry.state import RegistryState

INT, LONG = SchemaDefinition('"int"'), SchemaDefinition('"long"')


def version(
    subject: str, number: int, id_: int, definition: SchemaDefinition = INT
) -> RegistryRecord:
    return RegistryRecord(SchemaKey(subject, number), SchemaValue(subject, number, id_, definition))


def numbers(state: RegistryState, subject: str, *, deleted: bool = False) -> list[int]:
    return [item.version for item in state.versions(subject, deleted=deleted)]


def test_a_schema_has_one_id_under_all_its_subjects() -> None:
    state = state_of(version("a", 1, 1), version("b", 1, 1), version("b", 2, 2, LONG))
    registered = state.find_entry("c", INT)
    assert registered is not None
    assert registered.versions_by_subject == {"a": {1}, "b": {1}}
    assert state.contexts["."].max_id == 2


def test_a_soft_deletion_hides_versions_and_keeps_their_ids() -> None:
    deletion = RegistryRecord(DeleteSubjectKey("a"), DeleteSubjectValue("a", 1))
    state = state_of(version("a", 1, 1), version("a", 2, 2, LONG), deletion)
    assert numbers(state, "a") == [2]
    assert numbers(state, "a", deleted=True) == [1, 2]
    assert state.contexts["."].by_id[1].definition == INT


def test_a_tombstone_removes_a_version_and_the_last_one_its_id() -> None:
    state = state_of(version("a", 1, 1), version("b", 1, 1), RegistryRecord(SchemaKey("a", 1)))
    assert not state.has_versions("a", deleted=True)
    assert 1 in state.contexts["."].by_id
    state.apply(RegistryRecord(SchemaKey("b", 1)))
    assert state.contexts["."].by_id == {}
    assert state.find_entry("a", INT) is None
    assert state.contexts["."].max_id == 1  # an id is not reused


def test_of_two_schemas_with_one_id_the_first_stays() -> None:
    state = state_of(version("a", 1, 1), version("b", 1, 1, LONG))
    assert state.contexts["."].by_id[1].definition == INT
    assert not state.has_versions("b", deleted=True)


def test_each_context_has_its_own_ids() -> None:
    state = state_of(version("a", 1, 1), version(":.staging:a", 1, 1, LONG))
    assert state.contexts["."].by_id[1].definition == INT
    assert state.contexts[".staging"].by_id[1].definition == LONG


def test_referrers_of_a_version_are_listed_until_they_are_removed() -> None:
    referring = SchemaDefinition('"x"', references=(RegistryReference("A", "a", 1),))
    state = state_of(version("a", 1, 1), version(":.s:a", 1, 1), version(":.s:b", 1, 2, referring))
    assert state.referrers(SchemaKey("a", 1)) == []
    assert [referrer.subject for referrer in state.referrers(SchemaKey(":.s:a", 1))] == [":.s:b"]
    state.apply(RegistryRecord(SchemaKey(":.s:b", 1)))
    assert state.referrers(SchemaKey(":.s:a", 1), deleted=True) == []


def test_a_narrower_config_has_precedence_over_the_global_one() -> None:
    def config(subject: str | None, config: SubjectConfig) -> RegistryRecord:
        return RegistryRecord(ConfigKey(subject), ConfigValue(subject, config))

    full = SubjectConfig(compatibility_level=CompatibilityLevel.FULL)
    none = SubjectConfig(compatibility_level=CompatibilityLevel.NONE)
    state = state_of(
        config(None, full), config(":.s:", none), config("a", SubjectConfig(normalize=True))
    )
    assert state.effective_config("a") == replace(full, normalize=True)
    assert state.effective_config("b") == full
    assert state.effective_config(":.s:b") == none
    state.apply(RegistryRecord(ConfigKey(None)))
    assert state.effective_config("b").compatibility_level is CompatibilityLevel.BACKWARD


def test_a_global_readonly_override_has_precedence_over_a_subjects_mode() -> None:
    state = state_of(RegistryRecord(ModeKey("a"), ModeValue("a", RegistryMode.IMPORT)))
    assert state.effective_mode("a") is RegistryMode.IMPORT
    state.apply(RegistryRecord(ModeKey(None), ModeValue(None, RegistryMode.READONLY_OVERRIDE)))
    assert state.effective_mode("a") is RegistryMode.READONLY_OVERRIDE


_subjects = st.sampled_from(["a", "b", ":.s:a"])
_records = st.one_of(
    st.builds(
        lambda subject, number, text: version(subject, number, text, SchemaDefinition(f'"{text}"')),
        _subjects,
        st.integers(1, 3),
        st.integers(1, 4),
    ),
    st.builds(lambda *key: RegistryRecord(SchemaKey(*key)), _subjects, st.integers(1, 3)),
    st.builds(
        lambda subject, mode: RegistryRecord(ModeKey(subject), ModeValue(subject, mode)),
        _subjects,
        st.sampled_from(RegistryMode),
    ),
)


@given(st.lists(_records, max_size=30))
def test_a_compacted_log_builds_the_same_state_as_the_whole_log(
    records: list[RegistryRecord],
) -> None:
    last: dict[RegistryKey, RegistryRecord] = {}
    for record in records:
        last.pop(record.key, None)
        last[record.key] = record
    whole, compacted = state_of(*records), state_of(*last.values())
    assert set(whole.subjects()) == set(compacted.subjects())
    for subject in whole.subjects():
        assert whole.versions(subject, deleted=True) == compacted.versions(subject, deleted=True)
    assert whole.modes == compacted.modes
