"""JSON with schemas in a registry, and Confluent's mapping of schemas."""

import json
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connect.converters.conversions import configured, dumps, errors, rows, values
from tests.connect.converters.fake_registry import FakeRegistry
from tests.connect.converters.random_data import SCHEMAS, value_of

from barnabas.connect.converters.json_schema import JsonSchemaConverter
from barnabas.connect.data.schema import (
    DATE,
    DECIMAL,
    JSON_TEXT,
    SCALE,
    ConnectSchema,
    Type,
    struct_schema,
)
from barnabas.registry.service import SchemaRegistry
from barnabas.schemas.framing import id_prefix

SETTINGS = {"schema.registry.url": "http://registry"}


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> FakeRegistry:
    return FakeRegistry.installed(monkeypatch, JsonSchemaConverter)


@pytest.fixture
def converter(registry: FakeRegistry) -> JsonSchemaConverter:
    return configured(JsonSchemaConverter, SETTINGS)


@given(data=st.data(), schema=SCHEMAS, decimal_format=st.sampled_from(["BASE64", "NUMERIC"]))
def test_rows_are_read_as_they_were_written(
    data: Any, schema: ConnectSchema, decimal_format: str
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        FakeRegistry.installed(patch, JsonSchemaConverter)
        converter = configured(JsonSchemaConverter, {**SETTINGS, "decimal.format": decimal_format})
        column = pa.array(data.draw(st.lists(value_of(schema), max_size=5)), schema.arrow_type())
        column = column[data.draw(st.integers(0, 2)) :]
        written = converter.from_connect("topic", schema, column)
        assert not written.errors
        read = converter.to_connect("topic", written.payloads)
        assert not read.errors
        assert values(read) == column.to_pylist()
        if column.null_count < len(column):
            assert read.runs[0].schema == schema


def test_the_text_of_a_schema_is_confluents(
    registry: FakeRegistry, converter: JsonSchemaConverter
) -> None:
    schema = struct_schema(
        {
            "id": ConnectSchema(Type.INT8, doc="the id"),
            "day": ConnectSchema(Type.INT32, True, DATE, 1),
            "tags": ConnectSchema(
                Type.MAP,
                key_schema=ConnectSchema(Type.STRING),
                value_schema=ConnectSchema(Type.INT64),
            ),
            "counts": ConnectSchema(
                Type.MAP,
                key_schema=ConnectSchema(Type.INT32),
                value_schema=ConnectSchema(Type.STRING),
            ),
        },
        "shop.Order",
    )
    row = {"id": 1, "day": None, "tags": [("a", 1)], "counts": [(1, "x")]}
    written = converter.from_connect("topic", schema, pa.array([row], schema.arrow_type()))
    assert json.loads(written.payloads[0].as_py()[5:]) == {
        "id": 1,
        "day": None,
        "tags": {"a": 1},
        "counts": [{"key": 1, "value": "x"}],
    }
    assert json.loads(registry.schemas[0].schema_str or "") == {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "title": "shop.Order",
        "properties": {
            "id": {
                "type": "integer",
                "connect.type": "int8",
                "description": "the id",
                "connect.index": 0,
            },
            "day": {
                "oneOf": [
                    {"type": "null"},
                    {
                        "type": "integer",
                        "connect.type": "int32",
                        "title": DATE,
                        "connect.version": 1,
                    },
                ],
                "connect.index": 1,
            },
            "tags": {
                "type": "object",
                "connect.type": "map",
                "additionalProperties": {"type": "integer", "connect.type": "int64"},
                "connect.index": 2,
            },
            "counts": {
                "type": "array",
                "connect.type": "map",
                "items": {
                    "type": "object",
                    "properties": {
                        "key": {"type": "integer", "connect.type": "int32", "connect.index": 0},
                        "value": {"type": "string", "connect.index": 1},
                    },
                },
                "connect.index": 3,
            },
        },
    }


def test_documents_of_other_writers_are_read(
    registry: FakeRegistry, converter: JsonSchemaConverter
) -> None:
    schema = {
        "title": "Row",
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "price": {"type": ["number", "null"]},
            "any": {"type": ["string", "integer"]},
            "color": {"enum": ["RED", "BLUE"]},
            "address": {"$ref": "#/definitions/address"},
            "list": {"type": "array", "items": {"anyOf": [{"type": "null"}, {"type": "string"}]}},
            "n": {"type": "integer", "default": 3},
            "decimal": {
                "type": "number",
                "title": DECIMAL,
                "connect.type": "bytes",
                "connect.parameters": {"scale": "2"},
            },
            "more": {},
        },
        "definitions": {
            "address": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "parent": {"oneOf": [{"type": "null"}, {"$ref": "#/definitions/address"}]},
                },
            }
        },
    }
    schema_id = registry.register("topic-value", json.dumps(schema))
    document = {
        "id": 1,
        "price": None,
        "any": {"x": [1, 2]},
        "color": "RED",
        "address": {"city": "Bern", "parent": {"city": "x"}},
        "list": ["a", None],
        "decimal": 12.5,
        "unknown": 1,
    }
    payload = id_prefix(schema_id) + dumps(document)
    read = converter.to_connect("topic", pa.array([payload]))
    assert not read.errors
    assert values(read) == [
        {
            "id": 1,
            "price": None,
            "any": '{"x":[1,2]}',
            "color": "RED",
            "address": {"city": "Bern", "parent": '{"city":"x"}'},
            "list": ["a", None],
            "n": 3,
            "decimal": Decimal("12.50"),
            "more": None,
        }
    ]
    found = read.runs[0].schema
    assert found is not None
    types = {each.name: each.schema for each in found.fields}
    assert types["any"].name == JSON_TEXT
    assert types["price"].is_optional
    assert types["decimal"].parameters == {SCALE: "2"}
    written = converter.from_connect("copy", found, read.runs[0].values)
    copied = json.loads(written.payloads[0].as_py()[5:])
    assert copied["any"] == {"x": [1, 2]}
    assert copied["decimal"] == "BOI="
    again = converter.to_connect("copy", written.payloads)
    assert values(again) == values(read)


