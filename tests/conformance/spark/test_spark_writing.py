"""Writes: both connectors write the same records and reject the same frames."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from tests.conformance.spark.connectors import (
    CONNECTOR,
    DEADLINE_S,
    FORMATS,
    OURS,
    PARTITIONS,
    Cluster,
    Options,
    failures_by_format,
)

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]  # the first waits for Spark to start

HEADERS = "array(struct('a' key, cast('b' as binary) value), struct('a' key, null value))"
WRITTEN = {
    "values of text": "select concat('v', id) value from range(20)",
    "values of bytes": "select cast(concat('v', id) as binary) value from range(20)",
    "keys of text": "select concat('k', id) key, 'v' value from range(100)",
    "keys of bytes": "select cast(concat('k', id) as binary) key, 'v' value from range(100)",
    "no keys": "select cast(null as string) key, 'v' value",
    "no values": "select 'k' key, cast(null as binary) value",
    "partitions": "select int(id % 3) partition, concat('k', id) key, 'v' value from range(20)",
    "a partition for some": (
        "select if(id % 2 = 0, cast(id % 3 as int), null) partition, concat('k', id) key,"
        " concat('v', id) value from range(100)"
    ),
    "headers": f"select {HEADERS} headers, 'v' value",
    "no headers": (
        "select cast(null as array<struct<key: string, value: binary>>) headers, 'v' value"
    ),
    "columns of no meaning": "select 'v' value, 1 a, array(1) b, 'k' KEY, 2 offset",
    "nothing": "select 'v' value where false",
}


@pytest.mark.parametrize("query", WRITTEN)
def test_both_connectors_write_the_same_records(
    spark: SparkSession, cluster: Cluster, query: str
) -> None:
    theirs, ours = (
        written(spark, cluster, format_, spark.sql(WRITTEN[query])) for format_ in FORMATS
    )
    assert ours == theirs


@pytest.mark.parametrize("format_", FORMATS)
def test_the_topic_option_overrides_the_topic_column(
    spark: SparkSession, cluster: Cluster, format_: str
) -> None:
    one, other = cluster.topic(0), cluster.topic(0)
    frame = spark.sql(f"select stack(2, '{one}', 'a', '{other}', 'b') as (topic, value)")
    cluster.writer(frame, format_, {}).save()
    cluster.writer(frame, format_, {"TOPIC": one}).save()
    cluster.writer(frame.selectExpr("value", "1 topic"), format_, {"topic": other}).save()
    values = [
        sorted(value for _, _, value, _ in records(spark, cluster, topic)) for topic in (one, other)
    ]
    assert values == [[b"a", b"a", b"b"], [b"a", b"b", b"b"]]


INVALID_OPTIONS: dict[str, tuple[str, Options]] = {
    "no topic": ("select 'v' value", {}),
    "a topic of no text": ("select 'v' value, 1 topic", {}),
    "a topic that is null": ("select 'v' value, cast(null as string) topic", {}),
    "no value": ("select 'k' key", {"topic": "TOPIC"}),
    "a value in other letters": ("select 'v' VALUE", {"topic": "TOPIC"}),
    "a number for a value": ("select 1 value", {"topic": "TOPIC"}),
    "a number for a key": ("select 1 key, 'v' value", {"topic": "TOPIC"}),
    "a short partition": ("select 1S partition, 'v' value", {"topic": "TOPIC"}),
    "a long partition": ("select 1L partition, 'v' value", {"topic": "TOPIC"}),
    "a partition below 0": ("select -1 partition, 'v' value", {"topic": "TOPIC"}),
    "a partition too many": (
        "select 77 partition, 'v' value",
        {"topic": "TOPIC", "kafka.max.block.ms": "2000"},
    ),
    "headers of text": (
        "select array(struct('a' key, 'b' value)) headers, 'v' value",
        {"topic": "TOPIC"},
    ),
    "headers of other names": (
        "select array(struct('a' k, cast('b' as binary) v)) headers, 'v' value",
        {"topic": "TOPIC"},
    ),
    "a header without a key": (
        "select array(struct(cast(null as string) key, cast('b' as binary) value)) headers,"
        " 'v' value",
        {"topic": "TOPIC"},
    ),
    "a header that is null": (
        "select array(struct('a' key, cast('b' as binary) value), null) headers, 'v' value",
        {"topic": "TOPIC"},
    ),
    "a serializer of keys": ("select 'v' value", {"topic": "TOPIC", "kafka.key.serializer": "x"}),
    "a serializer of values": (
        "select 'v' value",
        {"topic": "TOPIC", "kafka.value.serializer": "x"},
    ),
    "a record too large": ("select repeat('x', 3000000) value", {"topic": "TOPIC"}),
}


@pytest.fixture(scope="module")
def kafka_topic(real_kafka: Cluster) -> str:
    return real_kafka.topic(0)


@pytest.mark.parametrize("case", INVALID_OPTIONS)
def test_invalid_frames_fail_with_both_connectors(
    spark: SparkSession, real_kafka: Cluster, kafka_topic: str, case: str
) -> None:
    query, case_options = INVALID_OPTIONS[case]
    options = {name: value.replace("TOPIC", kafka_topic) for name, value in case_options.items()}
    frame = spark.sql(query)
    actual = failures_by_format(lambda format_: real_kafka.writer(frame, format_, options).save())
    assert actual == {CONNECTOR: True, OURS: True}
    assert records(spark, real_kafka, kafka_topic) == []


@pytest.mark.parametrize("mode", ["overwrite", "ignore"])
def test_topics_can_only_be_appended_to(
    spark: SparkSession, real_kafka: Cluster, kafka_topic: str, mode: str
) -> None:
    frame = spark.sql("select 'v' value")
    actual = failures_by_format(
        lambda format_: real_kafka.writer(frame, format_, {"topic": kafka_topic}).mode(mode).save()
    )
    assert actual == {CONNECTOR: True, OURS: True}


SETTINGS: list[Options] = [
    {"kafka.enable.idempotence": "true", "kafka.acks": "all", "kafka.retries": "3"},
    {"kafka.compression.type": "gzip", "kafka.linger.ms": "3", "kafka.batch.size": "1000"},
    {"kafka.max.in.flight.requests.per.connection": "1", "kafka.max.request.size": "2000000"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: next(iter(settings)))
def test_settings_of_javas_producer_are_accepted(
    spark: SparkSession, real_kafka: Cluster, settings: Options
) -> None:
    frame = spark.sql("select 'v' value")
    theirs, ours = (written(spark, real_kafka, format_, frame, settings) for format_ in FORMATS)
    assert ours == theirs


def test_spark_requires_append_for_python_data_sources(
    spark: SparkSession, real_kafka: Cluster, kafka_topic: str
) -> None:
    """A batch write that is ported from the connector must add mode("append")."""
    writer = real_kafka.writer(spark.sql("select 'v' value"), OURS, {"topic": kafka_topic})
    with pytest.raises(AnalysisException, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        writer.mode("errorifexists").save()


@pytest.mark.parametrize("mode", ["append", "complete"])
def test_streams_of_both_connectors_write_the_same(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, mode: str
) -> None:
    source = cluster.topic()
    actual = []
    for format_ in FORMATS:
        frame = cluster.reader(
            spark.readStream, format_, {"subscribe": source, "startingOffsets": "earliest"}
        )
        if mode == "complete":
            counts = frame.groupBy("partition").count()
            frame = counts.selectExpr("cast(partition as string) key", "string(count) value")
        topic = cluster.topic(0)
        stream = frame.drop("topic", "timestamp").writeStream.format(format_).outputMode(mode)
        stream = stream.option("kafka.bootstrap.servers", cluster.bootstrap).option("topic", topic)
        stream = stream.option("checkpointLocation", str(tmp_path / format_))
        query = stream.trigger(availableNow=True).start()
        assert query.awaitTermination(DEADLINE_S)
        actual.append(records(spark, cluster, topic))
    assert actual[1] == actual[0]
    assert len(actual[0]) == (30 if mode == "append" else PARTITIONS)


def test_spark_does_not_support_update_mode_for_python_sinks(
    spark: SparkSession, real_kafka: Cluster, kafka_topic: str, tmp_path: Path
) -> None:
    """Such a query writes in foreachBatch instead, with txnAppId and txnVersion."""
    frame = real_kafka.reader(spark.readStream, OURS, {"subscribe": kafka_topic})
    counts = frame.groupBy("partition").count().selectExpr("string(count) value")
    stream = counts.writeStream.format(OURS).outputMode("update")
    stream = stream.option("kafka.bootstrap.servers", real_kafka.bootstrap).option(
        "topic", kafka_topic
    )
    query = stream.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    with pytest.raises(StreamingQueryException, match="does not support Update mode"):
        query.awaitTermination(DEADLINE_S)


def written(
    spark: SparkSession,
    cluster: Cluster,
    format_: str,
    frame: DataFrame,
    settings: Options | None = None,
) -> list[tuple[Any, ...]]:
    topic = cluster.topic(0)
    cluster.writer(frame, format_, {"topic": topic, **(settings or {})}).save()
    return records(spark, cluster, topic)


def records(spark: SparkSession, cluster: Cluster, topic: str) -> list[tuple[Any, ...]]:
    """Returns partition, key, value and headers as the connector reads them, sorted.

    Records without a key can be in any partition.
    """
    options = {
        "subscribe": topic,
        "includeHeaders": "true",
        "kafka.isolation.level": "read_committed",
    }
    rows = cluster.reader(spark.read, CONNECTOR, options).collect()
    actual = [
        (None if row.key is None else row.partition, row.key, row.value, row.headers)
        for row in rows
    ]
    return sorted(actual, key=repr)
