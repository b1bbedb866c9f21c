"""Writes batches with a sink, as a task does, and reads partitions with a source."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect import (
    ConnectBatch,
    ConnectSchema,
    SinkConnector,
    SinkWriter,
    SourceBatch,
    SourceConnector,
    WriteContext,
    WriteReport,
    source_batch,
)
from barnabas.connect.connector import Partition, Position, TopicPartition


@dataclass
class Reporter:
    """Keeps what a writer reports, or raises it."""

    tolerates_errors: bool = False
    reported: list[tuple[list[int], str]] = field(default_factory=list)
    """The offsets of failed records, and the error."""

    def report(self, records: ConnectBatch, error: Exception) -> None:
        if not self.tolerates_errors:
            raise error
        self.reported.append((records.offset.to_pylist(), str(error)))


def context(
    ranges: Mapping[TopicPartition, tuple[int, int]],
    reporter: Reporter | None = None,
    name: str = "c",
    attempt: int = 0,
) -> WriteContext:
    return WriteContext(name, 0, attempt, ranges, reporter or Reporter())


def records(
    values: Sequence[Any] | pa.Array,
    schema: ConnectSchema | None,
    keys: Sequence[Any] | pa.Array | None = None,
    key_schema: ConnectSchema | None = None,
    *,
    topic: str = "t",
    partition: int = 0,
    offset: int = 0,
) -> ConnectBatch:
    """Returns records of a topic partition with consecutive offsets."""
    array = _array(values, schema)
    count = len(array)
    key = pa.nulls(count) if keys is None else _array(keys, key_schema)
    return replace(
        source_batch(topic, schema, array, key_schema, key),
        partition=pa.array([partition] * count, pa.int32()),
        offset=pa.array(range(offset, offset + count), pa.int64()),
    )


def _array(values: Sequence[Any] | pa.Array, schema: ConnectSchema | None) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    return pa.array(values, None if schema is None else schema.arrow_type())


def write(
    sink: SinkConnector, *batches: ConnectBatch, reporter: Reporter | None = None, attempt: int = 0
) -> WriteReport:
    """Writes the batches in one task, and commits them."""
    writer = sink.open(context(ranges_of(batches), reporter, sink.name, attempt))
    try:
        write_new(writer, *batches)
        report = writer.close()
    except BaseException:
        writer.abort()
        raise
    sink.commit([report])
    return report


def write_new(writer: SinkWriter, *batches: ConnectBatch) -> None:
    """Passes the records to the writer that it does not have, as the engine does."""
    first_offsets = writer.first_offsets()
    for batch in batches:
        topics, partitions = batch.topic.to_pylist(), batch.partition.to_pylist()
        starts = [first_offsets.get(key, 0) for key in zip(topics, partitions, strict=True)]
        is_new = pc.greater_equal(batch.offset, pa.array(starts, pa.int64()))
        if is_new.true_count:
            writer.write(batch.filter(is_new))


def ranges_of(batches: Iterable[ConnectBatch]) -> dict[TopicPartition, tuple[int, int]]:
    ranges: dict[TopicPartition, tuple[int, int]] = {}
    for batch in batches:
        rows = zip(
            batch.topic.to_pylist(),
            batch.partition.to_pylist(),
            batch.offset.to_pylist(),
            strict=True,
        )
        for topic, partition, offset in rows:
            start, end = ranges.get((topic, partition), (offset, offset))
            ranges[topic, partition] = min(start, offset), max(end, offset + 1)
    return ranges


def read(
    source: SourceConnector,
    partition: Partition,
    position: Position | None = None,
    max_rows: int = 1 << 30,
) -> list[SourceBatch]:
    return list(source.read(partition, position, max_rows))


def values(batches: Iterable[SourceBatch]) -> list[Any]:
    return [value for batch in batches for value in batch.records.value.to_pylist()]
