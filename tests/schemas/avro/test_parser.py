"""Parsing and validating Avro schemas: errors have a reason and a location."""

import json

import pytest

from barnabas.schemas import SchemaError, SchemaType, parse


def record(*fields: object, **attributes: object) -> dict[str, object]:
    return {"type": "record", "name": "shop.Order", "fields": list(fields), **attributes}


def field(name: str, type_: object, **attributes: object) -> dict[str, object]:
    return {"name": name, "type": type_, **attributes}


def error_of(schema: object, references: dict[str, str] | None = None) -> str:
    text = schema if isinstance(schema, str) else json.dumps(schema)
    with pytest.raises(SchemaError) as raised:
        parse(SchemaType.AVRO, text, references or {}).require_valid()
    return str(raised.value)


WRONG = [
    ("no JSON", "{", "not JSON"),
    ("nothing", "", "not JSON"),
    ("more than one value", '"int" "int"', "not JSON"),
    ("not a number", record(field("a", "double", default=float("nan"))), "NaN"),
    ("a number", 3, "a number"),
    ("no type", {}, "has no type"),
    ("a type that is an object", {"type": {"type": "int"}}, "an object"),
    ("an unknown name", record(field("a", "Customer")), "shop.Order.a is Customer"),
    ("no name", {"type": "record", "fields": []}, "no name"),
    ("no fields", {"type": "record", "name": "A"}, "A has no fields"),
    ("fields that are none", {"type": "record", "name": "A", "fields": {}}, "fields of the record"),
    ("a field that is none", record("id"), "a string, no object"),
    ("a field without name", record({"type": "int"}), "shop.Order has no name"),
    ("a field without type", record({"name": "a"}), "The field shop.Order.a has no type"),
    ("a bad field name", record(field("a-b", "int")), '"a-b" is no name'),
    ("a bad record name", record(name="shop.1st"), '"1st" is no name'),
    ("a bad namespace", record(name="shop.no-pe.A"), '"no-pe" is no name'),
    ("an empty name", record(name=""), '"" is no name'),
    ("a primitive's name", record(name="int"), "named after a primitive"),
    ("two fields of a name", record(field("a", "int"), field("a", "int")), "two fields called a"),
    ("an unknown order", record(field("a", "int", order="up")), "order of the field shop.Order.a"),
    ("aliases that are none", record(aliases="B"), "aliases of the record shop.Order"),
    ("a name defined twice", record(field("a", record())), "shop.Order is defined twice"),
    ("no items", {"type": "array"}, "no items"),
    ("no values", {"type": "map"}, "no values"),
    ("a union in a union", ["null", ["int"]], "another union"),
    ("a branch twice", record(field("a", ["int", "int"])), "shop.Order.a has int twice"),
    ("two arrays in a union", [{"type": "array", "items": "int"}] * 2, "array twice"),
    ("no symbols", {"type": "enum", "name": "E"}, "E has no symbols"),
    ("symbols that are none", {"type": "enum", "name": "E", "symbols": [1]}, "symbols of the enum"),
    ("a bad symbol", {"type": "enum", "name": "E", "symbols": ["a b"]}, '"a b" is no name'),
    ("a symbol twice", {"type": "enum", "name": "E", "symbols": ["A", "A"]}, "symbol A twice"),
    (
        "a default that is no symbol",
        {"type": "enum", "name": "E", "symbols": ["A"], "default": "B"},
        'default of the enum E is "B"',
    ),
    ("no size", {"type": "fixed", "name": "F"}, "F has no size"),
    ("a negative size", {"type": "fixed", "name": "F", "size": -1}, "size of the fixed F"),
]


@pytest.mark.parametrize(
    ("schema", "expected"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG]
)
def test_an_invalid_schema_is_rejected_with_its_location(schema: object, expected: str) -> None:
    assert expected in error_of(schema)


INNER = {
    "type": "record",
    "name": "Inner",
    "fields": [field("x", "int"), field("y", "int", default=0)],
}
BAD_DEFAULTS = [
    ("int", "1"),
    ("int", 1.5),
    ("int", True),
    ("int", 2**31),
    ("long", 2**63),
    ("boolean", 0),
    ("string", None),
    ("bytes", 1),
    ("null", 0),
    ("double", "one"),
    (["null", "int"], "x"),
    ({"type": "array", "items": "int"}, [1, "2"]),
    ({"type": "map", "values": "int"}, {"a": None}),
    ({"type": "map", "values": "int"}, []),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, 1),
    (INNER, {"y": 1}),
    (INNER, None),
]


@pytest.mark.parametrize(("type_", "default"), BAD_DEFAULTS)
def test_a_default_that_is_not_of_its_type_is_rejected(type_: object, default: object) -> None:
    assert "field shop.Order.a" in error_of(record(field("a", type_, default=default)))