def test_properties_that_are_not_required_may_be_optional(registry: FakeRegistry) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a"],
    }
    schema_id = registry.register("topic-value", json.dumps(schema))
    payloads = pa.array([id_prefix(schema_id) + b'{"a":1}'])
    strict = configured(JsonSchemaConverter, SETTINGS).to_connect("topic", payloads)
    assert errors(strict) == {
        0: "Failed to deserialize data for topic topic to JSON: Invalid null value for required "
        "INT64 field in field 'b'"
    }
    settings = {**SETTINGS, "use.optional.for.nonrequired": "true"}
    read = configured(JsonSchemaConverter, settings).to_connect("topic", payloads)
    assert values(read) == [{"a": 1, "b": None}]


def test_a_schema_that_is_not_valid_is_an_error_of_its_rows(
    registry: FakeRegistry, converter: JsonSchemaConverter
) -> None:
    schema_id = registry.register("topic-value", '{"$ref":"#/definitions/missing"}')
    read = converter.to_connect("topic", pa.array([id_prefix(schema_id) + b"{}", None]))
    assert "is not defined" in errors(read)[0]
    assert values(read) == [None, None]


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_any_bytes_are_read_or_rejected(documents: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        registry = FakeRegistry.installed(patch, JsonSchemaConverter)
        schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        schema_id = registry.register("topic-value", json.dumps(schema))
        converter = configured(JsonSchemaConverter, SETTINGS)
        payloads = [id_prefix(schema_id) + document for document in documents] + documents
        read = converter.to_connect("topic", pa.array(payloads, pa.binary()))
        assert len(rows(read)) == len(payloads)


def test_a_real_registry_has_the_schemas(schema_registry: SchemaRegistry) -> None:
    topic = f"orders-{uuid4().hex}"
    schema = struct_schema(
        {"id": ConnectSchema(Type.INT64), "name": ConnectSchema(Type.STRING, True)}, "Order"
    )
    settings = {"schema.registry.url": schema_registry.url}
    column = pa.array([{"id": 1, "name": "a"}], schema.arrow_type())
    written = configured(JsonSchemaConverter, settings).from_connect(topic, schema, column)
    read = configured(JsonSchemaConverter, settings).to_connect(topic, written.payloads)
    assert rows(read) == [(schema, {"id": 1, "name": "a"})]
