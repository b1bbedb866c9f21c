"""Connectors and plugins in memory. Items run in the process of the test, in another thread."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect import (
    AvailableRecords,
    ConfigDef,
    ConfigType,
    ConnectBatch,
    ConnectorSetting,
    ConnectSchema,
    Converter,
    DataError,
    Predicate,
    RetriableError,
    SinkConnector,
    SinkWriter,
    SourceBatch,
    SourceConnector,
    Transform,
    Transformed,
    Type,
    WriteContext,
    WriteReport,
    source_batch,
)
from barnabas.connect.converters.converter import (
    Conversion,
    Converted,
    ConvertedBytes,
    RowError,
)

STRING = ConnectSchema(Type.STRING, is_optional=True)
MODULE = "tests.connect.execution.memory"


@dataclass
class World:
    """What the connectors of one test share, by the setting `world`."""

    rows: dict[str, list[str]] = field(default_factory=dict)
    """The tables of a source."""
    written: list[tuple[str, int, int, str | None]] = field(default_factory=list)
    """Records that a sink has committed: topic, partition, offset, value."""
    positions: dict[tuple[str, int], int] = field(default_factory=dict)
    """Positions that a sink keeps with its data."""
    first_offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    """What writers find out to be new."""
    calls: Counter[str] = field(default_factory=Counter)
    failures: dict[str, list[Exception]] = field(default_factory=lambda: defaultdict(list))
    """Raised by the next calls, by their names."""
    hooks: dict[str, Callable[[], object]] = field(default_factory=dict)
    """Called in calls, by their names."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def call(self, name: str) -> None:
        self.calls[name] += 1
        if name in self.hooks:
            self.hooks[name]()
        if self.failures[name]:
            raise self.failures[name].pop(0)

    def values(self) -> list[str | None]:
        return [value for *_, value in self.written]


WORLDS: dict[str, World] = defaultdict(World)


class MemoryConnector:
    settings: Mapping[str, Any]

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(ConnectorSetting("world", ConfigType.STRING))

    @property
    def world(self) -> World:
        return WORLDS[self.settings["world"]]

    def start(self) -> None:
        self.world.call("start")

    def stop(self) -> None:
        self.world.call("stop")


