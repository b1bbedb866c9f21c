"""A pipeline as a user would run it: topic, Spark, topic; killed and started again by others.

python -m tests.spark.exactly_once.program --bootstrap HOST:PORT --source A --sink B --checkpoint D

Ends by itself when all that is in the source has been written. Says `running` when it begins to.
"""

import argparse
import sys
from pathlib import Path

from pyspark.sql import SparkSession

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
    parser.add_argument("--stateful", action="store_true", help="write what was not seen before")
    told = parser.parse_args()
    spark = _session(told.checkpoint.parent)
    address = {"kafka.bootstrap.servers": told.bootstrap}
    source = {"subscribe": told.source, "startingOffsets": "earliest"}
    stream = (
        spark.readStream.format("barnabas")
        .options(**address, **source, maxOffsetsPerTrigger=str(ROWS_A_BATCH))
        .load()
        .selectExpr("key", "value")
    )
    if told.stateful:
        stream = stream.dropDuplicates(["value"])
    query = (
        stream.writeStream.format("barnabas")
        .options(**address, topic=told.sink)
        .option("checkpointLocation", str(told.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    print("running", flush=True)
    query.awaitTermination()
    spark.stop()
    return 0


def _session(directory: Path) -> SparkSession:
    builder = configure(SparkSession.builder.master(MASTER).appName("exactly once"))
    own = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # A JVM that lives for seconds had better not optimise for hours.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "spark.driver.memory": "512m",
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
