"""Topics of numbers, and reads of them: by Spark's own steps, and without Spark."""

import time
from collections.abc import Callable
from uuid import uuid4

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from barnabas import Producer
from barnabas.spark.data_source import BarnabasDataSource
from barnabas.testing import Broker


class Numbers:
    """A topic whose records are numbers from 0 on, spread over its partitions in turn."""

    def __init__(self, broker: Broker, partitions: int) -> None:
        self.broker = broker
        self.name = f"numbers-{uuid4().hex[:8]}"
        self.partitions = partitions
        self.count = 0
        self.began_ms = int(time.time() * 1000)
        broker.create_topic(self.name, partitions=partitions)

    def add(self, count: int, **settings: object) -> None:
        """So many more; record n is n ms younger than the topic."""
        conf = {"bootstrap.servers": self.broker.bootstrap_servers, **settings}
        with Producer(conf) as producer:
            for number in range(self.count, self.count + count):
                producer.produce(
                    self.name,
                    f"{number}",
                    f"k{number}",
                    partition=number % self.partitions,
                    timestamp=self.began_ms + number,
                )
            assert not producer.flush(30)
        self.count += count


class Reads:
    """Reads of a broker's topics, step by step as Spark does it."""

    def __init__(self, broker: Broker) -> None:
        self._servers = broker.bootstrap_servers
        self.checkpoint: dict[str, dict[str, int]] | None = None  # of its streams

    def options(self, topic: str | None, options: dict[str, object]) -> dict[str, str]:
        named = {"kafka.bootstrap.servers": self._servers}
        if topic is not None:
            named["subscribe"] = topic
        return named | {name.lower(): str(value) for name, value in options.items()}

    def source(self, topic: str | None, options: dict[str, object]) -> BarnabasDataSource:
        return BarnabasDataSource(self.options(topic, options))

    def tasks(self, topic: str | None = None, **options: object) -> list[InputPartition]:
        source = self.source(topic, options)
        return list(source.reader(source.schema()).partitions())

    def batch(self, topic: str | None = None, **options: object) -> pa.Table:
        """All rows, in the order of their values."""
        source = self.source(topic, options)
        reader = source.reader(source.schema())
        batches = [batch for task in reader.partitions() for batch in reader.read(task)]
        return _sorted(batches)

    def stream(self, topic: str | None = None, **options: object) -> DataSourceStreamReader:
        source = self.source(topic, options)
        return source.streamReader(source.schema())

    def available(self, topic: str | None = None, **options: object) -> list[list[int]]:
        """The numbers of each micro-batch of a stream that reads what there is, and ends."""
        reader = self.stream(topic, **options)
        reader.prepareForTriggerAvailableNow()  # type: ignore[attr-defined]
        start = self.checkpoint or reader.initialOffset()
        batches = []
        while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
            rows = [row for task in reader.partitions(start, end) for row in reader.read(task)]
            batches.append(numbers(_sorted(rows)))
            self.checkpoint = start = end
            reader.commit(end)
        reader.stop()
        return batches


def numbers(rows: pa.Table) -> list[int]:
    return [int(value) for value in rows.column("value").to_pylist()] if rows else []


def _sorted(batches: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches).sort_by("timestamp") if batches else pa.table({})


@pytest.fixture
def topic_of(broker: Broker) -> Callable[..., Numbers]:
    """A new topic with so many partitions and numbers."""

    def make(count: int = 0, *, partitions: int = 3) -> Numbers:
        made = Numbers(broker, partitions)
        made.add(count)
        return made

    return make


@pytest.fixture
def reads(broker: Broker) -> Reads:
    return Reads(broker)
