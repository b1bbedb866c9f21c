"""Programs for both connectors, which differ only in the name of the format."""

import json
import uuid
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import StreamingQuery

CONNECTOR, OURS = "kafka", "barnabas"
FORMATS = (CONNECTOR, OURS)

PARTITIONS = 3
RECORDS = 30
FIRST_TIMESTAMP_MS = 1_700_000_000_000
"""The timestamp of the first record; the next ones are a second apart."""

DEADLINE_S = 100

Options = Mapping[str, str]
OptionsOfTopic = Callable[[str], Options]
"""Returns the options for a topic."""


class Cluster:
    """A broker with topics for one test."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2})

    def topic(self, records: int = RECORDS, *, partitions: int = PARTITIONS) -> str:
        """Creates a topic with this number of records."""
        name = f"orders-{uuid.uuid4().hex[:8]}"
        new = NewTopic(name, partitions, 1, config={"retention.ms": "-1"})
        self.admin.create_topics([new])[name].result()
        self.fill(name, range(records), partitions)
        return name

    def fill(self, topic: str, numbers: range, partitions: int = PARTITIONS) -> None:
        """Writes records to all partitions, some without key, value or headers."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "log_level": 2})
        for number in numbers:
            producer.produce(
                topic,
                None if number % 7 == 0 else f"value {number}",
                None if number % 5 == 0 else f"key {number}",
                number % partitions,
                timestamp=FIRST_TIMESTAMP_MS + number * 1000,
                headers=[("even", None), ("number", bytes([number]))] if number % 2 else None,
            )
        assert producer.flush(DEADLINE_S) == 0

    def transactions(self, topic: str) -> None:
        """Writes a committed and an aborted transaction."""
        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "transactional.id": topic,
                "log_level": 2,
            }
        )
        producer.init_transactions()
        for value, end in ("in", producer.commit_transaction), ("out", producer.abort_transaction):
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce(topic, value, partition=partition)
            producer.flush()
            end()

    def reader(self, source: Any, format_: str, options: Options) -> DataFrame:
        """Returns a DataFrame of `spark.read` or `spark.readStream`."""
        reader = source.format(format_).option("kafka.bootstrap.servers", self.bootstrap)
        frame: DataFrame = reader.options(**options).load()
        return frame

    def writer(self, frame: DataFrame, format_: str, options: Options) -> Any:
        """Returns a DataFrameWriter."""
        writer = frame.write.format(format_).option("kafka.bootstrap.servers", self.bootstrap)
        return writer.options(**options).mode("append")


def by_partition(frame: DataFrame) -> dict[tuple[str, int], list[Row]]:
    """Returns the rows of each partition in their order."""
    rows = defaultdict(list)
    for row in frame.collect():
        rows[row.topic, row.partition].append(row)
    return dict(rows)


def offsets(topic: str, *partition_offsets: int) -> str:
    """Returns the JSON of offsets in options and checkpoints, from partition 0."""
    return json.dumps(
        {topic: {str(index): offset for index, offset in enumerate(partition_offsets)}}
    )


def failures_by_format(program: Callable[[str], object]) -> dict[str, bool]:
    """Returns whether the program fails, by format."""
    return {format_: _fails(program, format_) for format_ in FORMATS}


def _fails(program: Callable[[str], object], format_: str) -> bool:
    try:
        program(format_)
    except (PySparkException, Py4JJavaError):
        return True
    return False


class Stream:
    """A streaming query that can run several times, with either connector."""

    def __init__(self, spark: SparkSession, cluster: Cluster, checkpoint: Path) -> None:
        self._spark = spark
        self._cluster = cluster
        self.checkpoint = checkpoint

    def run(self, format_: str, options: Options) -> list[list[Row]]:
        """Runs the query to the end of the topic; returns the rows of each micro-batch."""
        batches: list[list[Row]] = []
        query = self.start(format_, options, batches)
        assert query.awaitTermination(DEADLINE_S), "the query does not end"
        return batches

    def start(
        self, format_: str, options: Options, batches: list[list[Row]], **trigger: Any
    ) -> StreamingQuery:
        frame = self._cluster.reader(self._spark.readStream, format_, options)
        stream = frame.writeStream.foreachBatch(lambda rows, _: batches.append(rows.collect()))
        stream = stream.option("checkpointLocation", str(self.checkpoint))
        return stream.trigger(**trigger or {"availableNow": True}).start()

    def end_offsets(self) -> list[dict[str, dict[str, int]]]:
        """Returns the end offsets of each batch in the checkpoint."""
        files = sorted(
            (self.checkpoint / "offsets").glob("[0-9]*"), key=lambda file: int(file.name)
        )
        return [json.loads(file.read_text().splitlines()[2]) for file in files]


def positions(batches: list[list[Row]]) -> list[tuple[int, int]]:
    """Returns partition and offset of every row, sorted."""
    return sorted((row.partition, row.offset) for batch in batches for row in batch)
