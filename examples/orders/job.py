"""A Spark job that computes totals per country and five seconds from a stream of orders.

    python job.py localhost:9092 http://localhost:8081 checkpoint/
    barnabas spark submit --master spark://host:7077 job.py broker:9092 http://broker:8081 shared/

Each total is written exactly once, when its window is closed, even if the program is killed at any
time and started again.
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
"""How much later than newer orders an order can arrive."""


def main(servers: str, registry: str, checkpoint: str) -> None:
    spark = session()
    connection = {"kafka.bootstrap.servers": servers, "schema.registry.url": registry}
    totals_by_country = totals(orders(spark, connection), customers(spark, connection))
    query = (
        totals_by_country.writeStream.format("barnabas")
        .options(**connection, topic="totals", valueFormat="avro")
        .option("checkpointLocation", checkpoint)
        .queryName("totals")
        .start()
    )
    stop_event = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop_event.set())
    try:
        while not (stop_event.is_set() or query.awaitTermination(1)):
            pass
    finally:
        query.stop()
        spark.stop()


def session() -> SparkSession:
    """Returns a session, local unless a master is configured."""
    spark = (
        configure(SparkSession.builder.appName("orders"))
        .config("spark.sql.shuffle.partitions", "2")  # there are few totals
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    spark.streams.addListener(ProgressLines(lambda line: print(line, flush=True)))
    return spark


def orders(spark: SparkSession, connection: dict[str, str]) -> DataFrame:
    """Returns the columns of the registered schema: number, customer, cents, placed."""
    return (
        spark.readStream.format("barnabas")
        .options(**connection, subscribe="orders", startingOffsets="earliest")
        .options(valueFormat="avro", commitGroupId="orders-totals")
        .load()
        .select("value.*")
    )


def customers(spark: SparkSession, connection: dict[str, str]) -> DataFrame:
    """Returns the latest record of each customer: the topic may not be compacted yet."""
    records = (
        spark.read.format("barnabas")
        .options(**connection, subscribe="customers", valueFormat="avro")
        .load()
    )
    latest = records.groupBy("key").agg(max_by("value", "offset").alias("value"))
    return latest.select(col("value.id").alias("customer"), "value.country")


def totals(orders: DataFrame, customers: DataFrame) -> DataFrame:
    by_country = (
        orders.withWatermark("placed", LATENESS)
        .join(customers, "customer")
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