class MemorySource(MemoryConnector, SourceConnector):
    """Reads tables of strings: each is a partition, and is written to a topic of its name."""

    poll_interval_ms = 20

    def partitions(self) -> Sequence[Mapping[str, Any]]:
        self.world.call("partitions")
        return [{"table": name} for name in self.world.rows]

    def has_new(self, partition: Mapping[str, Any], position: Mapping[str, Any] | None) -> bool:
        self.world.call("has_new")
        return len(self.world.rows[partition["table"]]) > (position or {"row": 0})["row"]

    def read(
        self, partition: Mapping[str, Any], position: Mapping[str, Any] | None, max_rows: int
    ) -> Iterator[SourceBatch]:
        self.world.call("read")
        start = (position or {"row": 0})["row"]
        rows = self.world.rows[partition["table"]][start : start + max_rows]
        for index in range(0, len(rows), 2):
            part = rows[index : index + 2]
            values = pa.array(part, pa.string())
            batch = source_batch(partition["table"], STRING, values, STRING, values)
            yield SourceBatch(batch, {"row": start + index + len(part)})
        self.world.call("read done")

    def commit(self, positions: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> None:
        self.world.call("commit")


class MemorySink(MemoryConnector, SinkConnector):
    """Appends records when the writer is closed: at least once."""

    def open(self, context: WriteContext) -> SinkWriter:
        self.world.call("open")
        return MemoryWriter(self.world, context)

    def commit(self, reports: Sequence[WriteReport]) -> None:
        self.world.call("commit")
        for report in reports:
            self.world.written += report.details

    def check_offsets(self, offsets: Mapping[tuple[str, int], int | None]) -> bool:
        self.world.call("check_offsets")
        return True


class ExactMemorySink(MemorySink):
    """Keeps positions with the records."""

    def committed_positions(
        self, partitions: Sequence[tuple[str, int]]
    ) -> Mapping[tuple[str, int], int]:
        with self.world.lock:
            return {key: self.world.positions.get(key, 0) for key in partitions}

    def check_offsets(self, offsets: Mapping[tuple[str, int], int | None]) -> bool:
        with self.world.lock:
            self.world.positions |= {key: offset or 0 for key, offset in offsets.items()}
        return True

    def commit(self, reports: Sequence[WriteReport]) -> None:
        self.world.call("commit")
        with self.world.lock:
            for report in reports:
                self.world.positions |= report.positions
                self.world.written += report.details
        self.world.call("committed")


class LateSink(MemorySink):
    """Reports the records that it refuses when its writer is closed."""

    def open(self, context: WriteContext) -> SinkWriter:
        return LateWriter(self.world, context)


class PatientSink(MemorySink):
    """Writes three records at a time."""

    def end_of_next_write(self, available: AvailableRecords) -> int:
        count = available.end_offset - available.start_offset
        return available.start_offset + (3 if count >= 3 else 0)


class MemoryWriter(SinkWriter):
    def __init__(self, world: World, context: WriteContext) -> None:
        self._world = world
        self._context = context
        self._records: list[tuple[str, int, int, str | None]] = []

    def first_offsets(self) -> Mapping[tuple[str, int], int]:
        return self._world.first_offsets

    def write(self, batch: ConnectBatch) -> None:
        self._world.call("write")
        values = batch.value.to_pylist()
        refused = pc.is_in(batch.value, value_set=pa.array(["refused"]))
        if pc.any(refused).as_py():
            self._context.reporter.report(batch.filter(refused), DataError("cannot be written"))
        columns = (batch.topic, batch.partition, batch.offset)
        rows = zip(*(column.to_pylist() for column in columns), values, strict=True)
        self._records += [row for row in rows if row[3] != "refused"]

    def close(self) -> WriteReport:
        self._world.call("close")
        positions = {key: end for key, (_, end) in self._context.ranges.items()}
        return WriteReport(positions, self._records)

    def abort(self) -> None:
        self._world.call("abort")


class LateWriter(MemoryWriter):
    def __init__(self, world: World, context: WriteContext) -> None:
        super().__init__(world, context)
        self._batches: list[ConnectBatch] = []

    def write(self, batch: ConnectBatch) -> None:
        self._batches.append(batch)

    def close(self) -> WriteReport:
        for batch in self._batches:
            super().write(batch)
        return super().close()


class TextConverter(Converter):
    """UTF-8. Rejects `poison`; records that begin with { have another schema."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None:
        self._failures = int(settings.get("failures", "0"))

    def to_connect(self, topic: str, payloads: pa.BinaryArray) -> Conversion:
        if self._failures:
            self._failures -= 1
            raise RetriableError("the registry is down")
        values = payloads.to_pylist()
        errors = [
            RowError(row, DataError("Poison is not text."))
            for row, value in enumerate(values)
            if value == b"poison"
        ]
        runs: list[Converted] = []
        start = 0
        for end in range(1, len(values) + 1):
            if end == len(values) or _is_object(values[end]) != _is_object(values[start]):
                texts = [value and value.decode() for value in values[start:end]]
                schema = None if _is_object(values[start]) else STRING
                runs.append(Converted(start, schema, pa.array(texts, pa.string())))
                start = end
        return Conversion(runs, errors)

    def from_connect(
        self, topic: str, schema: ConnectSchema | None, values: pa.Array
    ) -> ConvertedBytes:
        errors = [
            RowError(row, DataError("Poison is not text."))
            for row, value in enumerate(values.to_pylist())
            if value == "poison"
        ]
        return ConvertedBytes(values.cast(pa.binary()), errors)


def _is_object(value: bytes | None) -> bool:
    return value is not None and value.startswith(b"{")


class Upper(Transform):
    """Upper case. Fails as a whole if there is a `bug`, and drops `drop`."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(ConnectorSetting("prefix", ConfigType.STRING, ""))

    def apply(self, batch: ConnectBatch) -> Transformed:
        if "bug" in batch.value.to_pylist():
            raise ZeroDivisionError("a bug")
        keep = pc.fill_null(pc.not_equal(batch.value, "drop"), True)
        rows = pc.indices_nonzero(keep).cast(pa.int64())
        kept = batch.filter(keep)
        value = pc.binary_join_element_wise(self.settings["prefix"], pc.utf8_upper(kept.value), "")
        return Transformed([(kept.with_value(STRING, value), rows)])


class Route(Transform):
    """Gives records another topic."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(ConnectorSetting("topic", ConfigType.STRING))

    def apply(self, batch: ConnectBatch) -> Transformed:
        from dataclasses import replace

        topics = pa.array([self.settings["topic"]] * len(batch))
        rows = pa.array(range(len(batch)), pa.int64())
        return Transformed([(replace(batch, topic=topics), rows)])


class StartsWith(Predicate):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(ConnectorSetting("text", ConfigType.STRING))

    def test(self, batch: ConnectBatch) -> pa.BooleanArray:
        return pc.fill_null(pc.starts_with(batch.value, self.settings["text"]), False)
