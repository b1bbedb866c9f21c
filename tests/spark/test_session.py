"""The session that tests share works, with this Python in its workers."""

import sys

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf


def test_workers_run_the_python_of_the_tests(spark: SparkSession) -> None:
    python = udf(lambda _: sys.executable)
    rows = spark.range(4).select(python("id").alias("python")).distinct().collect()
    assert [row.python for row in rows] == [sys.executable]
