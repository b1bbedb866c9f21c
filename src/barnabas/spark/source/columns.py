"""Converts fetched record batches to the columns of the source, without an object per record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.client.consumer._completed_fetch import CompletedFetch, ConsumerProgress
from barnabas.client.settings import ConsumerSettings
from barnabas.spark.source.connection import SourceError
from barnabas.spark.source.range_fetcher import Fetched
from barnabas.wire.errors import KafkaError as WireError
from barnabas.wire.records.arrow import Sizes, measure, runs_to_arrow
from barnabas.wire.records.decompressor import Decompressor
from barnabas.wire.records.read import Run

TARGET_BATCH_BYTES = 8 << 20
"""Size of the records of one Arrow RecordBatch; the last run may exceed it."""

MAX_KEPT_BYTES = 2 * TARGET_BATCH_BYTES
"""Of a task's buffer for decompressed records."""

CREATE_TIME, LOG_APPEND_TIME = 0, 1
_ALL_RECORDS = 0x7FFFFFFF


def iterate_runs(
    fetched: Fetched, settings: ConsumerSettings, decompressor: Decompressor
) -> Iterator[Run]:
    """Yields the fetched records of a range, without control records and aborted ones.

    A run is one of the brokers' record batches, decompressed when it is yielded, and valid until
    the decompressor is cleared. The last run may have records after the range.
    """
    offset_range, batches = fetched.range, fetched.fetched
    cursor = CompletedFetch(
        ConsumerProgress(offset_range.topic, offset_range.partition),
        batches.batches,
        batches.fetch_offset,
        batches.next_offset,
        batches.record_count,
        batches.aborted,
        settings.isolation_level == "read_committed",
        settings.check_crcs,
    )
    try:
        while (
            run := cursor.take_run(_ALL_RECORDS, decompressor)
        ) is not None and run.base_offset < offset_range.end:
            yield run
    except WireError as error:
        raise SourceError(f"{offset_range.topic_partition}: {error}") from None


class RecordBatchBuilder:
    """Collects runs of records until they become one Arrow RecordBatch."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._sizes: list[Sizes] = []
        self._origins: list[tuple[_RowOrigin, int]] = []  # with the number of rows
        self._size_bytes = 0

    @property
    def is_full(self) -> bool:
        return self._size_bytes >= TARGET_BATCH_BYTES

    @property
    def is_empty(self) -> bool:
        return not self._runs

    def add(self, fetched: Fetched, run: Run) -> None:
        """Add a run of the fetched records."""
        offset_range = fetched.range
        try:
            self._sizes.append(measure(run))
        except WireError as error:
            raise SourceError(f"{offset_range.topic_partition}: {error}") from None
        self._runs.append(run)
        self._size_bytes += len(run.records)
        timestamp_type = CREATE_TIME if run.append_time is None else LOG_APPEND_TIME
        is_cut = fetched.fetched.next_offset > offset_range.end
        origin = _RowOrigin(
            offset_range.topic, offset_range.partition, timestamp_type, offset_range.end, is_cut
        )
        if self._origins and self._origins[-1][0] == origin:
            self._origins[-1] = origin, self._origins[-1][1] + run.record_count
        else:
            self._origins.append((origin, run.record_count))

    def batch(self) -> pa.RecordBatch:
        """Returns the records in the columns of Spark's connector; empty `headers` are null."""
        read = runs_to_arrow(self._runs, self._sizes)
        origins = self._origins
        columns = {
            "key": read.column("key"),
            "value": read.column("value"),
            "topic": _repeated(pa.string(), ((origin.topic, rows) for origin, rows in origins)),
            "partition": _repeated(
                pa.int32(), ((origin.partition, rows) for origin, rows in origins)
            ),
            "offset": read.column("offset"),
            "timestamp": read.column("timestamp").cast(pa.timestamp("us", tz="UTC")),
            "timestampType": _repeated(
                pa.int32(), ((origin.timestamp_type, rows) for origin, rows in origins)
            ),
            "headers": _empty_to_null(read.column("headers")),
        }
        batch = pa.RecordBatch.from_pydict(columns)
        if any(origin.is_cut for origin, _ in origins):
            ends = _repeated(pa.int64(), ((origin.end, rows) for origin, rows in origins))
            batch = batch.filter(pc.less(batch.column("offset"), ends))
        return batch


@dataclass(slots=True, frozen=True)
class _RowOrigin:
    """Where a sequence of rows was read from."""

    topic: str
    partition: int
    timestamp_type: int
    end: int
    is_cut: bool  # there may be records after the range


def _repeated(arrow_type: pa.DataType, parts: Iterable[tuple[object, int]]) -> pa.Array:
    """Returns an array that repeats each value `count` times."""
    repeated = [pa.repeat(pa.scalar(value, arrow_type), count) for value, count in parts]
    return repeated[0] if len(repeated) == 1 else pa.concat_arrays(repeated)


def _empty_to_null(headers: pa.ListArray) -> pa.ListArray:
    """Spark's connector has null instead of an empty list of headers."""
    if not len(headers.values):
        return pa.nulls(len(headers), headers.type)
    return pc.if_else(pc.greater(pc.list_value_length(headers), 0), headers, None)
