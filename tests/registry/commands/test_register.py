"""Decisions on schemas to register."""

import json

import pytest

from barnabas.decision import Decision
from barnabas.registry.commands.register import Register, decide
from barnabas.registry.config import CompatibilityLevel, SubjectConfig
from barnabas.registry.definitions import RegistryMetadata, RegistryReference, SchemaDefinition
from barnabas.registry.errors import RegistryError
from barnabas.registry.records import (
    ConfigKey,
    ConfigValue,
    ContextKey,
    ModeKey,
    ModeValue,
    RegistryMode,
    RegistryRecord,
    SchemaKey,
    SchemaValue,
)
from barnabas.registry.state import RegistryState


def record(*fields: str, name: str = "Order") -> SchemaDefinition:
    types = [{"name": field, "type": "int"} for field in fields]
    return SchemaDefinition(json.dumps({"type": "record", "name": name, "fields": types}))


def put(state: RegistryState, request: Register) -> SchemaValue:
    """Decides, and applies the records."""
    decision = decide(request, state)
    for item in decision.records:
        state.apply(item)
    return decision.response


def set_mode(state: RegistryState, mode: RegistryMode, subject: str | None = None) -> None:
    state.apply(RegistryRecord(ModeKey(subject), ModeValue(subject, mode)))


def set_config(state: RegistryState, config: SubjectConfig, subject: str | None = None) -> None:
    state.apply(RegistryRecord(ConfigKey(subject), ConfigValue(subject, config)))


def test_ids_increase_by_one_per_context_and_versions_per_subject() -> None:
    state = RegistryState()
    set_config(state, SubjectConfig(compatibility_level=CompatibilityLevel.NONE))
    registered = [put(state, Register(*item)) for item in (("a", record("x")), ("a", record("y")))]
    registered.append(put(state, Register("b", record("y"))))
    assert [(item.subject, item.version, item.id) for item in registered] == [
        ("a", 1, 1),
        ("a", 2, 2),
        ("b", 1, 2),
    ]


def test_a_registered_schema_is_not_registered_again() -> None:
    state = RegistryState()
    first = put(state, Register("a", record("x")))
    again = decide(Register("a", SchemaDefinition(record("x").schema.replace(" ", "\n"))), state)
    assert again.records == ()
    assert again.response.id == first.id


def test_a_soft_deleted_schema_is_registered_again_as_a_new_version_with_its_id() -> None:
    state = RegistryState()
    first = put(state, Register("a", record("x")))
    state.apply(RegistryRecord(first.key, first.as_soft_deleted()))
    decision = decide(Register("a", record("x")), state)
    assert (decision.response.version, decision.response.id) == (2, first.id)
    assert [item.key for item in decision.records] == [SchemaKey("a", 1), SchemaKey("a", 2)]


def test_an_incompatible_schema_is_rejected_with_the_field_and_the_version() -> None:
    state = RegistryState()
    put(state, Register("a", record("x")))
    with pytest.raises(RegistryError, match="READER_FIELD_MISSING_DEFAULT_VALUE") as raised:
        decide(Register("a", record("x", "y")), state)
    assert raised.value.error_code == 409
    for reason in ("'y'", "oldSchemaVersion: 1", "compatibility: 'BACKWARD'"):
        assert reason in raised.value.message
    assert decide(Register("a", record("x", "y"), force=True), state).records


def test_a_requested_id_is_accepted_only_in_import_mode() -> None:
    state = RegistryState()
    with pytest.raises(RegistryError, match="not in import mode"):
        decide(Register("a", record("x"), id=7, version=3), state)
    set_mode(state, RegistryMode.IMPORT, "a")
    with pytest.raises(RegistryError, match="not in read-write mode"):
        decide(Register("a", record("x")), state)
    assert put(state, Register("a", record("x"), id=7, version=3)).key == SchemaKey("a", 3)
    assert put(state, Register("b", record("z"))).id == 8
    with pytest.raises(RegistryError, match="Overwrite new schema with id 7"):
        decide(Register("a", record("other"), id=7), state)
    put(state, Register("a", record("last"), id=2**31 - 1))
    with pytest.raises(RegistryError, match="has no id left"):
        decide(Register("b", record()), state)


