"""Reads topics, with the options and columns of Spark's own Kafka connector, and more.

`options.py` parses the options, `formats.py` resolves the formats of keys and values.
`offset_bounds.py`, `task_planner.py` and `admission.py` decide what each task and micro-batch
reads, without I/O. In the driver, `cluster_client.py` sends requests to the cluster, and
`new_record_waiter.py` waits for records. In the executors, `task.py` runs a task:
`range_fetcher.py` fetches, `columns.py` converts to Arrow, `row_decoder.py` decodes to the columns
of `declared_schema.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType

    from barnabas.spark.source.formats import ColumnFormats


def resolve_formats(options: Mapping[str, str]) -> ColumnFormats:
    """Returns the formats of keys and values, with the current schemas of the registry."""
    from barnabas.spark.source.formats import formats_from_options
    from barnabas.spark.source.option_names import parse_options
    from barnabas.spark.source.options import validate_options

    validate_options(options)
    return formats_from_options(parse_options(options))


def schema(options: Mapping[str, str], formats: ColumnFormats) -> StructType:
    """Returns the columns of the source."""
    from barnabas.spark.source.declared_schema import declared_schema
    from barnabas.spark.source.option_names import parse_options

    return declared_schema(parse_options(options), formats)


def batch_reader(
    options: Mapping[str, str], schema: StructType, declared: ColumnFormats | None
) -> DataSourceReader:
    """Returns a reader of the columns in `schema`.

    `declared` is None if the schema is the user's: formats are resolved now then.
    """
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
