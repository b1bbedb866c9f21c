"""Comparisons of JSON schemas, as tables of (reader, writer, differences with paths)."""

import json
import re

import pytest

from barnabas.schemas import SchemaError, SchemaType, parse

LATEST = "https://json-schema.org/draft/2020-12/schema"
STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NUMBER = {"type": "number"}
NULL = {"type": "null"}


def closed(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def open_(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties}


def partial(rest: object, **properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties, "additionalProperties": rest}


def requires(schema: dict[str, object], *names: str) -> dict[str, object]:
    return {**schema, "required": list(names)}


def breaks(reader: object, writer: object, *, lenient: bool = False) -> list[str]:
    reading, written = (parse(SchemaType.JSON, json.dumps(item), {}) for item in (reader, writer))
    result = []
    for incompatibility in reading.find_incompatibilities(written, lenient=lenient):
        path = re.match(r"At path '(.*?)' .*\w$", incompatibility.description)
        assert path, incompatibility.description
        result.append(f"{incompatibility.error_type} {path[1]}")
    return result


LIMITS = [
    ("string", "maxLength", "MAX_LENGTH", 5, 10),
    ("number", "maximum", "MAXIMUM", 5, 10.5),
    ("number", "exclusiveMaximum", "EXCLUSIVE_MAXIMUM", 5, 10),
    ("object", "maxProperties", "MAX_PROPERTIES", 5, 10),
    ("array", "maxItems", "MAX_ITEMS", 5, 10),
    ("array", "maxContains", "MAX_CONTAINS", 5, 10),
    ("string", "minLength", "MIN_LENGTH", 10, 5),
    ("integer", "minimum", "MINIMUM", 10, 5),
    ("integer", "exclusiveMinimum", "EXCLUSIVE_MINIMUM", 10, 5),
    ("object", "minProperties", "MIN_PROPERTIES", 10, 5),
    ("array", "minItems", "MIN_ITEMS", 10, 5),
    ("array", "minContains", "MIN_CONTAINS", 10, 5),
]


@pytest.mark.parametrize(("kind", "keyword", "name", "tight", "wide"), LIMITS)
def test_a_limit_may_be_widened_and_not_tightened(
    kind: str, keyword: str, name: str, tight: float, wide: float
) -> None:
    none, tighter, wider = (
        {"type": kind},
        {"type": kind, keyword: tight},
        {"type": kind, keyword: wide},
    )
    change = "DECREASED" if tight < wide else "INCREASED"
    assert breaks(tighter, wider) == [f"{name}_{change} #/{keyword}"]
    assert breaks(tighter, none) == [f"{name}_ADDED #/{keyword}"]
    assert breaks(wider, tighter) == breaks(none, tighter) == breaks(tighter, tighter) == []


SCALARS = [
    ("another type", STRING, INTEGER, ["TYPE_CHANGED #/"]),
    ("null for a boolean", {"type": "boolean"}, NULL, ["TYPE_CHANGED #/"]),
    ("an integer as a number", NUMBER, INTEGER, []),
    ("a number as an integer", INTEGER, NUMBER, ["TYPE_NARROWED #/"]),
    ("anything for something", {}, STRING, []),
    ("something for anything", STRING, {}, ["TYPE_CHANGED #/"]),
    ("something for nothing", STRING, False, []),
    ("nothing for something", False, STRING, ["TYPE_CHANGED #/"]),
    ("a pattern", {**STRING, "pattern": "a"}, STRING, ["PATTERN_ADDED #/pattern"]),
    (
        "another pattern",
        {**STRING, "pattern": "a"},
        {**STRING, "pattern": "b"},
        ["PATTERN_CHANGED #/pattern"],
    ),
    ("no pattern", STRING, {**STRING, "pattern": "a"}, []),
    ("a multiple", {**NUMBER, "multipleOf": 2}, NUMBER, ["MULTIPLE_OF_ADDED #/multipleOf"]),
    (
        "a larger multiple",
        {**NUMBER, "multipleOf": 4},
        {**NUMBER, "multipleOf": 2},
        ["MULTIPLE_OF_EXPANDED #/multipleOf"],
    ),
    ("a part of it", {**NUMBER, "multipleOf": 0.1}, {**NUMBER, "multipleOf": 0.3}, []),
    (
        "another multiple",
        {**NUMBER, "multipleOf": 3},
        {**NUMBER, "multipleOf": 2},
        ["MULTIPLE_OF_CHANGED #/multipleOf"],
    ),
    ("a value more", {"enum": ["a", "b"]}, {"enum": ["b"]}, []),
    ("a value less", {"enum": ["a"]}, {"enum": ["a", "b"]}, ["ENUM_ARRAY_NARROWED #/enum"]),
    ("other values", {"enum": ["a"]}, {"enum": ["b"]}, ["ENUM_ARRAY_CHANGED #/enum"]),
    ("equal values", {"enum": [1, {"b": 1, "a": 2}]}, {"enum": [1.0, {"a": 2, "b": 1}]}, []),
    ("another constant", {"const": 1}, {"const": 2}, ["ENUM_ARRAY_CHANGED #/const"]),
    ("less excluded", {"not": INTEGER}, {"not": NUMBER}, []),
    ("more excluded", {"not": NUMBER}, {"not": INTEGER}, ["NOT_TYPE_EXTENDED #/not"]),
    (
        "the limit itself excluded, in draft 4",
        {
            "$schema": "http://json-schema.org/draft-04/schema#",
            "maximum": 1,
            "exclusiveMaximum": True,
        },
        {"$schema": "http://json-schema.org/draft-04/schema#", "maximum": 1},
        ["EXCLUSIVE_MAXIMUM_ADDED #/exclusiveMaximum"],
    ),
    ("words that say nothing", {**STRING, "title": "a", "default": ""}, {**STRING, "$id": "b"}, []),
]

OBJECTS = [
    (
        "a property changed",
        open_(a=STRING, b=open_(c=INTEGER)),
        open_(a=STRING, b=open_(c=NUMBER)),
        ["TYPE_NARROWED #/properties/b/properties/c"],
    ),
    ("a property less, open", open_(), open_(a=STRING), []),
    (
        "a property less, closed",
        closed(),
        closed(a=STRING),
        ["PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"],
    ),
    ("a forbidden property less, closed", closed(), closed(a=False), []),
    ("a property less, covered", partial(STRING), partial(STRING, a=STRING), []),
    (
        "a property less, not covered",
        partial(STRING),
        partial(STRING, a=INTEGER),
        [
            "TYPE_CHANGED #/properties/a",
            "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (
        "a property more, open",
        open_(a=STRING),
        open_(),
        ["OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    ("a property more that is anything, open", open_(a={}), open_(), []),
    (
        "a required property more, open",
        requires(open_(a=STRING), "a"),
        open_(),
        ["REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        "a required property more with a default, open",
        requires(open_(a={**STRING, "default": ""}), "a"),
        open_(),
        ["REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
    ),
    ("a property more, closed", closed(a=STRING), closed(), []),
    (
        "a required property more, closed",
        requires(closed(a=STRING), "a"),
        closed(),
        ["REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL #/properties/a"],
    ),
    (
        "a required property more with a default, closed",
        requires(closed(a={**STRING, "default": ""}), "a"),
        closed(),
        [],
    ),
    ("a property more, covered", partial(INTEGER, a=NUMBER), partial(INTEGER), []),
    (
        "a property more, not covered",
        partial(NUMBER, a=INTEGER),
        partial(NUMBER),
        [
            "TYPE_NARROWED #/properties/a",
            "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/a",
        ],
    ),
    (
        "a property more, covered by a pattern",
        {**closed(x_a=STRING), "patternProperties": {"^x_": STRING}},
        {**closed(), "patternProperties": {"^x_": STRING}},
        [],
    ),
    (
        "a property less, covered by a pattern that asks for something else",
        {**closed(), "patternProperties": {"^x_": STRING}},
        {**closed(x_a=NUMBER), "patternProperties": {"^x_": STRING}},
        [
            "TYPE_CHANGED #/properties/x_a",
            "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/properties/x_a",
        ],
    ),
    (
        "a property that becomes required",
        requires(open_(a=STRING), "a"),
        open_(a=STRING),
        ["REQUIRED_ATTRIBUTE_ADDED #/required/a"],
    ),
    (
        "a property with a default that becomes required",
        requires(open_(a={**STRING, "default": ""}), "a"),
        open_(a=STRING),
        [],
    ),
    ("a property that becomes optional", open_(a=STRING), requires(open_(a=STRING), "a"), []),
    ("opened", open_(), closed(), []),
    ("closed", closed(), open_(), ["ADDITIONAL_PROPERTIES_REMOVED #/additionalProperties"]),
    (
        "closed in part",
        partial(STRING),
        open_(),
        ["ADDITIONAL_PROPERTIES_NARROWED #/additionalProperties"],
    ),
    (
        "other additional properties",
        partial(STRING),
        partial(INTEGER),
        ["TYPE_CHANGED #/additionalProperties"],
    ),
    (
        "a dependency more",
        {"dependencies": {"a": ["b"]}, **open_()},
        open_(),
        ["DEPENDENCY_ARRAY_ADDED #/dependencies/a"],
    ),
    (
        "a dependency on more",
        {"dependencies": {"a": ["b", "c"]}},
        {"dependencies": {"a": ["b"]}},
        ["DEPENDENCY_ARRAY_EXTENDED #/dependencies/a"],
    ),
    ("a dependency on less", {"dependencies": {"a": []}}, {"dependencies": {"a": ["b"]}}, []),
    (
        "a dependency on another",
        {"dependencies": {"a": ["b"]}},
        {"dependencies": {"a": ["c"]}},
        ["DEPENDENCY_ARRAY_CHANGED #/dependencies/a"],
    ),
    (
        "a dependent schema more",
        {"$schema": LATEST, "dependentSchemas": {"a": closed()}, **open_()},
        {"$schema": LATEST, **open_()},
        ["DEPENDENCY_SCHEMA_ADDED #/dependencies/a"],
    ),
    (
        "nothing unevaluated",
        {"$schema": LATEST, "unevaluatedProperties": False, **open_()},
        {"$schema": LATEST, **open_()},
        ["UNEVALUATED_PROPERTIES_REMOVED #/unevaluatedProperties"],
    ),
    (
        "less unevaluated",
        {"$schema": LATEST, "unevaluatedProperties": STRING, **open_()},
        {"$schema": LATEST, "unevaluatedProperties": True, **open_()},
        ["UNEVALUATED_PROPERTIES_NARROWED #/unevaluatedProperties"],
    ),
]

ARRAYS = [
    ("other items", {"items": STRING}, {"items": INTEGER}, ["TYPE_CHANGED #/items"]),
    ("items added", {"items": STRING}, {"type": "array"}, ["SCHEMA_ADDED #/items"]),
    ("items untold", {"type": "array"}, {"items": STRING}, []),
    (
        "an item at its place",
        {"items": [STRING, INTEGER]},
        {"items": [STRING, NUMBER]},
        ["TYPE_NARROWED #/items/1"],
    ),
    (
        "an item more, open",
        {"items": [STRING, STRING]},
        {"items": [STRING]},
        ["ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/1"],
    ),
    ("an item less, open", {"items": [STRING]}, {"items": [STRING, STRING]}, []),
    (
        "an item less, closed",
        {"items": [STRING], "additionalItems": False},
        {"items": [STRING, STRING], "additionalItems": False},
        ["ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL #/items/1"],
    ),
    (
        "an item more, not covered, in 2020-12",
        {"$schema": LATEST, "prefixItems": [STRING, STRING], "items": INTEGER},
        {"$schema": LATEST, "prefixItems": [STRING], "items": INTEGER},
        [
            "TYPE_CHANGED #/items/1",
            "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL #/items/1",
        ],
    ),
    (
        "no further items",
        {"items": [STRING], "additionalItems": False},
        {"items": [STRING]},
        ["ADDITIONAL_ITEMS_REMOVED #/additionalItems"],
    ),
    (
        "unique items",
        {"uniqueItems": True},
        {"type": "array"},
        ["UNIQUE_ITEMS_ADDED #/uniqueItems"],
    ),
]

COMBINATIONS = [
    ("an alternative more", {"oneOf": [STRING, INTEGER]}, {"oneOf": [STRING]}, []),
    (
        "an alternative less",
        {"oneOf": [STRING, INTEGER]},
        {"oneOf": [STRING, INTEGER, NULL]},
        ["SUM_TYPE_NARROWED #/"],
    ),
    (
        "another alternative",
        {"anyOf": [STRING, NULL]},
        {"anyOf": [STRING, INTEGER]},
        ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"],
    ),
    ("a wider alternative", {"anyOf": [NULL, NUMBER]}, {"anyOf": [INTEGER, NULL]}, []),
    ("alternatives that were one", {"oneOf": [NULL, NUMBER]}, INTEGER, []),
    ("one that was alternatives", STRING, {"oneOf": [STRING, NULL]}, ["TYPE_CHANGED #/"]),
    ("one of a single alternative", STRING, {"oneOf": [STRING]}, []),
    ("nullable", {"type": ["string", "null"]}, STRING, []),
    ("no longer nullable", STRING, {"type": ["string", "null"]}, ["TYPE_CHANGED #/"]),
    ("any instead of one", {"anyOf": [STRING, NULL]}, {"oneOf": [STRING, NULL]}, []),
    (
        "one instead of any",
        {"oneOf": [STRING, NULL]},
        {"anyOf": [STRING, NULL]},
        ["COMBINED_TYPE_CHANGED #/"],
    ),
    (
        "one more that all must fit",
        {"allOf": [open_(a=STRING), open_(b=STRING)]},
        {"allOf": [open_(a=STRING)]},
        ["PRODUCT_TYPE_EXTENDED #/"],
    ),
    (
        "one less that all must fit",
        {"allOf": [open_(a=STRING)]},
        {"allOf": [open_(a=STRING), open_(b=STRING)]},
        [],
    ),
    ("an enumeration of strings", {**STRING, "enum": ["a", "b"]}, {**STRING, "enum": ["a"]}, []),
    (
        "an enumeration of fewer strings",
        {**STRING, "enum": ["a"]},
        {**STRING, "enum": ["a", "b"]},
        ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"],
    ),
]


def tree(value: object) -> dict[str, object]:
    return closed(v=value, kids={"type": "array", "items": {"$ref": "#"}})


REFERENCES = [
    ("what it refers to", {"$ref": "#/definitions/a", "definitions": {"a": NUMBER}}, INTEGER, []),
    (
        "what it refers to changed",
        open_(a={"$ref": "#/definitions/a"}) | {"definitions": {"a": STRING}},
        open_(a={"$ref": "#/definitions/a"}) | {"definitions": {"a": INTEGER}},
        ["TYPE_CHANGED #/properties/a"],
    ),
    ("a tree", tree(NUMBER), tree(INTEGER), []),
    ("a tree that changed", tree(STRING), tree(INTEGER), ["TYPE_CHANGED #/properties/v"]),
    (
        "what is beside a $ref, in draft 7, says nothing",
        {"$ref": "#/definitions/a", "maxLength": 1, "definitions": {"a": STRING}},
        STRING,
        [],
    ),
    (
        "what is beside a $ref, in 2020-12, must fit too",
        {"$schema": LATEST, "$ref": "#/$defs/a", "maxLength": 1, "$defs": {"a": STRING}},
        {"$schema": LATEST, "$ref": "#/$defs/a", "$defs": {"a": STRING}},
        ["TYPE_CHANGED #/"],
    ),
]

TABLE = [*SCALARS, *OBJECTS, *ARRAYS, *COMBINATIONS, *REFERENCES]


@pytest.mark.parametrize(
    ("reader", "writer", "broken"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_a_reader_is_incompatible_where_its_keywords_are_stricter(
    reader: object, writer: object, broken: list[str]
) -> None:
    assert breaks(reader, writer) == broken


@pytest.mark.parametrize(
    "schema", [row[1] for row in TABLE], ids=[f"{row[0]}, itself" for row in TABLE]
)
def test_a_schema_reads_itself(schema: object) -> None:
    assert breaks(schema, schema) == []


WITH_DEFAULT = {**STRING, "default": ""}


@pytest.mark.parametrize(
    ("reader", "writer", "broken"),
    [
        (open_(a=STRING, b=STRING), open_(a=STRING), []),
        (requires(open_(a=WITH_DEFAULT), "a"), open_(), []),
        (closed(), closed(a=STRING), []),
        (closed(a=STRING), open_(a=STRING), []),
        (partial(STRING), open_(), []),
        (open_(o=open_(a=STRING)), open_(o=open_()), []),
        ({"allOf": [open_(a=STRING)]}, {"allOf": [open_()]}, []),
        (
            requires(open_(a=STRING), "a"),
            open_(),
            ["REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL #/properties/a"],
        ),
        (open_(a=INTEGER), open_(a=STRING), ["TYPE_CHANGED #/properties/a"]),
        (
            {"type": "array", "prefixItems": [STRING], "$schema": LATEST},
            {"type": "array", "$schema": LATEST},
            ["ITEM_ADDED_TO_OPEN_CONTENT_MODEL #/items/0"],
        ),
    ],
)
def test_the_lenient_policy_ignores_what_open_content_models_leave_undecided(
    reader: object, writer: object, broken: list[str]
) -> None:
    assert breaks(reader, writer, lenient=True) == broken
    assert breaks(reader, writer)


def test_the_description_names_the_path_and_both_schemas() -> None:
    reader, writer = (
        parse(SchemaType.JSON, json.dumps(item), {}) for item in (closed(), closed(email=STRING))
    )
    (result,) = reader.find_incompatibilities(writer)
    assert result.describe("new", "old") == (
        "At path '#/properties/email' the old schema has a property or item that the new schema"
        " lacks and, with its closed content model, forbids"
    )


def test_a_pattern_with_exponential_backtracking_is_matched_in_linear_time() -> None:
    slow = {"patternProperties": {"^(a+)+$": STRING}, **closed()}
    name = "a" * 5000 + "!"
    assert breaks(slow, {**slow, "properties": {name: STRING}}) == [
        f"PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/{name}"
    ]


def test_a_pattern_that_re2_does_not_support_matches_nothing() -> None:
    odd = {"patternProperties": {"^(?=a)": STRING}, **closed()}
    assert breaks(odd, {**odd, "properties": {"a": STRING}}) == [
        "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL #/properties/a"
    ]


def test_alternatives_that_contain_each_other_are_compared_once() -> None:
    def expression(prefix: str) -> object:
        kinds = [closed(kind={"const": i}, **{f"{prefix}{i}": {"$ref": "#"}}) for i in range(40)]
        return {"oneOf": kinds}

    assert breaks(expression("a"), expression("a")) == []
    assert breaks(expression("a"), expression("b")) == ["COMBINED_TYPE_SUBSCHEMAS_CHANGED #/"]


def test_too_many_alternatives_are_rejected() -> None:
    def alternatives(prefix: str) -> object:
        return {"oneOf": [open_(**{f"{prefix}{i}": STRING}) for i in range(400)]}

    with pytest.raises(SchemaError, match="make it smaller"):
        breaks(alternatives("a"), alternatives("b"))


def test_definitions_too_deep_to_compare_are_rejected() -> None:
    def chain(leaf: object) -> object:
        links = {f"d{i}": open_(a={"$ref": f"#/definitions/d{i - 1}"}) for i in range(1, 300)}
        return {"$ref": "#/definitions/d299", "definitions": {"d0": leaf, **links}}

    with pytest.raises(SchemaError, match="levels"):
        breaks(chain(STRING), chain(INTEGER))