@pytest.mark.parametrize("mode", [RegistryMode.READONLY, RegistryMode.READONLY_OVERRIDE])
def test_nothing_is_registered_in_a_read_only_mode(mode: RegistryMode) -> None:
    state = RegistryState()
    set_mode(state, mode)
    with pytest.raises(RegistryError, match="read-only mode") as raised:
        decide(Register("a", record("x")), state)
    assert raised.value.error_code == 42205


@pytest.mark.parametrize(
    "mode", [RegistryMode.READONLY, RegistryMode.READONLY_OVERRIDE, RegistryMode.IMPORT]
)
def test_a_registered_schema_is_found_in_any_mode(mode: RegistryMode) -> None:
    state = RegistryState()
    registered = put(state, Register("a", record("x")))
    set_mode(state, mode)
    assert decide(Register("a", record("x")), state) == Decision((), registered)


@pytest.mark.parametrize(
    "fault", ['"name":"x","type":"int","default":"none"', '"name":"a-b","type":"int"']
)
def test_faulty_schemas_of_another_registry_do_not_block_new_versions(fault: str) -> None:
    state = RegistryState()
    text = '{"type":"record","name":"Order","fields":[{' + fault + "}]}"
    stored = SchemaValue("a", 1, 1, SchemaDefinition(text))
    state.apply(RegistryRecord(stored.key, stored))
    assert decide(Register("a", stored.definition), state) == Decision((), stored)
    assert put(state, Register("a", record())).version == 2
    with pytest.raises(RegistryError, match=r"Invalid default|is no name") as raised:
        decide(Register("b", stored.definition), state)
    assert raised.value.error_code == 42201
    set_config(state, SubjectConfig(validate_new_schemas=False), "b")
    assert put(state, Register("b", stored.definition)).id == 1


def test_a_requested_version_must_be_the_next() -> None:
    state = RegistryState()
    put(state, Register("a", record("x")))
    with pytest.raises(RegistryError, match="one more than previous"):
        decide(Register("a", record(), version=5), state)
    assert put(state, Register("a", record(), version=2)).version == 2


def test_references_are_found_in_the_context_of_the_referring_schema() -> None:
    state = RegistryState()
    put(state, Register(":.s:items", record("n", name="Item")))
    text = {"type": "record", "name": "Order", "fields": [{"name": "item", "type": "Item"}]}
    order = SchemaDefinition(json.dumps(text), references=(RegistryReference("Item", "items", 1),))
    assert put(state, Register(":.s:orders", order)).id == 2
    with pytest.raises(RegistryError, match='No schema reference found for subject "items"'):
        decide(Register("orders", order), state)


def test_the_first_schema_of_a_context_creates_it() -> None:
    decision = decide(Register(":.s:a", record("x")), RegistryState())
    assert [item.key for item in decision.records] == [ContextKey(".s"), SchemaKey(":.s:a", 1)]


def test_normalized_texts_with_the_same_meaning_are_one_schema() -> None:
    state = RegistryState()
    set_config(state, SubjectConfig(normalize=True))
    one = SchemaDefinition('{"type":"record","name":"A","namespace":"n","fields":[]}')
    same = SchemaDefinition('{"fields":[],"name":"n.A","type":"record"}')
    assert put(state, Register("a", one)).id == put(state, Register("b", same)).id


def test_only_versions_of_the_compatibility_group_are_compared() -> None:
    state = RegistryState()
    set_config(state, SubjectConfig(compatibility_group="major"))
    old, new = (RegistryMetadata(properties=(("major", item),)) for item in "12")
    put(state, Register("a", SchemaDefinition(record("x").schema, metadata=old)))
    changed = record("x", "y").schema
    assert put(state, Register("a", SchemaDefinition(changed, metadata=new))).version == 2
    with pytest.raises(RegistryError, match="READER_FIELD_MISSING"):
        decide(Register("a", SchemaDefinition(record("x", "z").schema, metadata=new)), state)


