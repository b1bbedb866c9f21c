"""Totals by country and five seconds, from a stream of orders: a Spark program of its own.

    python job.py localhost:9092 http://localhost:8081 checkpoint/
    barnabas spark submit --master spark://host:7077 job.py broker:9092 http://broker:8081 shared/

Each total is written once, when no order of its window can come any more; kill the program at
any moment and start it again, and that stays so.
"""

import signal
import sys
import threading

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, concat_ws, count, max_by, window
from pyspark.sql.functions import sum as total

from barnabas.spark.progress import ProgressLines
from barnabas.spark.session import configure

WINDOW = "5 seconds"
LATENESS = "3 seconds"
"""How much older than the newest order another may be."""


def main(servers: str, registry: str, checkpoint: str) -> None:
    spark = session()
    connection = {"kafka.bootstrap.servers": servers, "schema.registry.url": registry}
    found = totals(orders(spark, connection), customers(spark, connection))
    query = (
        found.writeStream.format("barnabas")
        .options(**connection, topic="totals", valueFormat="avro")
        .option("checkpointLocation", checkpoint)
        .queryName("totals")
        .start()
    )
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    try:
        while not (ending.is_set() or query.awaitTermination(1)):
            pass
    finally:
        query.stop()
        spark.stop()


def session() -> SparkSession:
    """On this machine, unless Spark is told of a master."""
    spark = (
        configure(SparkSession.builder.appName("orders"))
        .config("spark.sql.shuffle.partitions", "2")  # there are few totals at a time
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.streams.addListener(ProgressLines(lambda line: print(line, flush=True)))
    return spark


def orders(spark: SparkSession, connection: dict[str, str]) -> DataFrame:
    """As the registry's schema has them: number, customer, cents, placed."""
    return (
        spark.readStream.format("barnabas")
        .options(**connection, subscribe="orders", startingOffsets="earliest")
        .options(valueFormat="avro", commitGroupId="orders-totals")
        .load()
        .select("value.*")
    )


def customers(spark: SparkSession, connection: dict[str, str]) -> DataFrame:
    """The last that is known of each: compaction may not have come by yet."""
    every = (
        spark.read.format("barnabas")
        .options(**connection, subscribe="customers", valueFormat="avro")
        .load()
    )
    latest = every.groupBy("key").agg(max_by("value", "offset").alias("value"))
    return latest.select(col("value.id").alias("customer"), "value.country")


def totals(placed: DataFrame, known: DataFrame) -> DataFrame:
    by_country = (
        placed.withWatermark("placed", LATENESS)
        .join(known, "customer")
        .groupBy(window("placed", WINDOW), "country")
        .agg(count("*").alias("orders"), total("cents").alias("cents"))
    )
    began = col("window.start")
    return by_country.select(
        concat_ws(" ", began.cast("string"), "country").alias("key"),
        began.alias("began"),
        "country",
        "orders",
        "cents",
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
