"""Rows become what producers take: split by topic, typed columns encoded."""

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

from barnabas.registry.service import SchemaRegistry
from barnabas.schema_registry import SchemaRegistryClient
from barnabas.spark.options_parser import OptionError
from barnabas.spark.sink.options import read_options
from barnabas.spark.sink.row_encoder import RowLayout, resolve_layout
from barnabas.testing import Broker

ORDER = StructType().add("id", "long").add("item", "string")


@pytest.fixture(scope="module")
def registry(broker: Broker) -> Iterator[str]:
    with SchemaRegistry(broker.bootstrap_servers) as running:
        yield running.url


def shape(schema: StructType, **options: str) -> RowLayout:
    address = {"kafka.bootstrap.servers": "localhost:9092"}
    return resolve_layout(schema, read_options(address | options))


def only(shape: RowLayout, rows: pa.RecordBatch) -> pa.RecordBatch:
    ((_, encoded),) = shape.encoder().by_topic(rows)
    return encoded


def test_rows_go_to_the_topics_they_name_in_their_order() -> None:
    schema = StructType().add("topic", "string").add("value", "string")
    rows = pa.RecordBatch.from_pydict(
        {"topic": ["b", "a", "b", "a", "b"], "value": ["1", "2", "3", "4", "5"]}
    )
    found = dict(shape(schema).encoder().by_topic(rows))
    assert {topic: part.column("value").to_pylist() for topic, part in found.items()} == {
        "a": ["2", "4"],
        "b": ["1", "3", "5"],
    }


def test_the_option_topic_has_priority_over_the_column() -> None:
    schema = StructType().add("topic", "string").add("value", "string")
    rows = pa.RecordBatch.from_pydict({"topic": ["b", None], "value": ["1", "2"]})
    ((topic, part),) = shape(schema, topic="t").encoder().by_topic(rows)
    assert (topic, part.schema.names, part.num_rows) == ("t", ["value"], 2)


def test_a_row_without_a_topic_is_an_error() -> None:
    schema = StructType().add("topic", "string").add("value", "string")
    rows = pa.RecordBatch.from_pydict({"topic": ["b", None], "value": ["1", "2"]})
    with pytest.raises(ValueError, match="A row has no topic"):
        list(shape(schema).encoder().by_topic(rows))


def test_without_a_value_column_all_other_columns_are_its_fields() -> None:
    schema = StructType().add("key", "string").add("id", "long").add("item", "string")
    rows = pa.RecordBatch.from_pydict({"key": ["k"], "id": [1], "item": ["ink"]})
    encoded = only(shape(schema, topic="t", valueFormat="json"), rows)
    assert encoded.schema.names == ["key", "value"]
    assert json.loads(encoded.column("value")[0].as_py()) == {"id": 1, "item": "ink"}


@pytest.mark.parametrize("name", ["avro", "json", "protobuf"])
def test_a_schema_is_registered_for_the_columns_of_the_frame(name: str, registry: str) -> None:
    schema = StructType().add("value", ORDER)
    topic = f"typed-{name}"
    values = pa.array(
        [{"id": 1, "item": "ink"}, None], pa.struct([("id", pa.int64()), ("item", pa.string())])
    )
    options = {"topic": topic, "valueFormat": name, "schema.registry.url": registry}
    encoded = only(shape(schema, **options), pa.RecordBatch.from_pydict({"value": values}))
    known = SchemaRegistryClient({"url": registry}).get_latest_version(f"{topic}-value")
    first, second = encoded.column("value").to_pylist()
    assert first[:5] == b"\0" + known.schema_id.to_bytes(4)
    assert second is None


def test_an_unreachable_registry_is_an_error() -> None:
    schema = StructType().add("value", ORDER)
    options = {"topic": "t", "valueFormat": "avro", "schema.registry.url": "http://127.0.0.1:1"}
    with pytest.raises((OptionError, OSError), match=r"127\.0\.0\.1"):
        shape(schema, **options)
