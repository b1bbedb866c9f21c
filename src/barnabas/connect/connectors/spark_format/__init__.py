"""`connector.class=spark`: any streaming format of Spark, and any PySpark data source.

    connector.class=spark
    format=rate
    option.rowsPerSecond=10
    topic=ticks

Unlike the other connectors, each is a streaming query of its own: its rows pass through the JVM,
and its positions are in a checkpoint directory. Transforms, converters and the handling of errors
are the same.

- A source writes to its topic exactly once: rows and dead letters are in the transactions of the
  sink of pipelines (`spark/sink/protocol.py`). It starts where its checkpoint ends, if the format
  can do that.
- A sink promises what the format promises: Spark's files are exactly once. Its dead letters are
  written at least once. Offsets are committed to the group after each micro-batch, for lag tools.
"""

from barnabas.connect.connectors.spark_format.sink import SparkSink
from barnabas.connect.connectors.spark_format.source import SparkSource

__all__ = ["SparkSink", "SparkSource"]
