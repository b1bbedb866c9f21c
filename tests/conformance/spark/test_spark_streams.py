"""Streaming queries: checkpoints and micro-batches are the same, and either connector goes on."""

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
    offsets,
    places,
    refusals,
)
from tests.wait import wait_until

pytestmark = [pytest.mark.peer, pytest.mark.timeout(300)]  # the first waits for Spark to start

Streams = Callable[[Cluster], Stream]


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Streams:
    """A query that has not begun yet."""
    return lambda cluster: Stream(spark, cluster, tmp_path / uuid.uuid4().hex)


def from_start(topic: str, **more: str) -> dict[str, str]:
    return {"subscribe": topic, "startingOffsets": "earliest", **more}


def all_of(count: int, partitions: int = PARTITIONS) -> list[tuple[int, int]]:
    """Places of the first offsets of every partition."""
    return [(partition, offset) for partition in range(partitions) for offset in range(count)]


def forget(cluster: Cluster, topic: str, before: int) -> None:
    """Delete the records of every partition before an offset."""
    ends = [TopicPartition(topic, partition, before) for partition in range(PARTITIONS)]
    for each in cluster.admin.delete_records(ends).values():
        each.result()


@pytest.mark.parametrize(("first", "second"), [(CONNECTOR, OURS), (OURS, CONNECTOR)])
def test_a_query_goes_on_with_the_other_connector_and_back(
    cluster: Cluster, stream: Streams, first: str, second: str
) -> None:
    topic, query = cluster.topic(), stream(cluster)
    options = from_start(topic, maxOffsetsPerTrigger="12")
    batches = query.run(first, options)
    cluster.fill(topic, range(30, 60))
    batches += query.run(second, options)
    cluster.fill(topic, range(60, 90))
    batches += query.run(first, options)
    assert places(batches) == all_of(30)
    assert query.planned()[-1] == {topic: {"0": 30, "1": 30, "2": 30}}


def test_micro_batches_end_at_the_same_offsets(cluster: Cluster, stream: Streams) -> None:
    topic = cluster.topic()
    cluster.fill(topic, range(200), 1)
    options = from_start(topic, maxOffsetsPerTrigger="50")
    theirs, ours = stream(cluster), stream(cluster)
    assert [*map(len, ours.run(OURS, options))] == [*map(len, theirs.run(CONNECTOR, options))]
    assert ours.planned() == theirs.planned()
    assert len(ours.planned()) > 2


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
def test_a_query_begins_at_the_same_offsets(
    real: Cluster, stream: Streams, bound: dict[str, str]
) -> None:
    topic = real.topic()
    options = {name: value.replace("TOPIC", topic) for name, value in bound.items()}
    options["subscribe"] = topic
    found = {}
    for format_ in FORMATS:
        query = stream(real)
        found[format_] = places(query.run(format_, options)), query.planned()[-1]
    assert found[OURS] == found[CONNECTOR]


def test_progress_tells_the_same_offsets(real: Cluster, stream: Streams) -> None:
    topic = real.topic()
    told = []
    for format_ in FORMATS:
        query = stream(real).start(format_, from_start(topic), [])
        assert query.awaitTermination(DEADLINE_S)
        (source,) = json.loads(query.recentProgress[0].json)["sources"]
        names = "startOffset", "endOffset", "latestOffset", "numInputRows"
        told.append({name: source[name] for name in names})
    assert told[1]["endOffset"] == {topic: {"0": 10, "1": 10, "2": 10}}
    assert told[1] == told[0]


@pytest.mark.parametrize("format_", FORMATS)
def test_partitions_that_are_added_are_read_from_their_start(
    cluster: Cluster, stream: Streams, format_: str
) -> None:
    topic = cluster.topic()
    batches: list[list[Row]] = []
    query = stream(cluster).start(
        format_,
        from_start(topic, **{"kafka.metadata.max.age.ms": "500"}),
        batches,
        processingTime="0 seconds",
    )
    try:
        wait_until(lambda: len(places(batches)) == 30, "the records are read", DEADLINE_S)
        cluster.admin.create_partitions([NewPartitions(topic, 5)])[topic].result()
        cluster.fill(topic, range(30, 50), 5)
        wait_until(lambda: len(places(batches)) == 50, "and those after", DEADLINE_S)
    finally:
        query.stop()
    assert [place for place in places(batches) if place[0] > 2] == [
        (partition, offset) for partition in (3, 4) for offset in range(4)
    ]


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("fails", ["true", "false"])
def test_records_that_are_deleted_before_they_are_read(
    cluster: Cluster, stream: Streams, format_: str, fails: str
) -> None:
    topic, query = cluster.topic(), stream(cluster)
    options = from_start(topic, failOnDataLoss=fails)
    batches = query.run(format_, options)
    cluster.fill(topic, range(30, 60))
    forget(cluster, topic, 15)
    if fails == "true":
        with pytest.raises(Exception, match="STREAM_FAILED"):
            query.run(format_, options)
        return
    batches += query.run(format_, options)
    assert places(batches) == [place for place in all_of(20) if not 10 <= place[1] < 15]


@pytest.mark.parametrize("format_", FORMATS)
def test_a_topic_that_is_gone_ends_the_query(
    cluster: Cluster, stream: Streams, format_: str
) -> None:
    topic, query = cluster.topic(), stream(cluster)
    query.run(format_, from_start(topic))
    cluster.admin.delete_topics([topic])[topic].result()
    with pytest.raises(Exception, match="STREAM_FAILED"):
        query.run(format_, from_start(topic))


REFUSED = {
    "an end": {"endingOffsets": "latest"},
    "a time to end": {"endingTimestamp": "1700000000000"},
    "times to end": {"endingOffsetsByTimestamp": "{}"},
    "a least above the most": {"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"},
    "a limit that is no number": {"maxOffsetsPerTrigger": "x"},
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_the_same_mistakes_are_refused_of_streams(
    real: Cluster, stream: Streams, mistake: str
) -> None:
    options = from_start("orders-none", **REFUSED[mistake])
    found = refusals(lambda format_: stream(real).run(format_, options))
    assert found == {CONNECTOR: True, OURS: True}


def test_offsets_of_a_batch_bound_both(spark: SparkSession, cluster: Cluster) -> None:
    """What was deleted, and what does not exist yet, is passed over where that is asked for."""
    topic = cluster.topic()
    forget(cluster, topic, 4)
    options = {
        "subscribe": topic,
        "startingOffsets": offsets(topic, 0, 4, 6),
        "endingOffsets": offsets(topic, 10, 14, 8),
        "kafkaConsumer.pollTimeoutMs": "2000",
    }

    def read(format_: str, fails: str = "true") -> list[tuple[int, int]]:
        frame = cluster.reader(spark.read, format_, options | {"failOnDataLoss": fails})
        return places([frame.collect()])

    assert refusals(read) == {CONNECTOR: True, OURS: True}
    theirs, ours = (read(format_, "false") for format_ in FORMATS)
    assert ours == theirs
    assert len(theirs) == 14
