"""Batch reads: every option of the connector returns the same rows with ours."""

import json

import pytest
from pyspark.sql import SparkSession
from tests.conformance.spark.connectors import (
    CONNECTOR,
    FIRST_TIMESTAMP_MS,
    FORMATS,
    OURS,
    RECORDS,
    Cluster,
    OptionsOfTopic,
    by_partition,
    failures_by_format,
    offsets,
)

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]  # the first waits for Spark to start

TENTH_TIMESTAMP_MS = FIRST_TIMESTAMP_MS + 10_000
FUTURE_MS = FIRST_TIMESTAMP_MS + 10**9


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    return cluster.topic()


READS: dict[str, tuple[int, OptionsOfTopic]] = {
    "several names": (30, lambda topic: {"subscribe": f" {topic} ,{topic}"}),
    "a pattern": (30, lambda topic: {"subscribePattern": f"{topic[:-1]}[0-9a-f]"}),
    "a pattern of nothing": (0, lambda topic: {"subscribePattern": f"no-{topic}.*"}),
    "assigned partitions": (20, lambda topic: {"assign": json.dumps({topic: [0, 2]})}),
    "names in any case": (
        9,
        lambda topic: {"SUBSCRIBE": topic, "startingoffsets": offsets(topic, 9, 2, 10)},
    ),
    "words in any case": (
        30,
        lambda topic: {
            "subscribe": topic,
            "startingOffsets": "EARLIEST",
            "endingOffsets": "Latest",
            "includeHeaders": "TRUE",
        },
    ),
    "between offsets": (
        9,
        lambda topic: {
            "subscribe": topic,
            "startingOffsets": offsets(topic, 3, -2, 5),
            "endingOffsets": offsets(topic, 4, 3, -1),
        },
    ),
    "from a time": (
        20,
        lambda topic: {"subscribe": topic, "startingTimestamp": str(TENTH_TIMESTAMP_MS)},
    ),
    "to a time": (
        10,
        lambda topic: {"subscribe": topic, "endingTimestamp": str(TENTH_TIMESTAMP_MS)},
    ),
    "to a time to come": (
        30,
        lambda topic: {"subscribe": topic, "endingTimestamp": str(FUTURE_MS)},
    ),
    "from a time to come": (
        0,
        lambda topic: {
            "subscribe": topic,
            "startingTimestamp": str(FUTURE_MS),
            "startingOffsetsByTimestampStrategy": "latest",
        },
    ),
    "from times": (
        17,
        lambda topic: {
            "subscribe": topic,
            "startingOffsetsByTimestamp": offsets(
                topic, TENTH_TIMESTAMP_MS, FIRST_TIMESTAMP_MS, FIRST_TIMESTAMP_MS + 29_000
            ),
        },
    ),
    "to times": (
        14,
        lambda topic: {
            "subscribe": topic,
            "endingOffsetsByTimestamp": offsets(
                topic, TENTH_TIMESTAMP_MS, FIRST_TIMESTAMP_MS, FUTURE_MS
            ),
        },
    ),
    "a time before offsets": (
        20,
        lambda topic: {
            "subscribe": topic,
            "startingTimestamp": str(TENTH_TIMESTAMP_MS),
            "startingOffsetsByTimestamp": offsets(topic, 0, 0, 0),
            "startingOffsets": "earliest",
        },
    ),
    "small tasks": (
        30,
        lambda topic: {"subscribe": topic, "minPartitions": "7", "maxRecordsPerPartition": "3"},
    ),
    "what only streams use": (
        30,
        lambda topic: {
            "subscribe": topic,
            "maxOffsetsPerTrigger": "5",
            "minOffsetsPerTrigger": "2",
            "maxTriggerDelay": "1m",
        },
    ),
    "settings of Java's client": (
        30,
        lambda topic: {
            "subscribe": topic,
            "groupIdPrefix": "ported",
            "kafka.group.id": "ported",
            "kafka.client.dns.lookup": "use_all_dns_ips",
            "kafka.fetch.max.wait.ms": "100",
            "kafka.isolation.level": "read_committed",
            "kafka.max.poll.records": "7",
            "kafka.metric.reporters": "",
            "kafka.receive.buffer.bytes": "65536",
            "kafka.security.protocol": "PLAINTEXT",
            "kafka.session.timeout.ms": "30000",
            "kafkaConsumer.pollTimeoutMs": "5000",
            "fetchOffset.numRetries": "3",
            "fetchOffset.retryIntervalMs": "10",
        },
    ),
}


@pytest.mark.parametrize("case", READS)
def test_both_connectors_return_the_same_rows_in_order(
    spark: SparkSession, cluster: Cluster, topic: str, case: str
) -> None:
    count, options = READS[case]
    theirs, ours = (
        by_partition(cluster.reader(spark.read, format_, options(topic))) for format_ in FORMATS
    )
    assert ours == theirs
    assert sum(map(len, theirs.values())) == count


@pytest.mark.parametrize("headers", ["true", "false"])
def test_both_connectors_have_the_same_columns(
    spark: SparkSession, real_kafka: Cluster, headers: str
) -> None:
    options = {"subscribe": "orders", "includeHeaders": headers}
    theirs, ours = (real_kafka.reader(spark.read, format_, options) for format_ in FORMATS)
    assert ours.schema == theirs.schema