GOOD_DEFAULTS = [
    ("long", 2**63 - 1),
    ("double", 1),
    ({"type": "double"}, 0),
    ("float", "1.5"),
    (["null", "int"], None),
    (["null", "int"], 5),
    ({"type": "array", "items": ["null", "string"]}, [None, "a"]),
    (INNER, {"x": 1}),
    ("bytes", "\u00ff"),
]


@pytest.mark.parametrize(("type_", "default"), GOOD_DEFAULTS)
def test_a_default_of_its_type_is_accepted(type_: object, default: object) -> None:
    text = json.dumps(record(field("a", type_, default=default)))
    schema = parse(SchemaType.AVRO, text, {})
    schema.require_valid()
    assert '"default":' in schema.text


def test_references_are_found_by_name_whatever_their_order() -> None:
    references = {
        "shop.Customer": json.dumps(
            {"type": "record", "name": "shop.Customer", "fields": [field("home", "Address")]}
        ),
        "shop.Address": json.dumps({"type": "fixed", "name": "shop.Address", "size": 8}),
    }
    order = parse(
        SchemaType.AVRO,
        json.dumps(record(field("who", "Customer"), field("to", "shop.Address"))),
        references,
    )
    assert order.text == (
        '{"type":"record","name":"Order","namespace":"shop","fields":['
        '{"name":"who","type":"Customer"},{"name":"to","type":"Address"}]}'
    )


def test_a_fault_in_a_reference_names_the_reference() -> None:
    assert error_of('"int"', {"shop.Customer": '{"type":"record"}'}).startswith(
        "In the reference shop.Customer: "
    )


def test_references_that_need_each_other_are_rejected() -> None:
    references = {
        "A": '{"type":"record","name":"A2","fields":[{"name":"b","type":"B"}]}',
        "B": '{"type":"record","name":"B2","fields":[{"name":"a","type":"A"}]}',
    }
    assert error_of('"A"', references).startswith("In the reference A: In the reference B: ")


def test_defaults_in_references_are_not_validated_again() -> None:
    registered = '{"type":"record","name":"A","fields":[{"name":"n","type":"int","default":"x"}]}'
    schema = parse(SchemaType.AVRO, '"A"', {"A": registered})
    schema.require_valid()
    assert schema.text == '"A"'


def test_a_name_may_be_used_before_it_is_defined() -> None:
    size = {"type": "fixed", "name": "Size", "size": 2, "namespace": "shop.parts"}
    inner = record(field("me", "shop.Order"), field("size", size), name="shop.Part")
    text = json.dumps(
        record(field("first", "Part"), field("size", "shop.parts.Size"), field("parts", inner))
    )
    schema = parse(SchemaType.AVRO, text, {})
    assert schema.text == (
        '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"first","type":'
        '{"type":"record","name":"Part","fields":[{"name":"me","type":"Order"},{"name":"size",'
        '"type":{"type":"fixed","name":"Size","namespace":"shop.parts","size":2}}]}},'
        '{"name":"size","type":"shop.parts.Size"},{"name":"parts","type":"Part"}]}'
    )
    assert parse(SchemaType.AVRO, schema.text, {}).text == schema.text


def test_only_a_record_has_a_name() -> None:
    assert parse(SchemaType.AVRO, json.dumps(record()), {}).name == "shop.Order"
    assert parse(SchemaType.AVRO, '"string"', {}).name is None


def choice(index: int) -> dict[str, object]:
    following = ["null", "shop.Order", *(f"R{i}" for i in range(index))]
    return {"type": "record", "name": f"R{index}", "fields": [field("next", following)]}


CHOICES = ["null", *(choice(index) for index in range(9))]
NESTED = json.loads('{"next":' * 60 + "5" + "}" * 60)
HOSTILE = [
    ("arrays in arrays", '{"type":"array","items":' * 5000 + '"int"' + "}" * 5000),
    ("brackets without end", "[" * 100_000),
    ("quotes without end", '"' * 99_999),
    ("a default of itself", record(field("me", "shop.Order", default={}))),
    ("a default with a choice at each level", record(field("next", CHOICES, default=NESTED))),
    ("references one inside the other", '"R999"'),
]


@pytest.mark.parametrize("schema", [row[1] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_a_hostile_schema_is_rejected_without_harm(schema: object) -> None:
    chain = {
        f"R{i}": json.dumps(
            {"type": "record", "name": f"R{i}", "fields": [field("f", f"R{i - 1}")]}
        )
        for i in range(999, -1, -1)
    }
    assert error_of(schema, chain if schema == '"R999"' else {})
