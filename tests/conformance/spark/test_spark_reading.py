"""Reads that end: every option of the connector gives the same rows with ours."""

import json

import pytest
from pyspark.sql import SparkSession
from tests.conformance.spark.connectors import (
    BEGAN_MS,
    CONNECTOR,
    FORMATS,
    OURS,
    RECORDS,
    Asked,
    Cluster,
    by_partition,
    offsets,
    refusals,
)

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]  # the first waits for Spark to start

TENTH_MS = BEGAN_MS + 10_000
NEVER_MS = BEGAN_MS + 10**9


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    return cluster.topic()


READS: dict[str, tuple[int, Asked]] = {
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
    "from a time": (20, lambda topic: {"subscribe": topic, "startingTimestamp": str(TENTH_MS)}),
    "to a time": (10, lambda topic: {"subscribe": topic, "endingTimestamp": str(TENTH_MS)}),
    "to a time to come": (30, lambda topic: {"subscribe": topic, "endingTimestamp": str(NEVER_MS)}),
    "from a time to come": (
        0,
        lambda topic: {
            "subscribe": topic,
            "startingTimestamp": str(NEVER_MS),
            "startingOffsetsByTimestampStrategy": "latest",
        },
    ),
    "from times": (
        17,
        lambda topic: {
            "subscribe": topic,
            "startingOffsetsByTimestamp": offsets(topic, TENTH_MS, BEGAN_MS, BEGAN_MS + 29_000),
        },
    ),
    "to times": (
        14,
        lambda topic: {
            "subscribe": topic,
            "endingOffsetsByTimestamp": offsets(topic, TENTH_MS, BEGAN_MS, NEVER_MS),
        },
    ),
    "a time before offsets": (
        20,
        lambda topic: {
            "subscribe": topic,
            "startingTimestamp": str(TENTH_MS),
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


@pytest.mark.parametrize("asked", READS)
def test_the_same_rows_in_the_same_order(
    spark: SparkSession, cluster: Cluster, topic: str, asked: str
) -> None:
    count, options = READS[asked]
    theirs, ours = (
        by_partition(cluster.reader(spark.read, format_, options(topic))) for format_ in FORMATS
    )
    assert ours == theirs
    assert sum(map(len, theirs.values())) == count


@pytest.mark.parametrize("headers", ["true", "false"])
def test_the_same_columns(spark: SparkSession, real: Cluster, headers: str) -> None:
    options = {"subscribe": "orders", "includeHeaders": headers}
    theirs, ours = (real.reader(spark.read, format_, options) for format_ in FORMATS)
    assert ours.schema == theirs.schema


def test_aborted_records_are_left_out_by_either(spark: SparkSession, cluster: Cluster) -> None:
    topic = cluster.topic()
    cluster.transactions(topic)
    options = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    theirs, ours = (
        by_partition(cluster.reader(spark.read, format_, options)) for format_ in FORMATS
    )
    assert ours == theirs
    assert [bytes(rows[-1].value) for rows in ours.values()] == [b"in"] * 3


def test_aborted_records_are_there_where_they_are_asked_for(
    spark: SparkSession, cluster: Cluster
) -> None:
    topic = cluster.topic()
    cluster.transactions(topic)
    options = {"subscribe": topic, "kafka.isolation.level": "read_uncommitted"}
    theirs, ours = (
        by_partition(cluster.reader(spark.read, format_, options)) for format_ in FORMATS
    )
    assert ours == theirs
    assert sum(map(len, ours.values())) == RECORDS + 6


def told(name: str, value: str) -> Asked:
    return lambda topic: {"subscribe": topic, name: value}


REFUSED: dict[str, Asked] = {
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
        "startingOffsetsByTimestamp": offsets(topic, BEGAN_MS),
    },
    "a word for a time": lambda topic: {"subscribe": topic, "startingTimestamp": "yesterday"},
    "a time to come": lambda topic: {"subscribe": topic, "startingTimestamp": str(NEVER_MS)},
    "a strange strategy": lambda topic: {
        "subscribe": topic,
        "startingTimestamp": str(BEGAN_MS),
        "startingOffsetsByTimestampStrategy": "sometimes",
    },
    "no tasks": told("minPartitions", "0"),
    "tasks that are no number": told("minPartitions", "x"),
    "no records": told("maxRecordsPerPartition", "0"),
    "perhaps a failure": told("failOnDataLoss", "maybe"),
    "perhaps headers": told("includeHeaders", "maybe"),
    "a timeout that is no time": told("kafkaConsumer.pollTimeoutMs", "x"),
    "Kafka's reset of offsets": told("kafka.auto.offset.reset", "earliest"),
    "Kafka's commits": told("kafka.enable.auto.commit", "true"),
    "interceptors": told("kafka.interceptor.classes", "x"),
    "a deserializer of keys": told("kafka.key.deserializer", "x"),
    "a deserializer of values": told("kafka.value.deserializer", "x"),
    "a setting that is no number": told("kafka.fetch.min.bytes", "many"),
    "a strange isolation": told("kafka.isolation.level", "mostly"),
}


@pytest.fixture(scope="module")
def real_topic(real: Cluster) -> str:
    return real.topic()


@pytest.mark.parametrize("mistake", REFUSED)
def test_the_same_mistakes_are_refused(
    spark: SparkSession, real: Cluster, real_topic: str, mistake: str
) -> None:
    options = REFUSED[mistake](real_topic)
    found = refusals(lambda format_: real.reader(spark.read, format_, options).collect())
    assert found == {CONNECTOR: True, OURS: True}


STRICTER: dict[str, Asked] = {
    "a name misspelt": told("startingOfsets", "latest"),
    "a setting of no client": told("kafka.nonsense.ms", "1"),
    "a limit that is none": told("maxOffsetsPerTrigger", "x"),
    "nothing to assign": lambda topic: {"assign": "{}"},
    "a partition that is not there": lambda topic: {"assign": json.dumps({topic: [0, 7]})},
}


@pytest.mark.parametrize("mistake", STRICTER)
def test_mistakes_that_the_connector_takes_in_silence(
    spark: SparkSession, real: Cluster, real_topic: str, mistake: str
) -> None:
    options = STRICTER[mistake](real_topic)
    found = refusals(lambda format_: real.reader(spark.read, format_, options).collect())
    assert found == {CONNECTOR: False, OURS: True}
