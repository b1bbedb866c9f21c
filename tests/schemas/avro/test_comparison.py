"""Comparisons of Avro schemas, as tables of (reader, writer, differences with paths)."""

import json

import pytest

from barnabas.schemas import SchemaError, SchemaType, parse

ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FIXED = {"type": "fixed", "name": "F", "size": 4}
FIELD_ADDED = "READER_FIELD_MISSING_DEFAULT_VALUE"


def record(*fields: object, **attributes: object) -> dict[str, object]:
    return {"type": "record", "name": "R", "fields": list(fields), **attributes}


def field(name: str, type_: object, **attributes: object) -> dict[str, object]:
    return {"name": name, "type": type_, **attributes}


def array(items: object) -> dict[str, object]:
    return {"type": "array", "items": items}


def tree(value: object) -> dict[str, object]:
    return record(field("v", value), field("kids", array("R")))


def breaks(reader: object, writer: object) -> list[tuple[str, str]]:
    reading = parse(SchemaType.AVRO, json.dumps(reader), {})
    result = reading.find_incompatibilities(parse(SchemaType.AVRO, json.dumps(writer), {}))
    return [(item.error_type, item.description.split("'")[-2]) for item in result]


TABLE = [
    ("the same", "int", "int", []),
    ("an int as long", "long", "int", []),
    ("an int as float", "float", "int", []),
    ("a float as double", "double", "float", []),
    ("a string as bytes", "bytes", "string", []),
    ("bytes as a string", "string", "bytes", []),
    ("a long as int", "int", "long", [("TYPE_MISMATCH", "/")]),
    ("a double as float", "float", "double", [("TYPE_MISMATCH", "/")]),
    ("a string as int", "int", "string", [("TYPE_MISMATCH", "/")]),
    ("null as a string", "string", "null", [("TYPE_MISMATCH", "/")]),
    ("a map as an array", array("int"), {"type": "map", "values": "int"}, [("TYPE_MISMATCH", "/")]),
    ("items", array("int"), array("string"), [("TYPE_MISMATCH", "/items")]),
    (
        "values",
        {"type": "map", "values": "int"},
        {"type": "map", "values": "string"},
        [("TYPE_MISMATCH", "/values")],
    ),
    ("a record as a fixed", FIXED, record(), [("TYPE_MISMATCH", "/")]),
    ("a field less", record(), record(field("a", "int")), []),
    ("a field more", record(field("a", "int")), record(), [(FIELD_ADDED, "/fields/0")]),
    ("a field more with a default", record(field("a", "int", default=1)), record(), []),
    (
        "a field more with the default null",
        record(field("a", ["null", "int"], default=None)),
        record(),
        [],
    ),
    (
        "fields in another order",
        record(field("a", "int"), field("b", "string")),
        record(field("b", "string"), field("a", "int")),
        [],
    ),
    (
        "a field renamed",
        record(field("b", "int")),
        record(field("a", "int")),
        [(FIELD_ADDED, "/fields/0")],
    ),
    (
        "a field renamed with an alias",
        record(field("b", "int", aliases=["a"])),
        record(field("a", "int")),
        [],
    ),
    (
        "a field changed",
        record(field("a", "string"), field("b", "int")),
        record(field("a", "string"), field("b", "string")),
        [("TYPE_MISMATCH", "/fields/1/type")],
    ),
    (
        "each field that breaks",
        record(field("a", "int"), field("b", "int"), field("c", array("int"))),
        record(field("a", "string"), field("c", array("string"))),
        [
            ("TYPE_MISMATCH", "/fields/0/type"),
            (FIELD_ADDED, "/fields/1"),
            ("TYPE_MISMATCH", "/fields/2/type/items"),
        ],
    ),
    ("another name", record(name="S"), record(), [("NAME_MISMATCH", "/name")]),
    ("another name with an alias", record(name="S", aliases=["R"]), record(), []),
    ("another namespace", record(name="new.R"), record(name="old.R"), []),
    (
        "another name and a field more",
        record(field("a", "int"), name="S"),
        record(),
        [("NAME_MISMATCH", "/name"), (FIELD_ADDED, "/fields/0")],
    ),
    ("a symbol more", {**ENUM, "symbols": ["A", "B", "C"]}, ENUM, []),
    ("a symbol less", {**ENUM, "symbols": ["A"]}, ENUM, [("MISSING_ENUM_SYMBOLS", "/symbols")]),
    ("a symbol less with a default", {**ENUM, "symbols": ["A"], "default": "A"}, ENUM, []),
    (
        "a fixed of another size",
        record(field("f", {**FIXED, "size": 8})),
        record(field("f", FIXED)),
        [("FIXED_SIZE_MISMATCH", "/fields/0/type/size")],
    ),
    ("a branch more", ["null", "int", "string"], ["null", "int"], []),
    ("a branch less", ["null", "int"], ["null", "int", "string"], [("MISSING_UNION_BRANCH", "/2")]),
    ("a union of what was one", ["null", "long"], "int", []),
    ("a union without what was one", ["null", "int"], "string", [("MISSING_UNION_BRANCH", "/")]),
    ("one of what was a union", "long", ["int", "long"], []),
    (
        "one of what was a union with more",
        record(field("a", "int")),
        record(field("a", ["int", "null", "string"])),
        [("TYPE_MISMATCH", "/fields/0/type/1"), ("TYPE_MISMATCH", "/fields/0/type/2")],
    ),
    (
        "a record in a union that changed",
        ["null", record(field("a", "int"))],
        ["null", record()],
        [("MISSING_UNION_BRANCH", "/1")],
    ),
    ("a logical type", {"type": "int", "logicalType": "date"}, "int", []),
    ("a recursive type", tree("long"), tree("int"), []),
    (
        "a recursive type that changed",
        tree("int"),
        tree("string"),
        [("TYPE_MISMATCH", "/fields/0/type")],
    ),
    (
        "a type used twice",
        record(field("a", FIXED), field("b", "F")),
        record(field("a", {**FIXED, "size": 8}), field("b", "F")),
        [
            ("FIXED_SIZE_MISMATCH", "/fields/0/type/size"),
            ("FIXED_SIZE_MISMATCH", "/fields/1/type/size"),
        ],
    ),
]


