"""Topics read by a real Spark session."""

import json
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tests.wait import wait_until

from barnabas.testing import Broker

DEADLINE_S = 60.0


def numbers(frame: DataFrame) -> list[int]:
    return sorted(int(bytes(row.value)) for row in frame.select("value").collect())


def test_a_batch_is_a_data_frame(spark: SparkSession, topic_of, reads) -> None:
    topic = topic_of(10)
    options = reads.options(topic.name, {"includeHeaders": "true"})
    frame = spark.read.format("barnabas").options(**options).load()
    assert numbers(frame) == list(range(10))
    (row,) = frame.where("value = '4'").collect()
    assert (row.topic, row.partition, row.offset, row.headers) == (topic.name, 1, 1, None)
    assert row.timestamp.timestamp() * 1000 == topic.began_ms + 4


def test_errors_are_in_sparks_own_exception(spark: SparkSession, reads) -> None:
    reader = spark.read.format("barnabas").options(**reads.options("nowhere", {}))
    with pytest.raises(PySparkException, match="There is no topic 'nowhere'"):
        reader.load().collect()
    with pytest.raises(PySparkException, match="Did you mean 'startingOffsets'"):
        reader.option("startingOffset", "earliest").load()


def test_an_available_now_stream_continues_from_its_checkpoint(
    spark: SparkSession, topic_of, reads, tmp_path: Path
) -> None:
    topic = topic_of(9)
    options = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": 6}
    batches: list[list[int]] = []

    def run() -> None:
        stream = spark.readStream.format("barnabas").options(**reads.options(topic.name, options))
        writer = stream.load().writeStream.option("checkpointLocation", str(tmp_path))
        writer = writer.foreachBatch(lambda frame, _: batches.append(numbers(frame)))
        assert writer.trigger(availableNow=True).start().awaitTermination(DEADLINE_S)

    run()
    assert [len(each) for each in batches] == [6, 3]
    topic.add(3)
    run()
    assert batches[2:] == [[9, 10, 11]]


def test_a_running_stream_reads_new_records_and_reports_its_lag(
    spark: SparkSession, broker: Broker, topic_of, reads, tmp_path: Path
) -> None:
    topic = topic_of(6, partitions=2)
    seen: list[int] = []
    stream = spark.readStream.format("barnabas").options(**reads.options(topic.name, {})).load()
    writer = stream.writeStream.foreachBatch(lambda frame, _: seen.extend(numbers(frame)))
    query = writer.option("checkpointLocation", str(tmp_path)).start()
    try:
        wait_until(lambda: query.lastProgress is not None)
        topic.add(4)
        wait_until(lambda: len(seen) >= 4)
        assert sorted(seen) == [6, 7, 8, 9]
        wait_until(lambda: _latest(query) == {topic.name: {"0": 5, "1": 5}})
    finally:
        query.stop()


def _latest(query) -> object:
    return json.loads(query.lastProgress.sources[0].latestOffset or "null")
