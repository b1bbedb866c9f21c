"""A session made with our settings has them, with this environment's Python in its workers."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from barnabas.spark.session import settings


def test_workers_run_the_python_of_the_driver_and_come_from_our_daemon(spark: SparkSession) -> None:
    found = udf(lambda _: f"{sys.prefix} {'barnabas.spark.source.batch' in sys.modules}")
    rows = spark.range(4).select(found("id").alias("found")).distinct().collect()
    assert [row.found for row in rows] == [f"{sys.prefix} True"]


def test_a_session_has_the_settings(spark: SparkSession) -> None:
    assert {name: spark.conf.get(name) for name in settings()} == settings()
