"""Lookups by definition: what is found, and what is parsed for that."""

import json
from collections.abc import Mapping

import pytest
from tests.registry.replay import state_of

from barnabas.registry import lookup
from barnabas.registry.definitions import RegistryReference, SchemaDefinition
from barnabas.registry.lookup import find_version_with
from barnabas.registry.records import RegistryRecord, SchemaKey, SchemaValue
from barnabas.registry.state import RegistryState
from barnabas.schemas import ParsedSchema, SchemaType, parse


def stored(*definitions: SchemaDefinition) -> RegistryState:
    values = [SchemaValue("s", number, number, one) for number, one in enumerate(definitions, 1)]
    return state_of(*(RegistryRecord(SchemaKey("s", value.version), value) for value in values))


def protobuf(text: str, *references: RegistryReference) -> SchemaDefinition:
    return SchemaDefinition(f'syntax = "proto3"; {text}', "PROTOBUF", references)


def find(state: RegistryState, definition: SchemaDefinition) -> int | None:
    version = find_version_with(state, "s", definition, normalize=False)
    return None if version is None else version.version


def test_a_protobuf_version_is_found_in_another_form() -> None:
    """Another registry stored these texts: this one would print them differently."""
    reference = RegistryReference("b.proto", "s", 1)
    using = protobuf("message A { B b = 1; }", reference)
    state = stored(protobuf("message B {}"), protobuf("message"), using)
    assert find(state, protobuf("message   B {}")) == 1
    assert find(state, protobuf("message A { B   b = 1; }", reference)) == 3
    assert find(state, protobuf("message C {}")) is None
    inlined = protobuf("message A { google.protobuf.Any b = 1; }", reference)
    state = stored(protobuf("message B {}"), inlined)
    assert find(state, protobuf("message A { google.protobuf.Any   b = 1; }")) == 2


@pytest.mark.parametrize("schema_type", ["AVRO", "JSON", "PROTOBUF"])
def test_lookups_parse_each_version_once(schema_type: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def counted(kind: SchemaType, text: str, references: Mapping[str, str]) -> ParsedSchema:
        parsed.append(text)
        return parse(kind, text, references)

    def definition(name: str) -> SchemaDefinition:
        texts = {
            "AVRO": json.dumps({"type": "fixed", "name": name, "size": 1}),
            "JSON": json.dumps({"title": name}),
            "PROTOBUF": f"message {name} {{}}",
        }
        return SchemaDefinition(texts[schema_type], schema_type)

    monkeypatch.setattr(lookup, "parse", counted, raising=False)
    definitions = [definition(f"ParsedOnce{number}") for number in range(3)]
    state = stored(*definitions)
    for _ in range(2):
        assert find(state, definition("Missing")) is None
    assert sorted(parsed) == [one.schema for one in definitions]
