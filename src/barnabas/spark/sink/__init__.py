"""Writes DataFrames to topics, exactly once or at least once.

Each task writes its rows in a transaction and leaves it open; the driver decides on all of them
together, and commits them. `protocol.py` has the steps, `docs/spark-exactly-once.md` says why
they are correct. `options.py` parses the options, `row_encoder.py` encodes rows, `task.py` runs
in Spark's Python workers, `transaction_log.py` sends the requests of the driver to the brokers.
"""

from barnabas.spark.sink.writer import batch_writer, stream_writer

__all__ = ["batch_writer", "stream_writer"]
