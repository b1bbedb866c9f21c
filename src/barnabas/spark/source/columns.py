"""Fetched batches as the columns that Spark declares, without an object per record."""

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
from barnabas.wire.records.read import Run

FULL_BYTES = 8 << 20
"""Of records in one RecordBatch, but for the last of the brokers' batches in it."""

CREATE_TIME, LOG_APPEND_TIME = 0, 1
_ALL = 0x7FFFFFFF


def runs_of(fetched: Fetched, settings: ConsumerSettings) -> Iterator[Run]:
    """The records of the range in what was fetched, but for markers and aborted ones.

    They are a record batch each, decompressed when it is its turn; the last may have records
    after the range.
    """
    wanted, batches = fetched.range, fetched.fetched
    cursor = CompletedFetch(
        ConsumerProgress(wanted.topic, wanted.partition),
        batches.batches,
        batches.fetch_offset,
        batches.next_offset,
        batches.record_count,
        batches.aborted,
        settings.isolation_level == "read_committed",
        settings.check_crcs,
    )
    try:
        while (run := cursor.take_run(_ALL)) is not None and run.base_offset < wanted.end:
            yield run
    except WireError as error:
        raise SourceError(f"{wanted.topic_partition}: {error}") from None


class RecordBatchBuilder:
    """The records of one RecordBatch while they are gathered."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._sizes: list[Sizes] = []
        self._places: list[tuple[_RowOrigin, int]] = []  # and how many rows
        self._size_bytes = 0

    @property
    def is_full(self) -> bool:
        return self._size_bytes >= FULL_BYTES

    @property
    def is_empty(self) -> bool:
        return not self._runs

    def add(self, fetched: Fetched, run: Run) -> None:
        """A run of what was fetched."""
        wanted = fetched.range
        try:
            self._sizes.append(measure(run))
        except WireError as error:
            raise SourceError(f"{wanted.topic_partition}: {error}") from None
        self._runs.append(run)
        self._size_bytes += len(run.records)
        timestamp_type = CREATE_TIME if run.append_time is None else LOG_APPEND_TIME
        is_cut = fetched.fetched.next_offset > wanted.end
        place = _RowOrigin(wanted.topic, wanted.partition, timestamp_type, wanted.end, is_cut)
        if self._places and self._places[-1][0] == place:
            self._places[-1] = place, self._places[-1][1] + run.record_count
        else:
            self._places.append((place, run.record_count))

    def batch(self) -> pa.RecordBatch:
        """Its records in the connector's columns; `headers` are null where there are none."""
        read = runs_to_arrow(self._runs, self._sizes)
        places = self._places
        columns = {
            "key": read.column("key"),
            "value": read.column("value"),
            "topic": _repeated(pa.string(), ((each.topic, rows) for each, rows in places)),
            "partition": _repeated(pa.int32(), ((each.partition, rows) for each, rows in places)),
            "offset": read.column("offset"),
            "timestamp": read.column("timestamp").cast(pa.timestamp("us", tz="UTC")),
            "timestampType": _repeated(
                pa.int32(), ((each.timestamp_type, rows) for each, rows in places)
            ),
            "headers": _or_null(read.column("headers")),
        }
        batch = pa.RecordBatch.from_pydict(columns)
        if any(each.is_cut for each, _ in places):
            ends = _repeated(pa.int64(), ((each.end, rows) for each, rows in places))
            batch = batch.filter(pc.less(batch.column("offset"), ends))
        return batch


@dataclass(slots=True, frozen=True)
class _RowOrigin:
    """Where rows that follow each other came from."""

    topic: str
    partition: int
    timestamp_type: int
    end: int
    is_cut: bool  # there may be records after the range


def _repeated(kind: pa.DataType, parts: Iterable[tuple[object, int]]) -> pa.Array:
    """Each value so many times."""
    repeated = [pa.repeat(pa.scalar(value, kind), count) for value, count in parts]
    return repeated[0] if len(repeated) == 1 else pa.concat_arrays(repeated)


def _or_null(headers: pa.ListArray) -> pa.ListArray:
    """The connector has no empty lists of headers."""
    if not len(headers.values):
        return pa.nulls(len(headers), headers.type)
    return pc.if_else(pc.greater(pc.list_value_length(headers), 0), headers, None)
