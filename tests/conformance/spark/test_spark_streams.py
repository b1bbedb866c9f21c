"""Streaming queries: both connectors have the same micro-batches and checkpoints."""

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import NewPartitions
from pyspark.sql import Row, SparkSession
from tests.conformance.spark.connectors import (
    CONNECTOR,
    DEADLINE_S,
    FORMATS,
    OURS,
    PARTITIONS,
    Cluster,
    Stream,
    failures_by_format,
    offsets,
    positions,
)
from tests.wait import wait_until

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]  # the first waits for Spark to start

NewStream = Callable[[Cluster], Stream]


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> NewStream:
    """Returns a function that creates a query."""
    return lambda cluster: Stream(spark, cluster, tmp_path / uuid.uuid4().hex)


def from_earliest(topic: str, **more: str) -> dict[str, str]:
    return {"subscribe": topic, "startingOffsets": "earliest", **more}


def all_positions(count: int, partitions: int = PARTITIONS) -> list[tuple[int, int]]:
    """Returns the positions of the first `count` offsets of every partition."""
    return [(partition, offset) for partition in range(partitions) for offset in range(count)]


def delete_records(cluster: Cluster, topic: str, before: int) -> None:
    """Deletes the records of every partition before an offset."""
    ends = [TopicPartition(topic, partition, before) for partition in range(PARTITIONS)]
    for delete_record in cluster.admin.delete_records(ends).values():
        delete_record.result()


@pytest.mark.parametrize(("first", "second"), [(CONNECTOR, OURS), (OURS, CONNECTOR)])
def test_a_query_continues_with_the_other_connector_and_back(
    cluster: Cluster, stream: NewStream, first: str, second: str
) -> None:
    topic, query = cluster.topic(), stream(cluster)
    options = from_earliest(topic, maxOffsetsPerTrigger="12")
    batches = query.run(first, options)
    cluster.fill(topic, range(30, 60))
    batches += query.run(second, options)
    cluster.fill(topic, range(60, 90))
    batches += query.run(first, options)
    assert positions(batches) == all_positions(30)
    assert query.end_offsets()[-1] == {topic: {"0": 30, "1": 30, "2": 30}}


def test_micro_batches_end_at_the_same_offsets(cluster: Cluster, stream: NewStream) -> None:
    topic = cluster.topic()
    cluster.fill(topic, range(200), 1)
    options = from_earliest(topic, maxOffsetsPerTrigger="50")
    theirs, ours = stream(cluster), stream(cluster)
    assert [*map(len, ours.run(OURS, options))] == [*map(len, theirs.run(CONNECTOR, options))]
    assert ours.end_offsets() == theirs.end_offsets()
    assert len(ours.end_offsets()) > 2


@pytest.mark.parametrize(
    "bound",
    [
        {"startingOffsets": "latest"},
        {"startingOffsets": '{"TOPIC": {"0": 3, "1": -1, "2": -2}}'},
        {"startingTimestamp": "1700000010000"},
        {"startingTimestamp": "1800000000000", "startingOffsetsByTimestampStrategy": "latest"},
    ],
    ids=["latest", "offsets", "a time", "a time to come"],
)
def test_a_query_starts_at_the_same_offsets(
    real_kafka: Cluster, stream: NewStream, bound: dict[str, str]
) -> None:
    topic = real_kafka.topic()
    options = {name: value.replace("TOPIC", topic) for name, value in bound.items()}
    options["subscribe"] = topic
    actual = {}
    for format_ in FORMATS:
        query = stream(real_kafka)
        actual[format_] = positions(query.run(format_, options)), query.end_offsets()[-1]
    assert actual[OURS] == actual[CONNECTOR]


def test_progress_has_the_same_offsets(real_kafka: Cluster, stream: NewStream) -> None:
    topic = real_kafka.topic()
    progress = []
    for format_ in FORMATS:
        query = stream(real_kafka).start(format_, from_earliest(topic), [])
        assert query.awaitTermination(DEADLINE_S)
        (source,) = json.loads(query.recentProgress[0].json)["sources"]
        names = "startOffset", "endOffset", "latestOffset", "numInputRows"
        progress.append({name: source[name] for name in names})
    assert progress[1]["endOffset"] == {topic: {"0": 10, "1": 10, "2": 10}}
    assert progress[1] == progress[0]


