"""One pipeline of each kind, as a user writes it, on any master.

python -m tests.spark.cluster.journey MASTER SERVERS REGISTRY DIRECTORY

Prints the results as JSON.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from tests.spark.cluster.standalone import QUICK_TO_START

from barnabas.spark.session import configure

ROWS = 600
PARTITIONS = 2
TOPICS = ("first", "second", "third", "sales")


def main(master: str, servers: str, registry: str, directory: str) -> None:
    spark = session(master)
    pipeline = Journey(spark, servers, registry, Path(directory))
    results = {
        "imported": pipeline.imported(),
        "batch": pipeline.batch(),
        "available now": pipeline.available_now(),
        "stream": pipeline.stream(),
        "typed": pipeline.typed(),
    }
    spark.stop()
    print(json.dumps(results))


def session(master: str, **settings: str) -> SparkSession:
    builder = configure(SparkSession.builder.master(master).appName("journey"))
    own = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": QUICK_TO_START,
        "spark.driver.memory": "512m",
        "spark.executor.extraJavaOptions": QUICK_TO_START,
        "spark.executor.memory": "512m",
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in {**own, **settings}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


class Journey:
    """Numbers through the topics `first`, `second` and `third`, and sales through `sales`."""

    def __init__(self, spark: SparkSession, servers: str, registry: str, directory: Path) -> None:
        self._spark = spark
        self._address = {"kafka.bootstrap.servers": servers}
        self._typed = {**self._address, "schema.registry.url": registry, "valueFormat": "avro"}
        self._directory = directory

    def imported(self) -> list[bool]:
        """Whether the sink was imported in each executor's Python before the first task."""
        tasks = self._spark.sparkContext.parallelize(range(PARTITIONS), PARTITIONS)
        return tasks.mapPartitions(_has_imported).collect()

    def batch(self) -> list[int]:
        numbers = self._spark.range(0, ROWS, 1, PARTITIONS).selectExpr("cast(id as string) value")
        numbers.write.format("barnabas").options(**self._address, topic="first").mode(
            "append"
        ).save()
        return self._count_rows("first")

    def available_now(self) -> list[int]:
        writer = self._from("first").writeStream.format("barnabas")
        writer = writer.options(**self._address, topic="second", **self._checkpoint("second"))
        writer.trigger(availableNow=True).start().awaitTermination()
        return self._count_rows("second")

    def stream(self) -> list[int]:
        writer = self._from("second").writeStream.format("barnabas")
        query = writer.options(**self._address, topic="third", **self._checkpoint("third")).start()
        query.processAllAvailable()
        query.stop()
        return self._count_rows("third")

    def typed(self) -> int:
        sales = self._spark.createDataFrame([("tea", 250), ("jam", 1200)], "what string, cents int")
        sales.write.format("barnabas").options(**self._typed, topic="sales").mode("append").save()
        read = self._spark.read.format("barnabas").options(**self._typed, subscribe="sales").load()
        return sum(row.cents for row in read.select("value.*").collect())

    def _from(self, topic: str) -> DataFrame:
        source = {"subscribe": topic, "startingOffsets": "earliest"}
        reader = self._spark.readStream.format("barnabas").options(**self._address, **source)
        return reader.option("maxOffsetsPerTrigger", ROWS // 2).load().select("value")

    def _count_rows(self, topic: str) -> list[int]:
        """Returns the number of rows, and of distinct rows."""
        reader = self._spark.read.format("barnabas").options(**self._address, subscribe=topic)
        values = [
            row.value for row in reader.option("minPartitions", 2 * PARTITIONS).load().collect()
        ]
        return [len(values), len(set(values))]

    def _checkpoint(self, topic: str) -> dict[str, str]:
        return {"checkpointLocation": str(self._directory / topic)}


def _has_imported(_: Iterable[int]) -> Iterable[bool]:
    yield "barnabas.spark.sink.writer" in sys.modules


if __name__ == "__main__":
    main(*sys.argv[1:])
