"""Reading topics: the options and columns of Spark's own Kafka connector, and more.

`options.py` reads what was asked for; `bounds.py`, `tasks.py` and `advance.py` decide what is read
when and by whom, and ask nobody; `broker.py` asks the cluster for the driver. In the executors,
`reading.py` is a task: `fetching.py` brings what it reads, `columns.py` makes Arrow of it, and
`shaping.py` what `declaring.py` has declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType


def schema(options: Mapping[str, str]) -> StructType:
    from barnabas.spark.source.declaring import declared
    from barnabas.spark.source.options import require_readable

    require_readable(options)
    return declared(options)


def batch_reader(options: Mapping[str, str], schema: StructType) -> DataSourceReader:
    from barnabas.spark.source.batch import BatchReader
    from barnabas.spark.source.options import batch_options
    from barnabas.spark.source.shaping import shape_of

    return BatchReader(batch_options(options), shape_of(options, schema))


def stream_reader(options: Mapping[str, str], schema: StructType) -> DataSourceStreamReader:
    from barnabas.spark.source.options import stream_options
    from barnabas.spark.source.shaping import shape_of
    from barnabas.spark.source.stream import StreamReader

    return StreamReader(stream_options(options), shape_of(options, schema))