@pytest.mark.parametrize("format_", FORMATS)
def test_partitions_that_are_added_are_read_from_their_start(
    cluster: Cluster, stream: NewStream, format_: str
) -> None:
    topic = cluster.topic()
    batches: list[list[Row]] = []
    query = stream(cluster).start(
        format_,
        from_earliest(topic, **{"kafka.metadata.max.age.ms": "500"}),
        batches,
        processingTime="0 seconds",
    )
    try:
        wait_until(lambda: len(positions(batches)) == 30, "the records are read", DEADLINE_S)
        cluster.admin.create_partitions([NewPartitions(topic, 5)])[topic].result()
        cluster.fill(topic, range(30, 50), 5)
        wait_until(lambda: len(positions(batches)) == 50, "and those after", DEADLINE_S)
    finally:
        query.stop()
    assert [position for position in positions(batches) if position[0] > 2] == [
        (partition, offset) for partition in (3, 4) for offset in range(4)
    ]


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("fails", ["true", "false"])
def test_records_that_are_deleted_before_they_are_read(
    cluster: Cluster, stream: NewStream, format_: str, fails: str
) -> None:
    topic, query = cluster.topic(), stream(cluster)
    options = from_earliest(topic, failOnDataLoss=fails)
    batches = query.run(format_, options)
    cluster.fill(topic, range(30, 60))
    delete_records(cluster, topic, 15)
    if fails == "true":
        with pytest.raises(Exception, match="STREAM_FAILED"):
            query.run(format_, options)
        return
    batches += query.run(format_, options)
    assert positions(batches) == [
        position for position in all_positions(20) if not 10 <= position[1] < 15
    ]


@pytest.mark.parametrize("format_", FORMATS)
def test_a_deleted_topic_ends_the_query(cluster: Cluster, stream: NewStream, format_: str) -> None:
    topic, query = cluster.topic(), stream(cluster)
    query.run(format_, from_earliest(topic))
    cluster.admin.delete_topics([topic])[topic].result()
    with pytest.raises(Exception, match="STREAM_FAILED"):
        query.run(format_, from_earliest(topic))


INVALID_OPTIONS = {
    "an end": {"endingOffsets": "latest"},
    "a time to end": {"endingTimestamp": "1700000000000"},
    "times to end": {"endingOffsetsByTimestamp": "{}"},
    "a least above the most": {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"},
    "a limit that is no number": {"maxOffsetsPerTrigger": "x"},
}


@pytest.mark.parametrize("case", INVALID_OPTIONS)
def test_invalid_options_of_streams_fail_with_both_connectors(
    real_kafka: Cluster, stream: NewStream, case: str
) -> None:
    options = from_earliest("orders-none", **INVALID_OPTIONS[case])
    actual = failures_by_format(lambda format_: stream(real_kafka).run(format_, options))
    assert actual == {CONNECTOR: True, OURS: True}


def test_offsets_outside_of_the_log_fail_or_are_skipped(
    spark: SparkSession, cluster: Cluster
) -> None:
    """With failOnDataLoss=false, deleted and missing offsets are skipped."""
    topic = cluster.topic()
    delete_records(cluster, topic, 4)
    options = {
        "subscribe": topic,
        "startingOffsets": offsets(topic, 0, 4, 6),
        "endingOffsets": offsets(topic, 10, 14, 8),
        "kafkaConsumer.pollTimeoutMs": "2000",
    }

    def read(format_: str, fails: str = "true") -> list[tuple[int, int]]:
        frame = cluster.reader(spark.read, format_, options | {"failOnDataLoss": fails})
        return positions([frame.collect()])

    assert failures_by_format(read) == {CONNECTOR: True, OURS: True}
    theirs, ours = (read(format_, "false") for format_ in FORMATS)
    assert ours == theirs
    assert len(theirs) == 14
