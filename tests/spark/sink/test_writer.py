"""DataFrames and streams become records: their columns, exactly once or at least once."""

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from tests.spark.sink.topics import Record, Topic

from barnabas.admin import AdminClient
from barnabas.registry.service import SchemaRegistry
from barnabas.schema_registry import SchemaRegistryClient
from barnabas.testing import Broker

GUARANTEES = ["exactly-once", "at-least-once"]


def save(frame: DataFrame, topic: Topic, **options: str) -> None:
    frame.write.format("barnabas").options(**(topic.options | options)).mode("append").save()


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_each_row_is_a_record(spark: SparkSession, topic: Topic, guarantee: str) -> None:
    frame = spark.range(0, 500, 1, 3).selectExpr("cast(id as string) as value")
    save(frame, topic, deliveryGuarantee=guarantee)
    assert topic.values() == sorted(map(str, range(500)))


def test_a_save_without_an_application_id_leaves_no_group(
    spark: SparkSession, topic: Topic
) -> None:
    save(spark.range(3).selectExpr("cast(id as string) as value"), topic, transactionalIdPrefix="x")
    with AdminClient({"bootstrap.servers": topic.bootstrap_servers}) as admin:
        listed = admin.list_consumer_groups().result(30).valid
    assert not [each for each in listed if each.group_id.startswith("x-")]
    assert topic.values() == ["0", "1", "2"]


def test_columns_are_parts_of_the_record(spark: SparkSession, topic: Topic) -> None:
    at = datetime(2024, 5, 6, 7, 8, 9, 123000, UTC)
    rows = [
        (b"k", b"v", 1, at, [("h", b"1"), ("h", None)]),
        (None, None, 0, at, None),
        (b"", b"", 0, at, []),
    ]
    schema = (
        "key binary, value binary, partition int, timestamp timestamp, "
        "headers array<struct<key: string, value: binary>>"
    )
    save(spark.createDataFrame(rows, schema).coalesce(1), topic)
    at_ms = int(at.timestamp() * 1000)
    assert sorted(topic.records(), key=lambda it: (-it.partition, it.value is not None)) == [
        Record(b"k", b"v", 1, at_ms, [("h", b"1"), ("h", None)]),
        Record(None, None, 0, at_ms, []),
        Record(b"", b"", 0, at_ms, []),
    ]


def test_rows_name_their_topics(spark: SparkSession, topic: Topic) -> None:
    other = Topic.create(topic.bootstrap_servers)
    names = f"if(id % 2 = 0, '{topic.name}', '{other.name}') as topic"
    frame = spark.range(10).selectExpr("cast(id as string) as value", names)
    options = {"kafka.bootstrap.servers": topic.bootstrap_servers}
    frame.write.format("barnabas").options(**options).mode("append").save()
    assert topic.values() == ["0", "2", "4", "6", "8"]
    assert other.values() == ["1", "3", "5", "7", "9"]


def test_keys_are_spread_as_other_producers_spread_them(spark: SparkSession, topic: Topic) -> None:
    for _ in range(2):
        frame = spark.range(50).selectExpr("cast(id as string) as key", "'x' as value")
        save(frame, topic)
    partitions = {(record.key, record.partition) for record in topic.records()}
    assert len(partitions) == 50
    assert Counter(partition for _, partition in partitions).keys() == {0, 1}


def test_a_version_of_an_application_is_written_once(spark: SparkSession, topic: Topic) -> None:
    for version, first in ((3, 0), (3, 0), (2, 100), (4, 10)):
        frame = spark.range(first, first + 10).selectExpr("cast(id as string) as value")
        save(frame, topic, txnAppId=f"app-{topic.name}", txnVersion=str(version))
    assert topic.values() == sorted(map(str, range(20)))


def test_a_stream_is_written_batch_by_batch(
    spark: SparkSession, topic: Topic, tmp_path: Path
) -> None:
    for part in range(3):
        texts = spark.range(part * 10, part * 10 + 10).select(expr("cast(id as string)"))
        texts.coalesce(1).write.mode("append").text(str(tmp_path / "texts"))
    stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "texts"))
    for _ in range(2):  # the second time there is nothing left to write
        query = (
            stream.writeStream.format("barnabas")
            .options(**topic.options)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(100)
        assert query.exception() is None
    assert topic.values() == sorted(map(str, range(30)))


def test_typed_columns_are_read_as_they_were_written(
    spark: SparkSession, topic: Topic, broker: Broker
) -> None:
    columns = "id long, item string, price decimal(9,2), at timestamp, tags array<string>"
    at = datetime(2024, 5, 6, 7, 8, 9, 123456)
    rows = [(1, "ink", Decimal("2.50"), at, ["a", "b"]), (2, None, None, None, [])]
    frame = spark.createDataFrame(rows, columns)
    with SchemaRegistry(broker.bootstrap_servers) as registry:
        typed = {"valueFormat": "avro", "schema.registry.url": registry.url}
        save(frame.selectExpr("cast(id as string) as key", "*"), topic, **typed)
        address = {"kafka.bootstrap.servers": topic.bootstrap_servers, "subscribe": topic.name}
        read = spark.read.format("barnabas").options(**address, **typed).load()
        back = read.select("value.*").orderBy("id").collect()
        subjects = SchemaRegistryClient({"url": registry.url}).get_subjects()
    assert [tuple(row) for row in back] == rows
    assert f"{topic.name}-value" in subjects
