"""Compatibility of Protobuf schemas: differences have Confluent's names and paths."""

import pytest

from barnabas.schemas.protobuf import parse

CASES = {
    "nothing": ("int32 a = 1;", "int32 a = 1;", set()),
    "a new field": ("int32 a = 1;", "int32 a = 1; string b = 2;", set()),
    "a field less": ("int32 a = 1; string b = 2;", "int32 a = 1;", set()),
    "another name": ("int32 a = 1;", "int32 b = 1;", set()),
    "numbers that are written alike": ("int32 a = 1;", "uint64 a = 1;", set()),
    "a number that was an enum": ("E a = 1; enum E { X = 0; }", "bool a = 1;", set()),
    "text that was bytes": ("bytes a = 1;", "string a = 1;", set()),
    "repeated text": ("string a = 1;", "repeated string a = 1;", set()),
    "zigzag": ("int32 a = 1;", "sint32 a = 1;", {("FIELD_SCALAR_KIND_CHANGED", "#/A/1")}),
    "text": ("int32 a = 1;", "string a = 1;", {("FIELD_SCALAR_KIND_CHANGED", "#/A/1")}),
    "fixed": ("fixed32 a = 1;", "fixed64 a = 1;", {("FIELD_SCALAR_KIND_CHANGED", "#/A/1")}),
    "a message": ("int32 a = 1;", "A a = 1;", {("FIELD_KIND_CHANGED", "#/A/1")}),
    "a map": ("A a = 1;", "map<string, A> a = 1;", {("FIELD_KIND_CHANGED", "#/A/1")}),
    "the values of a map": (
        "map<string, int32> a = 1;",
        "map<string, string> a = 1;",
        {("FIELD_SCALAR_KIND_CHANGED", "#/A/1")},
    ),
    "repeated numbers": (
        "optional int32 a = 1;",
        "repeated int32 a = 1;",
        {("FIELD_NUMERIC_LABEL_CHANGED", "#/A/1")},
    ),
    "repeated numbers that had no label": ("int32 a = 1;", "repeated int32 a = 1;", set()),
    "an undefined type": ("x.B a = 1;", "x.B a = 1;", set()),
    "another undefined type": (
        "x.B a = 1;",
        "y.B a = 1;",
        {("FIELD_NAMED_TYPE_CHANGED", "#/A/1")},
    ),
    "another message": (
        "B a = 1; message B {} message C {}",
        "C a = 1; message B {} message C {}",
        {("FIELD_NAMED_TYPE_CHANGED", "#/A/1")},
    ),
    "a message that differs": (
        "B a = 1; message B { int32 x = 1; }",
        "B a = 1; message B { float x = 1; }",
        {("FIELD_SCALAR_KIND_CHANGED", "#/A/B/1"), ("FIELD_NAMED_TYPE_CHANGED", "#/A/1")},
    ),
    "a nested message less": ("message B {}", "", {("MESSAGE_REMOVED", "#/A/B")}),
    "an enum less": ("enum E { X = 0; }", "", set()),
    "a field into a new oneof": ("int32 a = 1;", "oneof o { int32 a = 1; }", set()),
    "a field out of a oneof": (
        "oneof o { int32 a = 1; int32 b = 2; }",
        "int32 a = 1; oneof o { int32 b = 2; }",
        set(),
    ),
    "two fields into a oneof": (
        "int32 a = 1; int32 b = 2;",
        "oneof o { int32 a = 1; int32 b = 2; }",
        {("MULTIPLE_FIELDS_MOVED_TO_ONEOF", "#/A/o")},
    ),
    "a field into a oneof that was there": (
        "int32 a = 1; oneof o { int32 b = 2; }",
        "oneof o { int32 a = 1; int32 b = 2; }",
        {("FIELD_MOVED_TO_EXISTING_ONEOF", "#/A/o")},
    ),
    "a oneof's field less": (
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof o { int32 a = 1; }",
        {("ONEOF_FIELD_REMOVED", "#/A/o/2")},
    ),
    "a oneof's field of another type": (
        "oneof o { int32 a = 1; }",
        "oneof o { string a = 1; }",
        {("FIELD_SCALAR_KIND_CHANGED", "#/A/o/1")},
    ),
    "a oneof less": ("oneof o { int32 a = 1; }", "", set()),
    "a oneof of another name": (
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof p { int32 a = 1; int32 b = 2; }",
        set(),
    ),
    "a oneof that was two": (
        "oneof o { int32 a = 1; int32 b = 2; int32 c = 3; int32 d = 4; }",
        "oneof o { int32 a = 1; int32 b = 2; } oneof p { int32 c = 3; int32 d = 4; }",
        set(),
    ),
    "a field into another oneof": (
        "oneof o { int32 a = 1; int32 b = 2; } oneof p { int32 c = 3; }",
        "oneof o { int32 a = 1; } oneof p { int32 b = 2; int32 c = 3; }",
        {("FIELD_MOVED_TO_EXISTING_ONEOF", "#/A/p")},
    ),
    "a field of a deleted oneof into another": (
        "oneof o { int32 a = 1; } oneof p { int32 b = 2; }",
        "oneof p { int32 a = 1; int32 b = 2; }",
        {("FIELD_MOVED_TO_EXISTING_ONEOF", "#/A/p")},
    ),
    "two oneofs merged": (
        "oneof o { int32 a = 1; int32 b = 2; } oneof p { int32 c = 3; }",
        "oneof q { int32 a = 1; int32 b = 2; int32 c = 3; }",
        {("FIELD_MOVED_TO_EXISTING_ONEOF", "#/A/q")},
    ),
    "a member less and another name": (
        "oneof o { int32 a = 1; int32 b = 2; }",
        "oneof p { int32 a = 1; }",
        {("ONEOF_FIELD_REMOVED", "#/A/o/2")},
    ),
    "a member less and the other moved out": (
        "oneof o { int32 a = 1; int32 b = 2; }",
        "int32 a = 1;",
        {("ONEOF_FIELD_REMOVED", "#/A/o/2")},
    ),
    "a member of another name and type": (
        "oneof o { int32 a = 1; }",
        "oneof p { string b = 1; }",
        {("FIELD_SCALAR_KIND_CHANGED", "#/A/p/1")},
    ),
    "presence": ("int32 a = 1;", "optional int32 a = 1;", set()),
}