@pytest.mark.parametrize(
    ("reader", "writer", "broken"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_a_reader_is_incompatible_where_resolution_fails(
    reader: object, writer: object, broken: list[tuple[str, str]]
) -> None:
    assert breaks(reader, writer) == broken


def test_a_branch_that_is_incompatible_only_through_recursion_is_found() -> None:
    """The second field has a pair that was assumed compatible while the first was compared."""

    def schema(value: str) -> object:
        link = record(field("back", ["null", "Top"]), name="Link")
        return record(field("l", ["null", link]), field("v", value), field("m", "Link"), name="Top")

    result = breaks(schema("int"), schema("string"))
    assert ("TYPE_MISMATCH", "/fields/1/type") in result
    assert ("MISSING_UNION_BRANCH", "/fields/2/type/fields/0/type/1") in result


def test_the_description_names_the_field_and_both_schemas() -> None:
    reader = parse(SchemaType.AVRO, json.dumps(record(field("email", "string"))), {})
    (result,) = reader.find_incompatibilities(parse(SchemaType.AVRO, json.dumps(record()), {}))
    assert result.additional == "email"
    assert result.describe("new", "old") == (
        "The field 'email' at path '/fields/0' of the new schema is not in the old schema"
        " and has no default value to take instead"
    )


def chain(length: int, leaf: str) -> object:
    """Each record contains the previous one twice: there are many more paths than records."""
    links = [record(field("x", leaf), name="R0")]
    for i in range(1, length):
        inner = f"R{i - 1}"
        links.append(record(field("a", inner), field("b", inner), name=f"R{i}"))
    return record(*(field(f"f{i}", link) for i, link in enumerate(links)), name="Top")


def test_differences_of_a_type_used_in_many_places_are_limited() -> None:
    assert 0 < len(breaks(chain(40, "int"), chain(40, "string"))) <= 25


def test_unions_too_large_to_compare_are_rejected() -> None:
    def union(prefix: str) -> list[object]:
        return [record(name=f"{prefix}{i}") for i in range(400)]

    with pytest.raises(SchemaError, match="make it smaller"):
        breaks(union("A"), union("B"))


def test_schemas_too_deep_to_compare_are_rejected() -> None:
    reader, writer = (
        parse(SchemaType.AVRO, '"R499"', {f"R{i}": json.dumps(link(i, leaf)) for i in range(500)})
        for leaf in ("int", "string")
    )
    with pytest.raises(SchemaError, match="levels"):
        reader.find_incompatibilities(writer)


def link(index: int, leaf: str) -> object:
    return record(field("f", f"R{index - 1}" if index else leaf), name=f"R{index}")
