"""One task: its ranges, read from the brokers into RecordBatches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa

from barnabas.spark.source.columns import Gathering, runs_of
from barnabas.spark.source.connection import connect
from barnabas.spark.source.fetching import Fetching
from barnabas.spark.source.loss import Loss
from barnabas.spark.source.offsets import OffsetRange


def read(
    ranges: Sequence[OffsetRange], client: Mapping[str, str], loss: Loss
) -> Iterator[pa.RecordBatch]:
    """The records of all ranges in the connector's columns, those of a range in their order."""
    connection = connect(client)
    fetching = Fetching(connection, ranges, loss)
    gathering = Gathering()
    try:
        for answer in fetching:
            for fetched in answer:
                for run in runs_of(fetched, connection.settings):
                    gathering.add(fetched, run)
                    if gathering.is_full:
                        yield gathering.batch()
                        gathering = Gathering()
            if fetching.is_idle and not gathering.is_empty:
                yield gathering.batch()
                gathering = Gathering()
        if not gathering.is_empty:
            yield gathering.batch()
    finally:
        fetching.close()