def test_metadata_is_inherited_from_the_config_and_the_previous_version() -> None:
    state = RegistryState()
    default, override = (
        RegistryMetadata(properties=(("owner", item),)) for item in ("all", "boss")
    )
    set_config(state, SubjectConfig(default_metadata=default))
    first = put(state, Register("a", record("x")))
    assert first.definition.metadata == default
    own = RegistryMetadata(properties=(("team", "one"),))
    second = put(state, Register("a", SchemaDefinition(record().schema, metadata=own)))
    assert second.definition.metadata == own.merged_over(default)
    none = CompatibilityLevel.NONE
    set_config(state, SubjectConfig(override_metadata=override, compatibility_level=none))
    third = put(state, Register("a", record("x")))
    assert third.definition.metadata == override.merged_over(own.merged_over(default))


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        (SchemaDefinition("nonsense"), "Invalid schema of type AVRO"),
        (SchemaDefinition('"int"', "XML"), "Invalid schema type XML"),
        (SchemaDefinition("  "), "Empty schema"),
    ],
)
def test_an_invalid_schema_is_rejected(definition: SchemaDefinition, expected: str) -> None:
    with pytest.raises(RegistryError, match=expected) as raised:
        decide(Register("a", definition), RegistryState())
    assert raised.value.error_code == 42201


def test_an_unreadable_version_does_not_prevent_a_registration() -> None:
    state = RegistryState()
    set_config(state, SubjectConfig(compatibility_level=CompatibilityLevel.NONE))
    broken = SchemaDefinition(
        record("x").schema, references=(RegistryReference("Item", "items", 1),)
    )
    state.apply(RegistryRecord(SchemaKey("orders", 1), SchemaValue("orders", 1, 1, broken)))
    assert put(state, Register("orders", record("y"))).version == 2


@pytest.mark.parametrize(
    ("schema_type", "stored", "sent"),
    [
        ("AVRO", '{ "type": "int" }', '"int"'),
        ("JSON", '{"title": "A"}', '{"title":"A"}'),
        ("PROTOBUF", "message A { /* a */ }", "message A {}"),
    ],
)
def test_a_version_that_another_registry_stored_in_another_form_is_found(
    schema_type: str, stored: str, sent: str
) -> None:
    value = SchemaValue("a", 1, 7, SchemaDefinition(stored, schema_type))
    state = RegistryState()
    state.apply(RegistryRecord(value.key, value))
    decision = decide(Register("a", SchemaDefinition(sent, schema_type)), state)
    assert (decision.records, decision.response) == ((), value)


def test_a_stored_version_that_cannot_be_parsed_does_not_hide_the_others() -> None:
    state = RegistryState()
    for version, text in ((1, "message A { /* a */ }"), (2, "message ( {")):
        value = SchemaValue("a", version, version, SchemaDefinition(text, "PROTOBUF"))
        state.apply(RegistryRecord(value.key, value))
    response = put(state, Register("a", SchemaDefinition("message A {}", "PROTOBUF")))
    assert response.version == 1
    new = Register("a", SchemaDefinition("message B {}", "PROTOBUF"))
    with pytest.raises(RegistryError, match=r"Version 2 of subject a.* cannot be read.*line 1"):
        put(state, new)
    set_config(state, SubjectConfig(compatibility_level=CompatibilityLevel.NONE))
    assert put(state, new).version == 3


def test_an_imported_schema_may_have_undefined_types_and_is_not_normalized() -> None:
    state = RegistryState()
    text = "message A {\n  optional B b = 1;\n}\n"
    definition = SchemaDefinition(text, "PROTOBUF")
    with pytest.raises(RegistryError, match='"B" is not defined'):
        decide(Register("a", definition), state)
    set_mode(state, RegistryMode.IMPORT, "a")
    imported = put(state, Register("a", definition, id=3, version=1, normalize=True))
    assert imported.definition.schema == f"\n{text}"
