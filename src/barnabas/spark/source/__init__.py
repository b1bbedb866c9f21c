"""Reading topics: the options and columns of Spark's own Kafka connector, and more.

`options.py` reads what was asked for, `formats.py` how keys and values are decoded; `bounds.py`,
`tasks.py` and `advance.py` decide what is read when and by whom, and ask nobody; `broker.py` asks
the cluster for the driver, and `news.py` waits there for records. In the executors, `reading.py` is
a task: `fetching.py` brings what it reads, `columns.py` makes Arrow of it, and `shaping.py` what
`declaring.py` has declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType

    from barnabas.spark.source.formats import ColumnFormats


def settle(options: Mapping[str, str]) -> ColumnFormats:
    """How keys and values are decoded, with the schemas that the registry has now."""
    from barnabas.spark.source.formats import formats_of
    from barnabas.spark.source.option_names import parse_options
    from barnabas.spark.source.options import require_readable

    require_readable(options)
    return formats_of(parse_options(options))


def schema(options: Mapping[str, str], formats: ColumnFormats) -> StructType:
    """The columns that there are."""
    from barnabas.spark.source.option_names import parse_options
    from barnabas.spark.source.declared_schema import declared_schema

    return declared_schema(parse_options(options), formats)


def batch_reader(
    options: Mapping[str, str], schema: StructType, declared: ColumnFormats | None
) -> DataSourceReader:
    """Of the columns in `schema`, with the formats that were declared, unless that is a user's."""
    from barnabas.spark.source.batch import TopicBatchReader
    from barnabas.spark.source.options import batch_options
    from barnabas.spark.source.row_decoder import row_decoder

    return TopicBatchReader(batch_options(options), row_decoder(options, schema, declared))


def stream_reader(
    options: Mapping[str, str], schema: StructType, declared: ColumnFormats | None
) -> DataSourceStreamReader:
    from barnabas.spark.source.options import stream_options
    from barnabas.spark.source.row_decoder import row_decoder
    from barnabas.spark.source.stream import TopicStreamReader

    return TopicStreamReader(stream_options(options), row_decoder(options, schema, declared))
