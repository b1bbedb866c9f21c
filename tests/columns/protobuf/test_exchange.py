"""Columns and confluent_kafka's serializers meet in a registry, and understand each other."""

import pyarrow as pa
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass

from barnabas.columns.format import ColumnFormat
from barnabas.registry.service import SchemaRegistry
from barnabas.schemas.protobuf import parse

TEXT = """
syntax = "proto3";
package shop;
message Line { string sku = 1; int32 count = 2; }
message Order {
  message Note { string text = 1; }
  int64 id = 1;
  repeated Line lines = 2;
  map<string, string> tags = 3;
  State state = 4;
  enum State { NEW = 0; PAID = 1; }
}
"""
ROW = {
    "id": 7,
    "lines": [{"sku": "a", "count": 2}],
    "tags": [("k", "v")],
    "state": "PAID",
}


def test_payloads_of_confluents_serializer_are_decoded(
    schema_registry: SchemaRegistry,
) -> None:
    order = GetMessageClass(parse(TEXT, {}).message("Order"))
    client = SchemaRegistryClient({"url": schema_registry.url})
    serializer = ProtobufSerializer(order, client, {"use.deprecated.format": False})
    written = serializer(
        order(id=7, lines=[{"sku": "a", "count": 2}], tags={"k": "v"}, state=1),
        SerializationContext("columns-read", MessageField.VALUE),
    )
    chosen = ColumnFormat(
        "protobuf", "columns-read-value", {"url": schema_registry.url}, message="Order"
    )
    decoded = chosen.decoder().decode(pa.array([written, b"\0\0\0\0", None], pa.binary()))
    assert decoded.values.to_pylist() == [ROW, None, None]
    assert decoded.reasons is not None
    assert decoded.reasons.null_count == 2


def test_columns_are_read_by_confluents_deserializer(schema_registry: SchemaRegistry) -> None:
    order = GetMessageClass(parse(TEXT, {}).message("Order"))
    subject, url = "columns-written-value", {"url": schema_registry.url}
    chosen = ColumnFormat("protobuf", subject, url, schema_text=TEXT, message="Order")
    values = pa.array([ROW, None], chosen.arrow_type())
    payload, nothing = chosen.encoder(values.type).encode(values).to_pylist()
    deserializer = ProtobufDeserializer(
        order, {"use.deprecated.format": False}, SchemaRegistryClient(url)
    )
    read = deserializer(payload, SerializationContext("columns-written", MessageField.VALUE))
    assert nothing is None
    assert (read.id, read.lines[0].sku, dict(read.tags), read.state) == (7, "a", {"k": "v"}, 1)


def test_a_schema_is_derived_for_columns(schema_registry: SchemaRegistry) -> None:
    chosen = ColumnFormat("protobuf", "columns-derived-value", {"url": schema_registry.url})
    values = pa.array([{"a": 1, "b": None}], pa.struct([("a", pa.int64()), ("b", pa.string())]))
    payloads = chosen.encoder(values.type).encode(values)
    assert chosen.decoder().decode(payloads).values.to_pylist() == values.to_pylist()
