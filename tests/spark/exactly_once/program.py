"""A pipeline as a user would run it: topic, Spark, topic; killed and started again by others.

python -m tests.spark.exactly_once.program --bootstrap HOST:PORT --source A --sink B --checkpoint D

A query that fails is started again here, in the same session. With --drain it ends when all that
is in the source has been written, else never.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from barnabas.spark.session import configure

MASTER = "local[2,4]"
"""A task is tried up to four times: the death of a worker is not the death of the query."""

ROWS_A_BATCH = 400


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--sink", required=True)
    parser.add_argument("--checkpoint", type=Path, required=True)
    parser.add_argument("--master", default=MASTER)
    parser.add_argument("--stateful", action="store_true", help="write how often a value was seen")
    parser.add_argument("--drain", action="store_true", help="end when all is written")
    options = parser.parse_args()
    spark = _session(options.master, options.checkpoint.parent)
    while True:
        query = _start(spark, options)
        try:
            query.awaitTermination()
            break
        except StreamingQueryException as failure:
            print(f"The query has failed: {failure}"[:2000], file=sys.stderr, flush=True)
    spark.stop()
    return 0


def _start(spark: SparkSession, options: argparse.Namespace) -> StreamingQuery:
    address = {"kafka.bootstrap.servers": options.bootstrap}
    source = {"subscribe": options.source, "startingOffsets": "earliest"}
    stream = (
        spark.readStream.format("barnabas")
        .options(**address, **source, maxOffsetsPerTrigger=str(ROWS_A_BATCH))
        .load()
        .selectExpr("key", "cast(value as string) as value")
    )
    written = {**address, "topic": options.sink}
    writing = (
        _seen(stream).writeStream.outputMode("update").foreachBatch(_saving(written))
        if options.stateful
        else stream.writeStream.format("barnabas").options(**written)
    )
    writing = writing.option("checkpointLocation", str(options.checkpoint))
    return (writing.trigger(availableNow=True) if options.drain else writing).start()


def _seen(stream: DataFrame) -> DataFrame:
    """Each value with how often it was there, whenever that changes."""
    return stream.groupBy("value").count().selectExpr("concat(value, ':', count) as value")


def _saving(options: dict[str, str]) -> Callable[[DataFrame, int], None]:
    """Spark has no other way for updates to reach a sink of Python."""

    def save(frame: DataFrame, batch: int) -> None:
        versioned = options | {"txnAppId": options["topic"], "txnVersion": str(batch)}
        frame.write.format("barnabas").options(**versioned).mode("append").save()

    return save


def _session(master: str, directory: Path) -> SparkSession:
    builder = configure(SparkSession.builder.master(master).appName("exactly once"))
    own = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # A JVM that lives for seconds had better not optimise for hours.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.memory": "512m",
        "spark.executor.memory": "512m",
        "spark.local.dir": str(directory / "local"),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in own.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


if __name__ == "__main__":
    sys.exit(main())
