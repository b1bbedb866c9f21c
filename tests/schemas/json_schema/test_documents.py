"""Parsing JSON schemas: errors have a location, references are found."""

import json

import pytest

from barnabas.schemas import SchemaError, SchemaType, parse

LATEST = "https://json-schema.org/draft/2020-12/schema"
DRAFTS = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    LATEST,
]


def error_of(schema: object, references: dict[str, str] | None = None) -> str:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    with pytest.raises(SchemaError) as raised:
        parse(SchemaType.JSON, text, references or {})
    return str(raised.value)


WRONG = [
    ("no JSON", "{", "not JSON"),
    ("a number", 3, "not a number"),
    ("an array", [], "not an array"),
    ("an unknown type", {"properties": {"a": {"type": "strin"}}}, "#/properties/a/type"),
    ("a negative length", {"maxLength": -1}, "#/maxLength"),
    ("a pattern that is none", {"pattern": "("}, "#/pattern"),
    ("a dialect that is no text", {"$schema": 5}, "#/$schema"),
    ("a $ref that is no text", {"$ref": 5}, "#/$ref"),
    ("a $ref to nothing", {"$ref": "#/definitions/a"}, "$ref #/definitions/a leads nowhere"),
    ("a $ref to no schema", {"$ref": "#/const", "const": 3}, "#/const leads to no schema"),
    ("a $ref deep inside", {"items": {"not": {"$ref": "#/a"}}}, "$ref #/a leads nowhere"),
    ("a $ref to the network", {"$ref": "http://localhost/a.json"}, "leads nowhere"),
    ("a $ref that is no address", {"$ref": "http://[a"}, "leads nowhere"),
    ("a $ref to itself", {"$ref": "#"}, "leads back to itself"),
    (
        "$refs in a circle",
        {
            "$ref": "#/definitions/a",
            "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}},
        },
        "leads back to itself",
    ),
]


@pytest.mark.parametrize(
    ("schema", "expected"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG]
)
def test_an_invalid_schema_is_rejected_with_its_location(schema: object, expected: str) -> None:
    assert expected in error_of(schema)


@pytest.mark.parametrize("draft", DRAFTS)
def test_each_draft_is_checked_by_its_own_rules(draft: str) -> None:
    exclusive = {"$schema": draft, "minimum": 1, "exclusiveMinimum": True}
    if "draft-04" in draft:
        assert parse(SchemaType.JSON, json.dumps(exclusive), {})
    else:
        assert "#/exclusiveMinimum" in error_of(exclusive)


@pytest.mark.parametrize("schema", ["true", "false", "{}", '{"$schema":"urn:our-own"}'])
def test_booleans_and_schemas_of_unknown_dialects_are_accepted(schema: str) -> None:
    assert parse(SchemaType.JSON, schema, {}).text == schema


def test_the_text_keeps_its_order_and_the_normalized_text_is_sorted() -> None:
    parsed = parse(
        SchemaType.JSON,
        '{ "title": "T", "type": "object", "required": ["b", "a"], "maximum": 1.0}',
        {},
    )
    assert parsed.text == '{"title":"T","type":"object","required":["b","a"],"maximum":1.0}'
    assert parsed.normalized == '{"maximum":1.0,"required":["b","a"],"title":"T","type":"object"}'
    assert parsed.name == "T"


@pytest.mark.parametrize(
    ("reference", "identity"),
    [
        ("address.json", None),
        ("./address.json", None),
        ("address.json#/definitions/street", None),
        ("address.json#/$defs/street", None),
        ("address.json", "http://shop/order.json"),
        ("http://shop/address.json", "http://shop/order.json"),
    ],
)
def test_a_reference_is_found_by_its_name(reference: str, identity: str | None) -> None:
    schema = {"properties": {"to": {"$ref": reference}}} | ({"$id": identity} if identity else {})
    address = {"definitions": {"street": {"type": "string"}}, "$ref": "town.json"}
    references = {"address.json": json.dumps(address), "town.json": '{"type":"string"}'}
    assert parse(SchemaType.JSON, json.dumps(schema), references).text == json.dumps(
        schema, separators=(",", ":")
    )


def test_a_reference_finds_its_own_references_by_name_whatever_its_id() -> None:
    references = {"shop/address.json": '{"$ref":"town.json"}', "town.json": '{"type":"string"}'}
    order = parse(SchemaType.JSON, '{"items":{"$ref":"shop/address.json"}}', references)
    assert (
        order.find_incompatibilities(parse(SchemaType.JSON, '{"items":{"type":"string"}}', {}))
        == []
    )


def test_a_fault_in_a_reference_names_the_reference() -> None:
    assert error_of({}, {"a.json": '{"type":5}'}).startswith("In the reference a.json: ")


@pytest.mark.parametrize(
    "reference",
    ["#/definitions/a", "#/$defs/a", "#named", "http://json-schema.org/draft-07/schema#"],
)
def test_a_ref_into_the_schema_or_a_meta_schema_is_found(reference: str) -> None:
    definitions = {"a": {"$id": "#named", "type": "string"}}
    text = json.dumps({"properties": {"x": {"$ref": reference}}, "definitions": definitions})
    assert parse(SchemaType.JSON, text, {})


HOSTILE = [
    ("schemas in schemas", '{"not":' * 5000 + "{}" + "}" * 5000),
    ("schemas just too many levels deep", '{"not":' * 201 + "{}" + "}" * 201),
    ("very many objects", {"properties": {str(i): {} for i in range(10_001)}}),
    ("very many unlike items", {"required": [i if i % 2 else str(i) for i in range(50_000)]}),
    ("a number that is none", '{"maximum": 1e999}'),
]


@pytest.mark.parametrize("schema", [row[1] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_a_hostile_schema_is_rejected_without_harm(schema: object) -> None:
    assert error_of(schema)


def test_a_deep_schema_within_the_bounds_is_accepted() -> None:
    text = '{"not":' * 190 + "{}" + "}" * 190
    parsed = parse(SchemaType.JSON, text, {})
    assert parsed.find_incompatibilities(parsed) == []


def test_a_long_enumeration_is_accepted() -> None:
    text = json.dumps({"enum": [f"value {i}" for i in range(5_000)]})
    assert parse(SchemaType.JSON, text, {}).text


UNCHECKED = [
    {"definitions": {"a": {}}, "$defs": []},
    {"$ref": "#/ours", "ours": {"enum": 3, "type": [1], "properties": [], "anyOf": None}},
    {"$ref": "#/ours", "ours": {"multipleOf": 0, "maximum": "x", "pattern": 5, "required": {}}},
    {"prefixItems": True, "unevaluatedProperties": {"$id": []}, "unevaluatedItems": "x"},
]


@pytest.mark.parametrize("schema", UNCHECKED)
def test_invalid_parts_that_no_meta_schema_checks_do_no_harm(schema: object) -> None:
    parsed = parse(SchemaType.JSON, json.dumps(schema), {})
    assert parsed.find_incompatibilities(parsed) == []
