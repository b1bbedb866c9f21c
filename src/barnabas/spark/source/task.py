"""A task of the source: reads its ranges into Arrow RecordBatches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from barnabas.spark.source.columns import MAX_KEPT_BYTES, RecordBatchBuilder, iterate_runs
from barnabas.spark.source.connection import connect
from barnabas.spark.source.data_loss import DataLossPolicy
from barnabas.spark.source.offsets import OffsetRange
from barnabas.spark.source.range_fetcher import RangeFetcher
from barnabas.wire.records.decompressor import Decompressor


def read(
    ranges: Sequence[OffsetRange], client: Mapping[str, str], data_loss_policy: DataLossPolicy
) -> Iterator[pa.RecordBatch]:
    """Yields the records of all ranges, in the columns of Spark's connector.

    The records of one range are in order.
    """
    connection = connect(client)
    fetcher = RangeFetcher(connection, ranges, data_loss_policy)
    decompressor = Decompressor(MAX_KEPT_BYTES)
    builder = RecordBatchBuilder()
    try:
        for response in fetcher:
            for fetched in response:
                for run in iterate_runs(fetched, connection.settings, decompressor):
                    builder.add(fetched, run)
                    if builder.is_full:
                        yield builder.batch()
                        builder = RecordBatchBuilder()
                        decompressor.clear()
            if fetcher.is_idle and not builder.is_empty:
                yield builder.batch()
                builder = RecordBatchBuilder()
                decompressor.clear()
        if not builder.is_empty:
            yield builder.batch()
    finally:
        fetcher.close()
