"""Schemas, their Arrow types, and their JSON."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from tests.connect.converters.random_data import SCHEMAS

from barnabas.connect.data.schema import (
    DECIMAL,
    SCALE,
    TIMESTAMP,
    ConnectSchema,
    Type,
    decimal_schema,
    java_type_name,
    schema_from_arrow,
)
from barnabas.connect.data.schema_json import schema_from_json, schema_to_json
from barnabas.connect.errors import DataError, SchemaBuildError


def no_default(schema: ConnectSchema, document: Any) -> Any:
    raise AssertionError("the schema has no default")


@given(SCHEMAS)
def test_schemas_are_read_from_the_json_that_is_written(schema: ConnectSchema) -> None:
    text = schema_to_json(schema, lambda _schema: "", json.dumps)
    assert schema_from_json(text, no_default) == schema


def test_the_members_of_a_schema_have_kafkas_order() -> None:
    schema = ConnectSchema(
        Type.MAP,
        True,
        "name",
        2,
        "doc",
        [],
        {"p": "q"},
        key_schema=ConnectSchema(Type.STRING),
        value_schema=ConnectSchema(Type.INT8),
    )
    assert list(json.loads(schema_to_json(schema, lambda _schema: "{}", json.dumps))) == [
        "type",
        "keys",
        "values",
        "optional",
        "name",
        "version",
        "doc",
        "parameters",
        "default",
    ]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"type": "array"}, "Array schema did not specify the element type"),
        ({"type": "array", "items": None}, "Array schema did not specify the element type"),
        ({"type": "map"}, "Map schema did not specify the key type"),
        ({"type": "map", "keys": {"type": "string"}}, "Map schema did not specify the value type"),
        ({"type": "struct", "fields": {}}, 'Struct schema\'s "fields" argument is not an array.'),
        (
            {"type": "struct", "fields": [{"type": "int8"}]},
            "Struct schema's field name not specified properly",
        ),
        ({"type": "string", "parameters": {"a": 1}}, "Schema parameters must have string values."),
        ([], "Schema must contain 'type' field"),
        ({"type": "x"}, "Unknown schema type: x"),
    ],
)
def test_json_that_is_not_a_schema_is_an_error(document: Any, message: str) -> None:
    with pytest.raises(DataError, match=f"^{message}$"):
        schema_from_json(json.dumps(document), no_default)


def test_a_deeply_nested_schema_is_an_error() -> None:
    text = '{"type":"array","items":' * 50_000 + '{"type":"int8"}' + "}" * 50_000
    with pytest.raises(DataError):
        schema_from_json(text, no_default)


@given(SCHEMAS)
def test_the_schema_of_an_arrow_type_has_that_type(schema: ConnectSchema) -> None:
    arrow_type = schema.arrow_type()
    assert schema_from_arrow(arrow_type).arrow_type() == arrow_type


def test_decimals_of_many_digits_are_wide() -> None:
    schema = decimal_schema(5)
    assert schema.arrow_type() == pa.decimal128(38, 5)
    parameters = {SCALE: "5", "connect.decimal.precision": "50"}
    wide = ConnectSchema(Type.BYTES, name=DECIMAL, parameters=parameters)
    assert wide.arrow_type() == pa.decimal256(76, 5)


def test_arrow_types_that_connect_does_not_have_are_errors() -> None:
    with pytest.raises(SchemaBuildError):
        schema_from_arrow(pa.duration("s"))
    assert schema_from_arrow(pa.timestamp("ns")).name == TIMESTAMP


def test_types_have_the_names_of_javas_classes() -> None:
    assert java_type_name(pa.int64()) == "class java.lang.Long"
    assert java_type_name(pa.binary()) == "class [B"
    assert java_type_name(pa.duration("s")) == "Arrow type duration[s]"
