"""Writes DataFrames to topics: exactly once, or at least once where that will do.

Tasks write their rows in transactions of their own and leave them open; the driver decides on
all of them at once, and has them committed. `protocol.py` is how, and `docs/spark-exactly-once.md`
why it holds. `options.py` reads what the user asks for, `rows.py` what a row becomes, `task.py`
runs in Spark's Python workers, `ledger.py` asks the brokers on behalf of the driver.
"""

from barnabas.spark.sink.writer import batch_writer, stream_writer

__all__ = ["batch_writer", "stream_writer"]
