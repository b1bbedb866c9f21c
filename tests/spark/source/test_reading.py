"""Topics read by a real Spark session, in batches and streams."""

from itertools import chain
from pathlib import Path
from uuid import uuid4

import pytest
from pyspark.sql import DataFrame, SparkSession

from barnabas import Producer
from barnabas.testing import Broker


@pytest.fixture
def topic(broker: Broker) -> str:
    """A new one of three partitions."""
    name = f"t-{uuid4().hex[:8]}"
    broker.create_topic(name, partitions=3)
    return name


def fill(broker: Broker, topic: str, count: int, *, partitions: int = 3, start: int = 0) -> None:
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for number in range(start, start + count):
            producer.produce(
                topic, f"v{number}", f"k{number}", partition=number % partitions, timestamp=number
            )
        producer.flush()


def batch(spark: SparkSession, broker: Broker, topic: str, **options: object) -> DataFrame:
    reader = spark.read.format("barnabas").options(**options)
    reader = reader.option("kafka.bootstrap.servers", broker.bootstrap_servers)
    return reader.option("subscribe", topic).load()


def numbers(frame: DataFrame) -> list[int]:
    return sorted(int(bytes(row.value)[1:]) for row in frame.select("value").collect())


def run_available(
    spark: SparkSession, broker: Broker, topic: str, checkpoint: Path, **options: object
) -> list[list[int]]:
    """The numbers of each micro-batch of a stream that reads what there is and ends."""
    batches: list[list[int]] = []
    stream = spark.readStream.format("barnabas").options(**options)
    stream = stream.option("kafka.bootstrap.servers", broker.bootstrap_servers)
    query = (
        stream.option("subscribe", topic)
        .load()
        .writeStream.foreachBatch(lambda frame, _: batches.append(numbers(frame)))
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    return batches


def test_a_batch_has_the_columns_of_sparks_own_connector(
    spark: SparkSession, broker: Broker, topic: str
) -> None:
    fill(broker, topic, 10)
    frame = batch(spark, broker, topic)
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int>"
    )
    row = frame.where("partition = 1").orderBy("offset").collect()[1]
    assert (bytes(row.key), bytes(row.value)) == (b"k4", b"v4")
    assert (row.topic, row.partition, row.offset, row.timestampType) == (topic, 1, 1, 0)
    assert row.timestamp.timestamp() == 0.004
    assert numbers(frame) == list(range(10))


def test_a_stream_goes_on_from_its_checkpoint(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    fill(broker, topic, 10)
    first = run_available(spark, broker, topic, tmp_path, startingOffsets="earliest")
    assert [*chain(*first)] == list(range(10))
    fill(broker, topic, 5, start=10)
    second = run_available(spark, broker, topic, tmp_path, startingOffsets="earliest")
    assert [*chain(*second)] == [10, 11, 12, 13, 14]