@pytest.mark.parametrize(("before", "now", "expected"), CASES.values(), ids=CASES)
def test_a_change_is_compatible_or_has_confluents_error_type(
    before: str, now: str, expected: set[tuple[str, str]]
) -> None:
    assert differences(proto3(before), proto3(now)) == expected


def test_adding_or_removing_a_required_field_is_incompatible() -> None:
    with_it = "message A { required int32 a = 1; }"
    optional = "message A { optional int32 a = 1; }"
    assert differences("message A {}", with_it) == {("REQUIRED_FIELD_ADDED", "#/A/1")}
    assert differences(with_it, "message A {}") == {("REQUIRED_FIELD_REMOVED", "#/A/1")}
    changed = {("FIELD_NUMERIC_LABEL_CHANGED", "#/A/1")}
    assert differences(optional, with_it) == differences(with_it, optional) == changed
    text = with_it.replace("int32", "string")
    assert differences(text, optional.replace("int32", "string")) == set()


def test_removing_a_message_or_changing_the_package_is_incompatible() -> None:
    before = 'syntax = "proto3"; package p; message A {} message B {}'
    now = 'syntax = "proto3"; package q; message A {}'
    assert differences(before, now) == {("PACKAGE_CHANGED", "#/"), ("MESSAGE_REMOVED", "#/B")}


def test_messages_may_be_reordered() -> None:
    before = 'syntax = "proto3"; message A {} message B {}'
    assert differences(before, 'syntax = "proto3"; message B {} message A {}') == set()


def test_imported_messages_are_compared_too() -> None:
    text = 'syntax = "proto3"; import "b.proto"; message A { B b = 2; }'
    before = parse(text, {"b.proto": 'syntax = "proto3"; message B { int32 x = 1; }'})
    now = parse(text, {"b.proto": 'syntax = "proto3"; message B { string x = 1; }'})
    assert {(one.error_type, one.additional) for one in now.find_incompatibilities(before)} == {
        ("FIELD_SCALAR_KIND_CHANGED", "#/B/1"),
        ("FIELD_NAMED_TYPE_CHANGED", "#/A/2"),
    }


def test_the_description_names_the_field_and_both_types() -> None:
    (result,) = parse(proto3("string price = 1;"), {}).find_incompatibilities(
        parse(proto3("int32 price = 1;"), {})
    )
    assert result.describe(reader="new", writer="old") == (
        "At #/A/1: field price is string in the new schema, int32 in the old schema."
    )


def test_comparing_recursive_long_and_branching_types_terminates() -> None:
    """A walk along every path would take 2**2000 steps, and 2000 frames."""
    messages = "".join(
        f"message M{i} {{ M{i + 1} a = 1; M{i + 1} b = 2; M0 back = 3; }}" for i in range(2000)
    )
    before = f'syntax = "proto3"; {messages} message M2000 {{ int32 x = 1; }}'
    now = f'syntax = "proto3"; {messages} message M2000 {{ float x = 1; }}'
    assert differences(before, before) == set()
    result = differences(before, now)
    assert ("FIELD_NAMED_TYPE_CHANGED", "#/M0/1") in result
    assert ("FIELD_SCALAR_KIND_CHANGED", "#/M2000/1") in result


def proto3(fields: str) -> str:
    return f'syntax = "proto3"; message A {{ {fields} }}'


def differences(before: str, now: str) -> set[tuple[str, str]]:
    result = parse(now, {}).find_incompatibilities(parse(before, {}))
    return {(one.error_type, one.additional) for one in result}


def test_maps_of_texts_and_of_descriptors_are_the_same() -> None:
    text = proto3("map<string, B> m = 1; message B { int32 x = 1; }")
    described = parse(text, {}).serialized
    assert differences(text, described) == differences(described, text) == set()
    other = text.replace("map<string", "map<int32")
    assert differences(described, other) == {("FIELD_SCALAR_KIND_CHANGED", "#/A/1")}


def test_a_type_of_a_map_that_refers_to_itself_is_compared() -> None:
    text = proto3("E m = 1; message E { option map_entry = true; string key = 1; E value = 2; }")
    assert differences(text, text) == set()


def test_groups_are_compared_as_messages() -> None:
    def group(body: str) -> str:
        return f"message A {{ optional group G = 1 {{ {body} }} }}"

    before, now = group("optional int32 x = 1;"), group("optional string x = 1;")
    assert differences(before, now) == {
        ("FIELD_SCALAR_KIND_CHANGED", "#/A/G/1"),
        ("FIELD_NAMED_TYPE_CHANGED", "#/A/1"),
    }


def test_a_type_that_two_references_declare_is_compared() -> None:
    references = {
        "m.proto": 'syntax = "proto3"; package p; message M { message B {} }',
        "b.proto": 'syntax = "proto3"; package p.M; enum B { X = 0; }',
    }
    schema = parse('syntax = "proto3"; message A { p.M m = 1; }', references)
    assert not schema.find_incompatibilities(schema)
