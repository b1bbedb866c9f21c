"""Protobuf schemas as real clients send them: texts, descriptors, and what others stored."""

import base64
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.text_format import Parse
from tests.registry.api.conftest import Api


def body(text: str, *references: tuple[str, str]) -> dict[str, Any]:
    """`references` are names and subjects."""
    named = [{"name": name, "subject": subject, "version": 1} for name, subject in references]
    return {"schemaType": "PROTOBUF", "schema": text, "references": named}


def described(text: str) -> str:
    """Returns a descriptor in base64, as confluent_kafka's serializer sends it."""
    return base64.b64encode(Parse(text, FileDescriptorProto()).SerializeToString()).decode()


def chained(letter: str, used: str | None) -> str:
    dependency = f'dependency: "{used}.proto"' if used else ""
    kind = f'type: TYPE_MESSAGE type_name: ".{used}.M"' if used else "type: TYPE_INT32"
    return described(
        f"""
        name: "{letter}.proto" package: "{letter}" syntax: "proto3" {dependency}
        message_type {{
          name: "M" field {{ name: "f" number: 1 label: LABEL_OPTIONAL {kind} }}
        }}
        """
    )


def test_a_chain_of_imports_is_registered_as_descriptors(api: Api, subject: str) -> None:
    names = {letter: f"{subject}-{letter}" for letter in "abc"}
    api.ok("POST", f"/subjects/{names['c']}/versions", body(chained("c", None)))
    of_b = body(chained("b", "c"), ("c.proto", names["c"]))
    api.ok("POST", f"/subjects/{names['b']}/versions", of_b)
    of_a = body(chained("a", "b"), ("b.proto", names["b"]))
    id_ = api.ok("POST", f"/subjects/{names['a']}/versions", of_a)["id"]
    assert api.ok("POST", f"/subjects/{names['a']}", of_a)["id"] == id_
    sent_back = api.ok("GET", f"/schemas/ids/{id_}?format=serialized")["schema"]
    file = FileDescriptorProto.FromString(base64.b64decode(sent_back))
    assert list(file.dependency) == ["b.proto"]
    assert file.message_type[0].field[0].type_name == ".b.M"


def test_a_text_is_stored_with_the_names_that_it_has(api: Api, subject: str) -> None:
    text = (
        'syntax = "proto3";\npackage io.ex;\n\nmessage Order {\n  User user = 1;\n'
        "  map<string, User> others = 2;\n}\nmessage User {\n  string name = 1;\n}\n"
    )
    with_comments = text.replace("User user", "// who\n  User  user")
    id_ = api.ok("POST", f"/subjects/{subject}/versions", body(with_comments))["id"]
    assert api.ok("GET", f"/schemas/ids/{id_}")["schema"] == text
    assert api.ok("POST", f"/subjects/{subject}", body(text))["id"] == id_
    full = text.replace("  User user", "  .io.ex.User user")
    assert api.error_code("POST", f"/subjects/{subject}", body(full)) == 40403
    normal = api.ok("POST", f"/subjects/{subject}/versions?normalize=true", body(text))["id"]
    stored = api.ok("GET", f"/schemas/ids/{normal}")["schema"]
    assert "  .io.ex.User user = 1;\n  map<string, .io.ex.User> others = 2;\n" in stored
    assert api.ok("POST", f"/subjects/{subject}?normalize=true", body(full))["id"] == normal


@pytest.mark.parametrize(
    "text",
    [
        'import "validate/validate.proto"; message A { int32 a = 1; }',
        'import "google/protobuf/timestamp.proto"; message A { int32 a = 1; }',
        'import "v.proto"; message A { int32 a = 1 [(validate.rules).int32.gt = 0]; }',
        "message A { option (unknown.option) = { x: 1 }; int32 a = 1; }",
    ],
)
def test_imports_and_options_that_lead_nowhere_are_accepted(
    api: Api, subject: str, text: str
) -> None:
    path = f"/subjects/{abs(hash(subject))}"
    sent = f'syntax = "proto3"; {text}'
    api.ok("POST", f"{path}/versions", body(sent))
    api.ok("POST", f"{path}/versions", body(sent.replace("a = 1", "b = 1")))
    assert api.ok("GET", f"{path}/versions") == [1, 2]


def test_a_reference_may_have_another_name_than_the_import(api: Api, subject: str) -> None:
    money = 'syntax = "proto3"; package m; message Money { int64 units = 1; }'
    api.ok("POST", f"/subjects/{subject}-money/versions", body(money))
    order = 'syntax = "proto3"; import "m/money.proto"; message Order { m.Money total = 1; }'
    sent = body(order, ("money", f"{subject}-money"))
    id_ = api.ok("POST", f"/subjects/{subject}/versions", sent)["id"]
    serialized = api.ok("GET", f"/schemas/ids/{id_}?format=serialized")["schema"]
    assert FileDescriptorProto.FromString(base64.b64decode(serialized)).dependency == ["money"]


