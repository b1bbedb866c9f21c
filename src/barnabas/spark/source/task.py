"""One task: its ranges, read from the brokers into RecordBatches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from barnabas.spark.source.columns import RecordBatchBuilder, runs_of
from barnabas.spark.source.connection import connect
from barnabas.spark.source.data_loss import DataLossPolicy
from barnabas.spark.source.offsets import OffsetRange
from barnabas.spark.source.range_fetcher import RangeFetcher


def read(
    ranges: Sequence[OffsetRange], client: Mapping[str, str], loss: DataLossPolicy
) -> Iterator[pa.RecordBatch]:
    """The records of all ranges in the connector's columns, those of a range in their order."""
    connection = connect(client)
    fetching = RangeFetcher(connection, ranges, loss)
    gathering = RecordBatchBuilder()
    try:
        for answer in fetching:
            for fetched in answer:
                for run in runs_of(fetched, connection.settings):
                    gathering.add(fetched, run)
                    if gathering.is_full:
                        yield gathering.batch()
                        gathering = RecordBatchBuilder()
            if fetching.is_idle and not gathering.is_empty:
                yield gathering.batch()
                gathering = RecordBatchBuilder()
        if not gathering.is_empty:
            yield gathering.batch()
    finally:
        fetching.close()
