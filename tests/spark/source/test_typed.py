"""Keys and values with a format: their columns, and what cannot be decoded."""

import json
import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from barnabas import Producer
from barnabas.columns.format import ColumnFormat, FormatName
from barnabas.registry.service import SchemaRegistry
from barnabas.schema_registry import Schema, SchemaRegistryClient
from barnabas.schema_registry.avro import AvroSerializer
from barnabas.serialization import MessageField, SerializationContext
from barnabas.spark.options_parser import OptionError
from barnabas.spark.source.connection import SourceError
from barnabas.testing import Broker

ORDER = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}],
    }
)


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[str]:
    """Where one answers."""
    with SchemaRegistry(broker.bootstrap_servers) as running:
        yield running.url


@pytest.fixture
def orders(broker: Broker, registry: str, topic_of) -> str:
    """A topic with an order, something else, another order, and one of an unknown schema."""
    topic = topic_of(partitions=1).name
    client = SchemaRegistryClient({"url": registry})
    client.register_schema(f"{topic}-value", Schema(ORDER, "AVRO"))
    serialize = AvroSerializer(client, ORDER)
    context = SerializationContext(topic, MessageField.VALUE)
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.produce(topic, serialize({"id": 1, "item": "ink"}, context), "a")
        producer.produce(topic, b"no order", "b")
        producer.produce(topic, serialize({"id": 2, "item": "pen"}, context), "c")
        producer.produce(topic, b"\0" + (10**9).to_bytes(4) + b"\2", "d")
    return topic


def typed(registry: str, **more: str) -> dict[str, str]:
    return {"valueFormat": "avro", "keyFormat": "string", "schema.registry.url": registry} | more


def test_the_registrys_schema_gives_the_columns(orders: str, registry: str, reads) -> None:
    options = typed(registry, mode="dropMalformed")
    schema = reads.source(orders, options).schema()
    assert schema["value"].dataType.simpleString() == "struct<id:bigint,item:string>"
    assert schema["key"].dataType.simpleString() == "string"
    rows = reads.batch(orders, **options)
    assert rows.schema == to_arrow_schema(schema, timezone="UTC")
    assigned = reads.source(None, {**options, "assign": json.dumps({orders: [0]})})
    assert assigned.schema() == schema
    assert rows.column("key").to_pylist() == ["a", "c"]
    assert rows.column("value").to_pylist() == [
        {"id": 1, "item": "ink"},
        {"id": 2, "item": "pen"},
    ]


def test_a_record_that_cannot_be_decoded_fails_the_read(orders: str, registry: str, reads) -> None:
    with pytest.raises(SourceError, match=rf"{orders} \[0\] offset 1 cannot be decoded: value: "):
        reads.batch(orders, **typed(registry))


def test_a_record_that_cannot_be_decoded_has_a_column_in_permissive_mode(
    orders: str, registry: str, reads
) -> None:
    options = typed(registry, mode="PERMISSIVE", columnNameOfCorruptRecord="broken")
    rows = reads.batch(orders, **options)
    schema = reads.source(orders, options).schema()
    assert rows.schema == to_arrow_schema(schema, timezone="UTC")
    first, second, third, fourth = rows.to_pylist()
    assert (first["broken"], third["broken"], second["value"]) == (None, None, None)
    assert (second["broken"]["key"], second["broken"]["value"]) == (b"b", b"no order")
    assert second["broken"]["reason"].startswith("value: ")
    assert "1000000000" in fourth["broken"]["reason"]


def test_the_size_before_decoding_is_a_column_with_include_size(
    orders: str, registry: str, reads
) -> None:
    options = typed(registry, mode="PERMISSIVE", includeSize="true")
    rows = reads.batch(orders, **options)
    schema = reads.source(orders, options).schema()
    assert rows.schema == to_arrow_schema(schema, timezone="UTC")
    assert rows.column("size").to_pylist() == [1 + 10, 1 + 8, 1 + 10, 1 + 6]


def test_reasons_of_key_and_value_are_joined(orders: str, registry: str, reads) -> None:
    options = typed(registry, mode="PERMISSIVE", keyFormat="avro", keySchema=ORDER)
    rows = reads.batch(orders, **options).to_pylist()
    reasons = [row["_corrupt_record"]["reason"] for row in rows]
    assert all(reason.startswith("key: ") for reason in reasons)
    assert ["value: " in reason for reason in reasons] == [False, True, False, True]


def test_the_corrupt_record_column_must_have_its_own_name(reads) -> None:
    options = {"valueFormat": "string", "mode": "PERMISSIVE", "columnNameOfCorruptRecord": "offset"}
    with pytest.raises(OptionError, match="must not be 'offset'"):
        reads.batch("t", **options)


def test_a_frame_keeps_its_columns_when_another_schema_is_registered(
    orders: str, registry: str, reads
) -> None:
    source = reads.source(orders, typed(registry, mode="dropMalformed"))
    schema = source.schema()
    wider = json.loads(ORDER)
    wider["fields"].append({"name": "colour", "type": "string", "default": "blue"})
    client = SchemaRegistryClient({"url": registry})
    client.register_schema(f"{orders}-value", Schema(json.dumps(wider), "AVRO"))
    reader = pickle.loads(pickle.dumps(source)).reader(schema)  # as executors get it
    (rows,) = [rows for task in reader.partitions() for rows in reader.read(task)]
    assert rows.column("value").to_pylist() == [
        {"id": 1, "item": "ink"},
        {"id": 2, "item": "pen"},
    ]


@pytest.mark.parametrize("name", ["avro", "json", "protobuf"])
def test_a_format_reads_what_it_has_written(
    name: FormatName, broker: Broker, registry: str, topic_of, reads
) -> None:
    topic = topic_of(partitions=1).name
    kind = pa.struct([("id", pa.int64()), ("item", pa.string()), ("tags", pa.list_(pa.string()))])
    orders = [{"id": number, "item": f"item {number}", "tags": ["a"]} for number in range(3)]
    encoder = ColumnFormat(name, f"{topic}-value", {"url": registry}).encoder(kind)
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for payload in encoder.encode(pa.array(orders, kind)).to_pylist():
            producer.produce(topic, payload)
    options = {"valueFormat": name, "schema.registry.url": registry}
    rows = reads.batch(topic, **options)
    schema = reads.source(topic, options).schema()
    assert rows.schema == to_arrow_schema(schema, timezone="UTC")
    assert rows.column("value").to_pylist() == orders


def test_json_without_a_registry_uses_the_schema_option(broker: Broker, topic_of, reads) -> None:
    topic = topic_of(partitions=1).name
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        producer.produce(topic, '{"id": 7}')
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
    rows = reads.batch(topic, valueFormat="json", valueSchema=json.dumps(schema))
    assert rows.column("value").to_pylist() == [{"id": 7}]


def test_a_format_needs_a_schema(reads) -> None:
    with pytest.raises(OptionError, match=r"schema\.registry\.url"):
        reads.batch("t", valueFormat="avro")
    with pytest.raises(OptionError, match="needs a valueSubject"):
        reads.batch("t,u", **typed("http://127.0.0.1:1"))
    with pytest.raises(OptionError, match="must be one of avro"):
        reads.batch("t", valueFormat="xml")