def test_read_committed_skips_aborted_records(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.topic()
    cluster.transactions(topic)
    options = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    theirs, ours = (
        by_partition(cluster.reader(spark.read, format_, options)) for format_ in FORMATS
    )
    assert ours == theirs
    assert [bytes(rows[-1].value) for rows in ours.values()] == [b"in"] * 3


def test_read_uncommitted_returns_aborted_records(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.topic()
    cluster.transactions(topic)
    options = {"subscribe": topic, "kafka.isolation.level": "read_uncommitted"}
    theirs, ours = (
        by_partition(cluster.reader(spark.read, format_, options)) for format_ in FORMATS
    )
    assert ours == theirs
    assert sum(map(len, ours.values())) == RECORDS + 6


def with_option(name: str, value: str) -> OptionsOfTopic:
    return lambda topic: {"subscribe": topic, name: value}


INVALID_OPTIONS: dict[str, OptionsOfTopic] = {
    "nothing to read": lambda topic: {},
    "two ways": lambda topic: {"subscribe": topic, "assign": json.dumps({topic: [0]})},
    "no name": lambda topic: {"subscribe": " , "},
    "no pattern": lambda topic: {"subscribePattern": " "},
    "a broken pattern": lambda topic: {"subscribePattern": "(("},
    "a list to assign": lambda topic: {"assign": "[1]"},
    "no such topic": lambda topic: {"subscribe": f"no-{topic}"},
    "latest to start": lambda topic: {"subscribe": topic, "startingOffsets": "latest"},
    "-1 to start": lambda topic: {"subscribe": topic, "startingOffsets": offsets(topic, -1, 1, 1)},
    "-3 to start": lambda topic: {"subscribe": topic, "startingOffsets": offsets(topic, -3, 1, 1)},
    "earliest to end": lambda topic: {"subscribe": topic, "endingOffsets": "earliest"},
    "-2 to end": lambda topic: {"subscribe": topic, "endingOffsets": offsets(topic, -2, 1, 1)},
    "broken offsets": lambda topic: {"subscribe": topic, "startingOffsets": "{oops"},
    "not all partitions": lambda topic: {"subscribe": topic, "startingOffsets": offsets(topic, 1)},
    "too many partitions": lambda topic: {
        "subscribe": topic,
        "startingOffsets": offsets(topic, 1, 1, 1, 1),
    },
    "an end before the start": lambda topic: {
        "subscribe": topic,
        "startingOffsets": offsets(topic, 5, 0, 0),
        "endingOffsets": offsets(topic, 3, 1, 1),
    },
    "broken times": lambda topic: {"subscribe": topic, "startingOffsetsByTimestamp": "{"},
    "not all times": lambda topic: {
        "subscribe": topic,
        "startingOffsetsByTimestamp": offsets(topic, FIRST_TIMESTAMP_MS),
    },
    "a word for a time": lambda topic: {"subscribe": topic, "startingTimestamp": "yesterday"},
    "a time to come": lambda topic: {"subscribe": topic, "startingTimestamp": str(FUTURE_MS)},
    "a strange strategy": lambda topic: {
        "subscribe": topic,
        "startingTimestamp": str(FIRST_TIMESTAMP_MS),
        "startingOffsetsByTimestampStrategy": "sometimes",
    },
    "no tasks": with_option("minPartitions", "0"),
    "tasks that are no number": with_option("minPartitions", "x"),
    "no records": with_option("maxRecordsPerPartition", "0"),
    "perhaps a failure": with_option("failOnDataLoss", "maybe"),
    "perhaps headers": with_option("includeHeaders", "maybe"),
    "a timeout that is no time": with_option("kafkaConsumer.pollTimeoutMs", "x"),
    "Kafka's reset of offsets": with_option("kafka.auto.offset.reset", "earliest"),
    "Kafka's commits": with_option("kafka.enable.auto.commit", "true"),
    "interceptors": with_option("kafka.interceptor.classes", "x"),
    "a deserializer of keys": with_option("kafka.key.deserializer", "x"),
    "a deserializer of values": with_option("kafka.value.deserializer", "x"),
    "a setting that is no number": with_option("kafka.fetch.min.bytes", "many"),
    "a strange isolation": with_option("kafka.isolation.level", "mostly"),
}


@pytest.fixture(scope="module")
def kafka_topic(real_kafka: Cluster) -> str:
    return real_kafka.topic()


@pytest.mark.parametrize("case", INVALID_OPTIONS)
def test_invalid_options_fail_with_both_connectors(
    spark: SparkSession, real_kafka: Cluster, kafka_topic: str, case: str
) -> None:
    options = INVALID_OPTIONS[case](kafka_topic)
    actual = failures_by_format(
        lambda format_: real_kafka.reader(spark.read, format_, options).collect()
    )
    assert actual == {CONNECTOR: True, OURS: True}


INVALID_ONLY_HERE: dict[str, OptionsOfTopic] = {
    "a name misspelt": with_option("startingOfsets", "latest"),
    "a setting of no client": with_option("kafka.unknown.ms", "1"),
    "a limit that is none": with_option("maxOffsetsPerTrigger", "x"),
    "nothing to assign": lambda topic: {"assign": "{}"},
    "a partition that is not there": lambda topic: {"assign": json.dumps({topic: [0, 7]})},
}


@pytest.mark.parametrize("case", INVALID_ONLY_HERE)
def test_invalid_options_that_the_connector_ignores_fail_with_ours(
    spark: SparkSession, real_kafka: Cluster, kafka_topic: str, case: str
) -> None:
    options = INVALID_ONLY_HERE[case](kafka_topic)
    actual = failures_by_format(
        lambda format_: real_kafka.reader(spark.read, format_, options).collect()
    )
    assert actual == {CONNECTOR: False, OURS: True}
