"""Runs a connector against batches in memory, for its tests: no broker, no Spark, milliseconds.

    read = read_source(NumbersSource, {"topic": "numbers", "count": "3"})
    assert read.values == [1, 2, 3]

    write_sink(FilesSink, {"directory": str(tmp_path)}, records([{"id": 1}, {"id": 2}]))

A connector is created, configured and called as by a worker: one object plans and commits, another
one reads or writes, and positions and reports pass between them as in files of JSON and pickles.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.connect.config_def import errors_of
from barnabas.connect.connector import (
    Connector,
    Partition,
    Position,
    SinkConnector,
    SourceConnector,
    TopicPartition,
    WriteContext,
    WriteReport,
)
from barnabas.connect.data.batch import ConnectBatch, source_batch
from barnabas.connect.data.schema import ConnectSchema
from barnabas.connect.errors import InvalidConfigError

if TYPE_CHECKING:
    import pyarrow as pa

C = TypeVar("C", bound=Connector)

MAX_ROWS = 500_000


@dataclass(slots=True, frozen=True)
class ReadRecords:
    """What a source has read."""

    batches: Sequence[ConnectBatch]
    positions: Sequence[tuple[Partition, Position]]
    """Pass them to the next `read_source` to go on from there."""

    @property
    def values(self) -> list[Any]:
        return [value for batch in self.batches for value in batch.value.to_pylist()]

    @property
    def keys(self) -> list[Any]:
        return [key for batch in self.batches for key in batch.key.to_pylist()]

    @property
    def topics(self) -> list[str]:
        return [topic for batch in self.batches for topic in batch.topic.to_pylist()]


def read_source(
    connector: type[SourceConnector],
    config: Mapping[str, str],
    positions: Iterable[tuple[Partition, Position]] = (),
    *,
    max_rows: int = MAX_ROWS,
) -> ReadRecords:
    """Reads each partition once, from its position. Raises InvalidConfigError with all errors."""
    driver, task = _configured(connector, config), _configured(connector, config)
    reached = {_text(partition): (partition, position) for partition, position in positions}
    batches: list[ConnectBatch] = []
    driver.start()
    try:
        for partition in driver.partitions():
            _, position = reached.get(_text(partition), (partition, None))
            if not driver.has_new(partition, position):
                continue
            for batch in task.read(_copied(partition), _copied(position), max_rows):
                batches.append(batch.records)
                reached[_text(partition)] = partition, _copied(batch.position)
        found = list(reached.values())
        driver.commit(found)
    finally:
        driver.stop()
    return ReadRecords(batches, found)


@dataclass(slots=True, frozen=True)
class WrittenRecords:
    """What a sink has done with records."""

    positions: Mapping[TopicPartition, int]
    """The next offset of each partition."""
    errors: Sequence[tuple[int, Exception]] = ()
    """The offsets of records that could not be written, if errors are tolerated."""


def write_sink(
    connector: type[SinkConnector],
    config: Mapping[str, str],
    *batches: ConnectBatch,
    tolerates_errors: bool = False,
) -> WrittenRecords:
    """Writes the batches in one task, and commits.

    Records before `committed_positions` are left out, as after a restart of the connector. Raises
    InvalidConfigError with all errors of settings, and what the writer raises.
    """
    driver, task = _configured(connector, config), _configured(connector, config)
    driver.start()
    try:
        ranges = _ranges(batches)
        kept = driver.committed_positions(list(ranges)) or {}
        ranges = {
            key: (max(start, kept.get(key, start)), end)
            for key, (start, end) in ranges.items()
            if kept.get(key, start) < end
        }
        if not ranges:
            return WrittenRecords(dict(kept))
        reporter = _Reporter(tolerates_errors)
        writer = task.open(WriteContext(driver.name, 0, 0, ranges, reporter))
        try:
            first = {key: start for key, (start, _) in ranges.items()}
            first |= {
                key: max(first[key], offset) for key, offset in writer.first_offsets().items()
            }
            for batch in batches:
                rest = _from_positions(batch, {**kept, **first})
                if len(rest):
                    writer.write(rest)
            report: WriteReport = pickle.loads(pickle.dumps(writer.close()))
        except BaseException:
            writer.abort()
            raise
        driver.commit([report])
        return WrittenRecords({**kept, **report.positions}, reporter.errors)
    finally:
        driver.stop()


def records(
    values: Sequence[Any] | pa.Array,
    schema: ConnectSchema | None = None,
    *,
    keys: Sequence[Any] | pa.Array | None = None,
    key_schema: ConnectSchema | None = None,
    topic: str = "topic",
    partition: int = 0,
    first_offset: int = 0,
) -> ConnectBatch:
    """Returns records of a topic partition with consecutive offsets.

    Without a schema, values are what a converter without schemas makes of them: structs for dicts.
    """
    import pyarrow as pa

    array = _array(values, schema)
    count = len(array)
    key = None if keys is None else _array(keys, key_schema)
    return replace(
        source_batch(topic, schema, array, key_schema, key),
        partition=pa.array([partition] * count, pa.int32()),
        offset=pa.array(range(first_offset, first_offset + count), pa.int64()),
    )


@dataclass(slots=True)
class _Reporter:
    """Implements `ErrorReporter`."""

    tolerates_errors: bool
    errors: list[tuple[int, Exception]] = field(default_factory=list)

    def report(self, records: ConnectBatch, error: Exception) -> None:
        if not self.tolerates_errors:
            raise error
        self.errors += [(offset, error) for offset in records.offset.to_pylist()]


def _configured(connector: type[C], config: Mapping[str, str]) -> C:
    complete = {"name": "test", **config}
    errors = errors_of(connector.validate(complete))
    if errors:
        raise InvalidConfigError("\n".join(errors))
    configured = connector()
    configured.configure(complete)
    return configured


def _copied(value: Any) -> Any:
    """Positions and partitions are stored as JSON."""
    return json.loads(json.dumps(value))


def _text(partition: Partition) -> str:
    return json.dumps(partition, sort_keys=True)


def _array(values: Sequence[Any] | pa.Array, schema: ConnectSchema | None) -> pa.Array:
    import pyarrow as pa

    if isinstance(values, pa.Array):
        return values
    return pa.array(values, None if schema is None else schema.arrow_type())


def _ranges(batches: Iterable[ConnectBatch]) -> dict[TopicPartition, tuple[int, int]]:
    ranges: dict[TopicPartition, tuple[int, int]] = {}
    for batch in batches:
        for key, offset in zip(_partitions(batch), batch.offset.to_pylist(), strict=True):
            start, end = ranges.get(key, (offset, offset))
            ranges[key] = min(start, offset), max(end, offset + 1)
    return ranges


def _from_positions(batch: ConnectBatch, kept: Mapping[TopicPartition, int]) -> ConnectBatch:
    import pyarrow as pa

    rows = zip(_partitions(batch), batch.offset.to_pylist(), strict=True)
    return batch.filter(pa.array([offset >= kept.get(key, offset) for key, offset in rows]))


def _partitions(batch: ConnectBatch) -> list[TopicPartition]:
    return list(zip(batch.topic.to_pylist(), batch.partition.to_pylist(), strict=True))
