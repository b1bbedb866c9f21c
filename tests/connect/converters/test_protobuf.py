"""Protobuf with schemas in a registry, and Confluent's mapping of schemas."""

from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st
from tests.connect.converters.conversions import configured, errors, rows, values
from tests.connect.converters.fake_registry import FakeRegistry
from tests.connect.converters.random_data import leaves, maps, structs, value_of

from barnabas.connect.converters.protobuf import ProtobufConverter
from barnabas.connect.converters.protobuf_mapping import ProtobufMapping
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
from barnabas.connect.errors import DataError
from barnabas.registry.service import SchemaRegistry
from barnabas.schemas.framing import id_prefix, index_encodings
from barnabas.schemas.protobuf import parse

SETTINGS = {"schema.registry.url": "http://registry"}
TAG = "io.confluent.connect.protobuf.Tag"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> FakeRegistry:
    return FakeRegistry.installed(monkeypatch, ProtobufConverter)


@pytest.fixture
def converter(registry: FakeRegistry) -> ProtobufConverter:
    return configured(ProtobufConverter, SETTINGS)


def payload(text: str, name: str, schema_id: int, /, **fields: Any) -> bytes:
    """Returns a payload that Google's library has written."""
    schema = parse(text, {})
    message = GetMessageClass(schema.message(name))(**fields)
    index = list(schema.descriptor.message_types_by_name).index(name)
    indexes = index_encodings((index,))[0]
    return id_prefix(schema_id) + indexes + bytes(message.SerializeToString())


def required(schema: ConnectSchema) -> ConnectSchema:
    return replace(schema, is_optional=False)


def repeated(inner: st.SearchStrategy[ConnectSchema]) -> st.SearchStrategy[ConnectSchema]:
    items = inner.map(required)
    mapped = maps(items).map(required)
    return items.map(lambda item: ConnectSchema(Type.ARRAY, value_schema=item)) | mapped


MESSAGES = st.recursive(
    structs(leaves() | repeated(leaves())),
    lambda inner: structs(leaves() | inner | repeated(inner)),
    max_leaves=4,
).map(required)


@given(data=st.data(), schema=MESSAGES)
def test_rows_are_read_as_they_were_written(data: Any, schema: ConnectSchema) -> None:
    with pytest.MonkeyPatch.context() as patch:
        FakeRegistry.installed(patch, ProtobufConverter)
        converter = configured(ProtobufConverter, SETTINGS)
        row = st.none() | value_of(schema)
        column = pa.array(data.draw(st.lists(row, max_size=4)), schema.arrow_type())
        column = column[data.draw(st.integers(0, 2)) :]
        written = converter.from_connect("topic", schema, column)
        assert not written.errors
        read = converter.to_connect("topic", written.payloads)
        assert not read.errors
        assert values(read) == column.to_pylist()


def test_the_text_of_a_schema_is_confluents() -> None:
    schema = struct_schema(
        {
            "id": ConnectSchema(Type.INT8),
            "name": ConnectSchema(Type.STRING, True),
            "price": ConnectSchema(Type.BYTES, name=DECIMAL, version=1, parameters={SCALE: "2"}),
            "day": ConnectSchema(Type.INT32, True, DATE, 1),
            "time": ConnectSchema(Type.INT32, True, TIME, 1),
            "at": ConnectSchema(Type.INT64, True, TIMESTAMP, 1),
            "lines": ConnectSchema(
                Type.ARRAY,
                value_schema=struct_schema({"sku": ConnectSchema(Type.STRING)}, "shop.Line"),
            ),
            "tags": ConnectSchema(
                Type.MAP,
                key_schema=ConnectSchema(Type.STRING),
                value_schema=ConnectSchema(Type.FLOAT64),
            ),
        },
        "shop.Order",
    )
    assert ProtobufMapping().proto_text(schema).split("\n") == [
        'syntax = "proto3";',
        "package shop;",
        "",
        'import "confluent/meta.proto";',
        'import "confluent/type/decimal.proto";',
        'import "google/protobuf/timestamp.proto";',
        'import "google/type/date.proto";',
        'import "google/type/timeofday.proto";',
        "",
        "message Order {",
        '  int32 id = 1 [(confluent.field_meta) = { params: [{ key: "connect.type", '
        'value: "int8" }] }];',
        "  optional string name = 2;",
        '  confluent.type.Decimal price = 3 [(confluent.field_meta) = { params: [{ key: "precision"'
        ', value: "64" }, { key: "scale", value: "2" }] }];',
        "  google.type.Date day = 4;",
        "  google.type.TimeOfDay time = 5;",
        "  google.protobuf.Timestamp at = 6;",
        "  repeated Line lines = 7;",
        "  map<string, double> tags = 8;",
        "  message Line {",
        "    string sku = 1;",
        "  }",
        "}",
        "",
    ]


PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/type/date.proto";
import "google/type/timeofday.proto";
import "confluent/type/decimal.proto";
import "confluent/meta.proto";

message Order {
  int64 id = 1;
  uint64 count = 2;
  Color color = 3;
  oneof choice {
    string text = 4;
    int32 number = 5;
  }
  google.type.Date day = 6;
  google.type.TimeOfDay time = 7;
  google.protobuf.Timestamp at = 8;
  confluent.type.Decimal price = 9 [(confluent.field_meta) = {
    params: [{ key: "scale", value: "2" }]
  }];
  google.protobuf.Int32Value wrapped = 10;
  repeated Order parts = 11;
  optional bool flag = 12;
  map<int32, string> names = 13;
  enum Color { RED = 0; BLUE = 2; }
}
message Other { string name = 1; }
"""


def test_payloads_of_other_writers_are_read(
    registry: FakeRegistry, converter: ProtobufConverter
) -> None:
    schema_id = registry.register("topic-value", PROTO)
    full = payload(
        PROTO,
        "Order",
        schema_id,
        id=7,
        count=2**63 - 1,
        color=2,
        number=5,
        day={"year": 2024, "month": 2, "day": 29},
        time={"hours": 1, "minutes": 2, "seconds": 3, "nanos": 4_000_000},
        at={"seconds": 1_700_000_000},
        price={"value": b"\x04\xe2", "precision": 10, "scale": 2},
        wrapped={"value": 0},
        flag=False,
        names={1: "one"},
    )
    rescaled = payload(PROTO, "Order", schema_id, price={"value": b"\x7d", "scale": 1})
    large = payload(PROTO, "Order", schema_id, count=2**63)
    read = converter.to_connect("topic", pa.array([full, None, rescaled, large]))
    assert list(errors(read)) == [3]
    first, second, third, fourth = values(read)
    assert first == {
        "id": 7,
        "count": 2**63 - 1,
        "color": "BLUE",
        "choice_0": {"text": None, "number": 5},
        "day": date(2024, 2, 29),
        "time": time(1, 2, 3, 4000),
        "at": datetime.fromtimestamp(1_700_000_000, UTC),
        "price": Decimal("12.50"),
        "wrapped": 0,
        "parts": [],
        "flag": False,
        "names": [(1, "one")],
    }
    assert second is fourth is None
    assert third["price"] == Decimal("12.50")
    assert third["choice_0"] is third["wrapped"] is third["flag"] is third["day"] is None
    found = read.runs[0].schema
    assert found is not None
    types = {each.name: each.schema for each in found.fields}
    assert found.name == "Order"
    assert types["id"].parameters == {TAG: "1"}
    assert types["color"].parameters["io.confluent.connect.protobuf.Enum.BLUE"] == "2"
    assert types["choice_0"].name == "io.confluent.connect.protobuf.Union.choice"
    written = converter.from_connect("copy", found, read.runs[0].values)
    assert not written.errors
    again = converter.to_connect("copy", written.payloads)
    assert rows(again) == rows(read)


def test_oneofs_may_be_flat(registry: FakeRegistry) -> None:
    converter = configured(ProtobufConverter, {**SETTINGS, "flatten.unions": "true"})
    schema_id = registry.register("topic-value", PROTO)
    payloads = pa.array([payload(PROTO, "Order", schema_id, text="x")])
    ((_, row),) = rows(converter.to_connect("topic", payloads))
    assert (row["text"], row["number"]) == ("x", None)


def test_messages_of_one_file_keep_their_order(
    registry: FakeRegistry, converter: ProtobufConverter
) -> None:
    schema_id = registry.register("topic-value", PROTO)
    payloads = [
        payload(PROTO, "Other", schema_id, name="a"),
        payload(PROTO, "Order", schema_id, id=1),
        None,
        payload(PROTO, "Other", schema_id, name="b"),
        id_prefix(schema_id) + b"\x02\x09",
        id_prefix(schema_id) + b"\x02",
        id_prefix(schema_id),
        b"x",
    ]
    read = converter.to_connect("topic", pa.array(payloads))
    assert [run.start for run in read.runs] == [0, 1, 3, 5]
    found = values(read)
    assert found[0] == {"name": "a"}
    assert found[1]["id"] == 1
    assert found[3] == {"name": "b"}
    assert found[4:] == [None] * 4
    assert set(errors(read)) == {4, 5, 6, 7}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (ConnectSchema(Type.STRING), "Protobuf needs a struct"),
        (
            struct_schema(
                {
                    "a": ConnectSchema(
                        Type.ARRAY,
                        value_schema=ConnectSchema(
                            Type.ARRAY, value_schema=ConnectSchema(Type.INT32)
                        ),
                    )
                }
            ),
            "Protobuf has no lists of lists",
        ),
        (
            struct_schema(
                {
                    "a": ConnectSchema(
                        Type.MAP,
                        key_schema=ConnectSchema(Type.FLOAT64),
                        value_schema=ConnectSchema(Type.INT32),
                    )
                }
            ),
            "a key of a Protobuf map cannot be a double",
        ),
        (struct_schema({"a-b": ConnectSchema(Type.INT32)}), "scrub.invalid.names"),
    ],
)
def test_schemas_that_protobuf_does_not_have_are_errors(
    converter: ProtobufConverter, schema: ConnectSchema, message: str
) -> None:
    value: Any = "x" if schema.type is Type.STRING else {}
    column = pa.array([value], schema.arrow_type())
    schema = replace(
        schema,
        fields=tuple(
            SchemaField(f.name, replace(f.schema, is_optional=True)) for f in schema.fields
        ),
    )
    with pytest.raises(DataError, match=message.replace(".", r"\.")):
        converter.from_connect("topic", schema, column)


def test_null_elements_are_errors_of_their_row(converter: ProtobufConverter) -> None:
    items = ConnectSchema(Type.ARRAY, value_schema=ConnectSchema(Type.INT32, is_optional=True))
    schema = struct_schema({"a": items})
    column = pa.array([{"a": [1]}, {"a": [1, None]}, {"a": []}], schema.arrow_type())
    written = converter.from_connect("topic", schema, column)
    assert [each.row for each in written.errors] == [1]
    assert "cannot be null" in str(written.errors[0].error)
    assert values(converter.to_connect("topic", written.payloads)) == [{"a": [1]}, None, {"a": []}]


@given(st.lists(st.binary(max_size=20), max_size=5))
def test_any_bytes_are_read_or_rejected(documents: list[bytes]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        registry = FakeRegistry.installed(patch, ProtobufConverter)
        schema_id = registry.register("topic-value", PROTO)
        converter = configured(ProtobufConverter, SETTINGS)
        payloads = [id_prefix(schema_id) + document for document in documents]
        payloads += [id_prefix(schema_id) + b"\0" + document for document in documents] + documents
        read = converter.to_connect("topic", pa.array(payloads, pa.binary()))
        assert len(rows(read)) == len(payloads)


def test_a_real_registry_has_the_schemas(schema_registry: SchemaRegistry) -> None:
    topic = f"orders-{uuid4().hex}"
    schema = struct_schema(
        {"id": ConnectSchema(Type.INT64), "name": ConnectSchema(Type.STRING, True)}, "Order"
    )
    settings = {"schema.registry.url": schema_registry.url}
    column = pa.array([{"id": 1, "name": None}], schema.arrow_type())
    written = configured(ProtobufConverter, settings).from_connect(topic, schema, column)
    read = configured(ProtobufConverter, settings).to_connect(topic, written.payloads)
    assert values(read) == [{"id": 1, "name": None}]