def test_an_undefined_type_is_rejected_except_in_import_mode(api: Api, subject: str) -> None:
    undefined = body('syntax = "proto3";\nmessage A {\n  x.B b = 1;\n}')
    response = api("POST", f"/subjects/{subject}/versions", undefined)
    assert response.error_code == 42201
    assert 'line 3, column 3: "x.B" is not defined' in response.json["message"]
    api.ok("PUT", f"/mode/{subject}", {"mode": "IMPORT"})
    imported = {**undefined, "id": 900_101, "version": 1}
    api.ok("POST", f"/subjects/{subject}/versions", imported)
    api.ok("PUT", f"/mode/{subject}", {"mode": "READWRITE"})
    defined = body(
        'syntax = "proto3"; message A { x.B b = 1; int32 c = 2; message x { message B {} } }'
    )
    response = api("POST", f"/subjects/{subject}/versions", defined)
    assert response.error_code == 409
    assert "FIELD_NAMED_TYPE_CHANGED" in response.json["message"]
    without = body('syntax = "proto3"; message A { int32 c = 2; }')
    assert api.ok("POST", f"/subjects/{subject}/versions", without)["version"] == 2


def test_validate_fields_rejects_what_makes_no_descriptor(api: Api, subject: str) -> None:
    twice = body('syntax = "proto3"; message A { int32 a = 1; int32 b = 1; }')
    api.ok("PUT", f"/config/{subject}", {"validateFields": True})
    assert api.error_code("POST", f"/subjects/{subject}/versions", twice) == 42201
    api.ok("PUT", f"/config/{subject}", {"validateFields": False})
    api.ok("POST", f"/subjects/{subject}/versions", twice)


def test_validate_fields_keeps_reserved_fields_reserved(api: Api, subject: str) -> None:
    def reserving(fields: str, names: str) -> dict[str, Any]:
        properties = {"confluent:reserved": names}
        text = f'syntax = "proto3"; message A {{ {fields} }}'
        return {**body(text), "metadata": {"properties": properties}}

    path = f"/subjects/{subject}/versions"
    api.ok("PUT", f"/config/{subject}", {"validateFields": True, "compatibility": "NONE"})
    conflicting = api("POST", path, reserving("int32 old = 1;", "old, older"))
    assert conflicting.error_code == 409
    assert "conflicts with the reserved field old." in conflicting.json["message"]
    api.ok("POST", path, reserving("int32 a = 1;", "old, older"))
    released = api("POST", path, reserving("int32 a = 1; int32 b = 2;", "older"))
    assert released.error_code == 409
    assert "has reserved field old removed" in released.json["message"]
    assert "{validateFields: 'true', compatibility: 'NONE'}" in released.json["message"]


@pytest.mark.parametrize(
    "text",
    [
        "message A { message B {} enum B { X = 0; } }",
        r'import "\377"; message A { optional B b = 1; }',
        r'syntax = "\377"; message A {}',
        "// only a comment",
        described(
            'message_type { name: "A" field { name: "g" number: 1 type: TYPE_GROUP type_name: "G" }'
            ' field { name: "h" number: 2 type: TYPE_GROUP type_name: "G" }'
            ' nested_type { name: "G" } }'
        ),
    ],
)
def test_hostile_schemas_are_rejected(api: Api, text: str) -> None:
    assert api.error_code("POST", "/subjects/hostile/versions", body(text)) == 42201


def test_a_string_that_is_not_utf8_is_stored_but_makes_no_descriptor(
    api: Api, subject: str
) -> None:
    sent = body(r'message A { optional string a = 1 [json_name = "\377"]; }')
    id_ = api.ok("POST", f"/subjects/{subject}/versions", sent)["id"]
    assert r'json_name = "\377"' in api.ok("GET", f"/schemas/ids/{id_}")["schema"]
    assert api.error_code("GET", f"/schemas/ids/{id_}?format=serialized") == 42201
    api.ok("PUT", f"/config/{subject}", {"validateFields": True})
    assert api.error_code("POST", f"/subjects/{subject}/versions", sent) == 42201


def test_an_undefined_type_cannot_be_normalized_in_import_mode(api: Api, subject: str) -> None:
    api.ok("PUT", f"/mode/{subject}", {"mode": "IMPORT"})
    undefined = body('syntax = "proto3"; message A { x.B b = 1; }')
    assert api.error_code("POST", f"/subjects/{subject}?normalize=true", undefined) == 42201
