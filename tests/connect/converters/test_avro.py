"""Avro with schemas in a registry, and Confluent's mapping of schemas."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from io import BytesIO
from typing import Any
from uuid import uuid4

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connect.converters.conversions import configured, errors, rows, values
from tests.connect.converters.fake_registry import FakeRegistry
from tests.connect.converters.random_data import SCHEMAS, STRUCTS, value_of

from barnabas.columns.avro.schemas import parse_reader_schema
from barnabas.connect.converters.avro import AvroConverter
from barnabas.connect.converters.avro_mapping import AvroMapping
from barnabas.connect.data.schema import (
    DATE,
    DECIMAL,
    SCALE,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    SchemaField,
    Type,
    struct_schema,
)
from barnabas.connect.errors import DataError, InvalidConfigError, RetriableError
from barnabas.registry.service import SchemaRegistry
from barnabas.schemas.framing import id_prefix

ORDER = struct_schema(
    {"id": ConnectSchema(Type.INT64), "name": ConnectSchema(Type.STRING, True)}, "shop.Order"
)


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> FakeRegistry:
    return FakeRegistry.installed(monkeypatch, AvroConverter)


@pytest.fixture
def converter(registry: FakeRegistry) -> AvroConverter:
    return configured(AvroConverter, {"schema.registry.url": "http://registry"})


def avro(schema: Any, value: Any, schema_id: int) -> bytes:
    """Returns a payload that another implementation has written."""
    content = BytesIO()
    fastavro.schemaless_writer(content, fastavro.parse_schema(schema), value)
    return id_prefix(schema_id) + content.getvalue()


@given(data=st.data(), schema=SCHEMAS, is_enhanced=st.booleans())
def test_rows_are_read_as_they_were_written(
    data: Any, schema: ConnectSchema, is_enhanced: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        FakeRegistry.installed(patch, AvroConverter)
        settings = {"schema.registry.url": "http://registry"}
        settings["enhanced.avro.schema.support"] = str(is_enhanced).lower()
        converter = configured(AvroConverter, settings)
        column = pa.array(data.draw(st.lists(value_of(schema), max_size=5)), schema.arrow_type())
        column = column[data.draw(st.integers(0, 2)) :]
        written = converter.from_connect("topic", schema, column)
        assert not written.errors
        read = converter.to_connect("topic", written.payloads)
        assert not read.errors
        assert values(read) == column.to_pylist()
        if column.null_count < len(column):
            assert read.runs[0].schema == schema


@given(STRUCTS)
def test_schemas_are_read_as_they_were_written(schema: ConnectSchema) -> None:
    mapping = AvroMapping()
    assert mapping.connect_schema(parse_reader_schema(mapping.avro_text(schema), {})) == schema


def test_the_text_of_a_schema_is_confluents() -> None:
    schema = struct_schema(
        {
            "id": ConnectSchema(Type.INT8, doc="the id"),
            "at": ConnectSchema(Type.INT64, True, TIMESTAMP, 1),
            "price": ConnectSchema(Type.BYTES, name=DECIMAL, version=1, parameters={SCALE: "2"}),
            "n": ConnectSchema(Type.INT32, True, default=5),
            "tags": ConnectSchema(
                Type.MAP,
                key_schema=ConnectSchema(Type.INT32),
                value_schema=ConnectSchema(Type.STRING),
            ),
        },
        "shop.Order",
    )
    assert json.loads(AvroMapping().avro_text(schema)) == {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {
                "name": "id",
                "type": {"type": "int", "connect.doc": "the id", "connect.type": "int8"},
                "doc": "the id",
            },
            {
                "name": "at",
                "type": [
                    "null",
                    {
                        "type": "long",
                        "connect.version": 1,
                        "connect.name": TIMESTAMP,
                        "logicalType": "timestamp-millis",
                    },
                ],
                "default": None,
            },
            {
                "name": "price",
                "type": {
                    "type": "bytes",
                    "scale": 2,
                    "precision": 64,
                    "connect.version": 1,
                    "connect.parameters": {"scale": "2"},
                    "connect.name": DECIMAL,
                    "logicalType": "decimal",
                },
            },
            {"name": "n", "type": [{"type": "int", "connect.default": 5}, "null"], "default": 5},
            {
                "name": "tags",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "MapEntry",
                        "namespace": "io.confluent.connect.avro",
                        "connect.internal.type": "MapEntry",
                        "fields": [
                            {"name": "key", "type": "int"},
                            {"name": "value", "type": "string"},
                        ],
                    },
                },
            },
        ],
        "connect.name": "shop.Order",
    }


def test_payloads_of_other_writers_are_read(
    registry: FakeRegistry, converter: AvroConverter
) -> None:
    schema = {
        "type": "record",
        "name": "Row",
        "doc": "a row",
        "fields": [
            {"name": "day", "type": {"type": "int", "logicalType": "date"}},
            {"name": "time", "type": {"type": "int", "logicalType": "time-millis"}},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "micros", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
            {
                "name": "price",
                "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            },
            {
                "name": "color",
                "type": {"type": "enum", "name": "Color", "symbols": ["RED", "BLUE"]},
            },
            {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 2}},
            {"name": "choice", "type": ["null", "string", "long"], "default": None},
            {"name": "n", "type": ["int", "null"], "default": 3},
        ],
    }
    raw = json.loads(json.dumps(schema))
    raw["fields"][3]["type"] = raw["fields"][4]["type"] = None
    raw["fields"][3]["type"], raw["fields"][4]["type"] = "long", "string"
    schema_id = registry.register("topic-value", json.dumps(schema))
    value = {
        "day": date(2024, 2, 29),
        "time": time(1, 2, 3, 4000),
        "at": datetime(2024, 1, 1, tzinfo=UTC),
        "micros": 1_700_000_000_000_123,
        "uuid": "0f1e",
        "price": Decimal("12.50"),
        "color": "BLUE",
        "hash": b"\0\1",
        "choice": 7,
        "n": None,
    }
    read = converter.to_connect("topic", pa.array([avro(raw, value, schema_id)]))
    assert not read.errors
    ((found, row),) = rows(read)
    assert row == {**value, "choice": {"string": None, "long": 7}}
    assert found is not None
    assert (found.name, found.doc) == ("Row", "a row")
    types = {each.name: each.schema for each in found.fields}
    assert [types[name].name for name in ("day", "time", "at", "micros")] == [
        DATE,
        TIME,
        TIMESTAMP,
        None,
    ]
    assert types["price"].parameters == {SCALE: "2", "connect.decimal.precision": "10"}
    assert types["color"].parameters["io.confluent.connect.avro.Enum"] == "Color"
    assert types["choice"].name == "io.confluent.connect.avro.Union"
    assert types["n"].default == 3
    written = converter.from_connect("copy", found, read.runs[0].values)
    again = converter.to_connect("copy", written.payloads)
    assert rows(again) == [(found, {**row, "n": 3})], "nulls are replaced by defaults"


def test_rows_of_several_schemas_keep_their_order(
    registry: FakeRegistry, converter: AvroConverter
) -> None:
    first = registry.register("topic-value", '"string"')
    second = registry.register("topic-value", '"long"')
    payloads = [
        id_prefix(first) + b"\x02a",
        None,
        id_prefix(second) + b"\x02",
        b"\1\2\3\4\5\6",
        id_prefix(first) + b"\x02b",
        id_prefix(99) + b"\0",
        b"",
        id_prefix(second) + b"",
        id_prefix(second) + b"\x04",
    ]
    read = converter.to_connect("topic", pa.array(payloads, pa.binary()))
    assert values(read) == ["a", None, 1, None, "b", None, None, None, 2]
    found = errors(read)
    prefix = "Failed to deserialize data for topic topic to Avro: "
    assert found[3] == found[6] == f"{prefix}Unknown magic byte!"
    assert found[5].startswith(f"{prefix}Error retrieving Avro schema for id 99")
    assert found[7].startswith(f"{prefix}The payload is not Avro of its schema")
    assert set(found) == {3, 5, 6, 7}


def test_a_recursive_schema_is_an_error_of_its_rows(
    registry: FakeRegistry, converter: AvroConverter
) -> None:
    tree = {
        "type": "record",
        "name": "Tree",
        "fields": [{"name": "next", "type": ["null", "Tree"]}],
    }
    schema_id = registry.register("topic-value", json.dumps(tree))
    read = converter.to_connect("topic", pa.array([id_prefix(schema_id) + b"\0", None]))
    assert "contains itself" in errors(read)[0]
    assert values(read) == [None, None]


def test_a_value_beyond_its_connect_type_is_an_error_of_its_row(
    registry: FakeRegistry, converter: AvroConverter
) -> None:
    schema_id = registry.register("topic-value", '{"type":"int","connect.type":"int8"}')
    numbers = [1, 300, -128, -129]
    payloads = pa.array([avro("int", number, schema_id) for number in numbers])
    read = converter.to_connect("topic", payloads)
    assert set(errors(read)) == {1, 3}
    assert values(read) == [1, None, -128, None]


def test_nulls_have_no_payload(converter: AvroConverter) -> None:
    column = pa.array([{"id": 1, "name": None}, None], ORDER.arrow_type())
    written = converter.from_connect("topic", ORDER, column)
    assert written.payloads[1].as_py() is None
    assert values(converter.to_connect("topic", written.payloads)) == column.to_pylist()


def test_rows_that_do_not_fit_the_schema_are_errors(converter: AvroConverter) -> None:
    column = pa.array([{"id": 1}, {"id": None}, {"id": 3}], ORDER.arrow_type())
    written = converter.from_connect("topic", ORDER, column)
    assert [(each.row, str(each.error)) for each in written.errors] == [
        (
            1,
            "Conversion error: null value for field that is required and has no default value in "
            "field 'id'",
        )
    ]
    assert [payload is None for payload in written.payloads.to_pylist()] == [False, True, False]


def test_a_value_that_the_latest_schema_cannot_represent_is_an_error_of_its_row(
    registry: FakeRegistry,
) -> None:
    enum = {"type": "enum", "name": "Color", "symbols": ["RED"]}
    registry.register("topic-value", json.dumps(enum))
    converter = configured(
        AvroConverter,
        {
            "schema.registry.url": "http://registry",
            "auto.register.schemas": "false",
            "use.latest.version": "true",
        },
    )
    column = pa.array(["RED", "BLUE", None, "RED"])
    written = converter.from_connect("topic", ConnectSchema(Type.STRING, True), column)
    assert [each.row for each in written.errors] == [1]
    assert "not a symbol of enum Color" in str(written.errors[0].error)
    assert values(converter.to_connect("topic", written.payloads)) == ["RED", None, None, "RED"]


def test_defaults_are_written_instead_of_nulls(converter: AvroConverter) -> None:
    schema = struct_schema(
        {"a": ConnectSchema(Type.INT32, default=7), "b": ConnectSchema(Type.STRING)}
    )
    column = pa.array([{"a": None, "b": "x"}], schema.arrow_type())
    written = converter.from_connect("topic", schema, column)
    assert values(converter.to_connect("topic", written.payloads)) == [{"a": 7, "b": "x"}]


def test_schemaless_values_get_a_schema_from_their_type(converter: AvroConverter) -> None:
    column = pa.array([{"a": 1, "b": ["x"]}])
    written = converter.from_connect("topic", None, column)
    assert values(converter.to_connect("topic", written.payloads)) == column.to_pylist()


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("TopicNameStrategy", "topic-value"),
        ("RecordNameStrategy", "shop.Order"),
        ("TopicRecordNameStrategy", "topic-shop.Order"),
    ],
)
def test_the_subject_is_named_by_the_strategy(
    registry: FakeRegistry, strategy: str, subject: str
) -> None:
    name = f"io.confluent.kafka.serializers.subject.{strategy}"
    converter = configured(
        AvroConverter,
        {"schema.registry.url": "http://registry", "value.subject.name.strategy": name},
    )
    converter.from_connect("topic", ORDER, pa.array([{"id": 1, "name": "a"}], ORDER.arrow_type()))
    assert list(registry.subjects) == [subject]


def test_a_schema_that_is_not_registered_is_an_error_if_registering_is_off(
    registry: FakeRegistry,
) -> None:
    converter = configured(
        AvroConverter,
        {"schema.registry.url": "http://registry", "auto.register.schemas": "false"},
    )
    column = pa.array([{"id": 1, "name": "a"}], ORDER.arrow_type())
    with pytest.raises(DataError, match="Error registering Avro schema of subject topic-value"):
        converter.from_connect("topic", ORDER, column)
    registry.register("topic-value", AvroMapping().avro_text(ORDER))
    assert not converter.from_connect("topic", ORDER, column).errors


def test_a_registry_that_does_not_respond_can_be_asked_again(
    registry: FakeRegistry, converter: AvroConverter
) -> None:
    registry.is_down = True
    with pytest.raises(RetriableError):
        converter.to_connect("topic", pa.array([id_prefix(1) + b"\0"]))
    with pytest.raises(RetriableError):
        converter.from_connect("topic", None, pa.array(["a"]))


def test_names_that_avro_does_not_allow_are_errors_or_scrubbed(registry: FakeRegistry) -> None:
    schema = struct_schema(
        {"a-b": ConnectSchema(Type.INT32), "1": ConnectSchema(Type.INT32)}, "my-shop.Order!"
    )
    column = pa.array([{"a-b": 1, "1": 2}], schema.arrow_type())
    settings = {"schema.registry.url": "http://registry"}
    with pytest.raises(DataError, match=r"scrub\.invalid\.names"):
        configured(AvroConverter, settings).from_connect("topic", schema, column)
    scrubbing = configured(AvroConverter, {**settings, "scrub.invalid.names": "true"})
    written = scrubbing.from_connect("topic", schema, column)
    assert values(scrubbing.to_connect("topic", written.payloads)) == [{"a_b": 1, "x1": 2}]


def test_structs_of_one_name_may_differ(converter: AvroConverter) -> None:
    inner = struct_schema({"a": ConnectSchema(Type.INT32)}, "x.Inner")
    other = struct_schema({"b": ConnectSchema(Type.STRING)}, "x.Inner")
    unnamed = struct_schema({"c": ConnectSchema(Type.BOOLEAN)})
    schema = struct_schema(
        {"i": inner, "j": inner, "k": other, "l": unnamed, "m": replace(inner, is_optional=True)}
    )
    value = {"i": {"a": 1}, "j": {"a": 2}, "k": {"b": "x"}, "l": {"c": True}, "m": None}
    written = converter.from_connect("topic", schema, pa.array([value], schema.arrow_type()))
    assert rows(converter.to_connect("topic", written.payloads)) == [(schema, value)]


def test_unions_are_structs_with_a_field_for_each_member(
    registry: FakeRegistry, converter: AvroConverter
) -> None:
    schema = [
        "null",
        {"type": "record", "name": "x.A", "fields": [{"name": "a", "type": "int"}]},
        {"type": "record", "name": "x.B", "fields": [{"name": "b", "type": "string"}]},
    ]
    schema_id = registry.register("topic-value", json.dumps(schema))
    documents = [("x.A", {"a": 1}), ("x.B", {"b": "z"})]
    payloads = pa.array([avro(schema, document, schema_id) for document in documents])
    read = converter.to_connect("topic", payloads)
    assert values(read) == [{"A": {"a": 1}, "B": None}, {"A": None, "B": {"b": "z"}}]
    assert read.runs[0].schema is not None
    written = converter.from_connect("copy", read.runs[0].schema, read.runs[0].values)
    assert values(converter.to_connect("copy", written.payloads)) == values(read)


def test_an_unknown_strategy_is_an_error_of_the_settings() -> None:
    settings = {"schema.registry.url": "http://x", "value.subject.name.strategy": "Other"}
    with pytest.raises(InvalidConfigError, match="TopicNameStrategy"):
        configured(AvroConverter, settings)
    with pytest.raises(InvalidConfigError, match=r"schema\.registry\.url"):
        configured(AvroConverter, {})


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_any_bytes_are_read_or_rejected(documents: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        registry = FakeRegistry.installed(patch, AvroConverter)
        schema_id = registry.register("topic-value", AvroMapping().avro_text(ORDER))
        converter = configured(AvroConverter, {"schema.registry.url": "http://registry"})
        payloads = [id_prefix(schema_id) + document for document in documents] + documents
        read = converter.to_connect("topic", pa.array(payloads, pa.binary()))
        assert len(rows(read)) == len(payloads)


def test_a_real_registry_has_the_schemas(schema_registry: SchemaRegistry) -> None:
    topic = f"orders-{uuid4().hex}"
    settings = {"schema.registry.url": schema_registry.url}
    column = pa.array([{"id": 1, "name": "a"}], ORDER.arrow_type())
    written = configured(AvroConverter, settings).from_connect(topic, ORDER, column)
    read = configured(AvroConverter, settings).to_connect(topic, written.payloads)
    assert rows(read) == [(ORDER, {"id": 1, "name": "a"})]


def test_fields_that_are_not_known_are_kept_in_the_order_of_the_schema() -> None:
    schema = ConnectSchema(
        Type.STRUCT, fields=tuple(SchemaField(n, ConnectSchema(Type.INT32)) for n in "cab")
    )
    mapping = AvroMapping(has_metadata=False)
    again = mapping.connect_schema(parse_reader_schema(mapping.avro_text(schema), {}))
    assert [each.name for each in again.fields] == ["c", "a", "b"]
