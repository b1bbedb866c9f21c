"""Writes the records of one task of one micro-batch: as local files first, then to the store.

A file has the records of one topic, Kafka partition, directory and schema, and the name of its
first offset. Before the first upload, the names of all files are stored (`positions.py`), so that
what an attempt leaves behind can be removed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.connector import SinkWriter, TopicPartition, WriteContext, WriteReport
from barnabas.connect.connectors.object_store import settings as names
from barnabas.connect.connectors.object_store.formats import FileFormat, FormatWriter
from barnabas.connect.connectors.object_store.partitioners import Partitioner, TimestampOf
from barnabas.connect.connectors.object_store.positions import PendingFiles, PositionStore
from barnabas.connect.connectors.object_store.stores import ObjectStore
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.data.schema import ConnectSchema
from barnabas.connect.errors import ConnectError, DataError


@dataclass(slots=True)
class _OpenFile:
    name: str
    path: Path
    schema: ConnectSchema | None
    arrow_type: pa.DataType
    writer: FormatWriter
    first_time_ms: int | None


@dataclass(slots=True)
class _KafkaPartition:
    """The open files of a topic and Kafka partition."""

    records: int = 0
    """Since the files were last rotated."""
    files: dict[str, _OpenFile] = field(default_factory=dict)
    """By directory."""


class ObjectStoreWriter(SinkWriter):
    def __init__(
        self,
        context: WriteContext,
        settings: Mapping[str, Any],
        store: ObjectStore,
        file_format: FileFormat,
        partitioner: Partitioner,
        timestamp_of: TimestampOf | None,
    ) -> None:
        """`timestamp_of` is given if files rotate by time."""
        self._context = context
        self._settings = settings
        self._store = store
        self._format = file_format
        self._partitioner = partitioner
        self._timestamp_of = timestamp_of
        self._directory = store.work_directory / uuid.uuid4().hex
        self._directory.mkdir()
        self._partitions: dict[TopicPartition, _KafkaPartition] = {}
        self._complete: dict[str, Path] = {}
        """The files that are complete, by their names in the store."""

    # Taking records

    def write(self, batch: ConnectBatch) -> None:
        batch = self._with_values(batch)
        for key, rows in _by_partition(batch):
            partition = self._partitions.setdefault(key, _KafkaPartition())
            while len(rows):
                room = self._settings[names.FLUSH_SIZE] - partition.records
                self._write_to(partition, key, rows.slice(0, room))
                rows = rows.slice(room)

    def _with_values(self, batch: ConnectBatch) -> ConnectBatch:
        """Returns the records that have a value, and that the format can write."""
        if batch.value.null_count:
            nulls = batch.filter(batch.value.is_null())
            if self._settings[names.NULL_VALUES].lower() == "fail":
                self._context.reporter.report(
                    nulls,
                    DataError(
                        f"The value of a record is null: set {names.NULL_VALUES} to ignore, or "
                        f"filter tombstones."
                    ),
                )
            batch = batch.filter(batch.value.is_valid())
        errors = self._format.errors(batch.value_schema, batch.value) if len(batch) else []
        if errors:
            failed = pa.array([error.row for error in errors], pa.int64())
            for error in errors:
                self._context.reporter.report(batch.slice(error.row, 1), error.error)
            rows = pa.array(range(len(batch)), pa.int64())
            batch = batch.filter(pc.invert(pc.is_in(rows, value_set=failed)))
        return batch

    def _write_to(
        self, partition: _KafkaPartition, key: TopicPartition, rows: ConnectBatch
    ) -> None:
        try:
            directories = self._partitioner(rows)
        except DataError as error:
            self._report_one_by_one(partition, key, rows, error)
            return
        for directory, chosen in _groups(directories, rows):
            self._write_in_directory(partition, key, directory, chosen)
        partition.records += len(rows)
        if partition.records >= self._settings[names.FLUSH_SIZE]:
            self._rotate(partition)

    def _report_one_by_one(
        self, partition: _KafkaPartition, key: TopicPartition, rows: ConnectBatch, error: DataError
    ) -> None:
        """Finds the records without a directory by halving."""
        if len(rows) == 1:
            self._context.reporter.report(rows, error)
            return
        half = len(rows) // 2
        self._write_to(partition, key, rows.slice(0, half))
        self._write_to(partition, key, rows.slice(half))

    def _write_in_directory(
        self, partition: _KafkaPartition, key: TopicPartition, directory: str, rows: ConnectBatch
    ) -> None:
        for times, part in self._by_interval(partition, directory, rows):
            file = partition.files.get(directory)
            if file is not None and (
                file.schema != part.value_schema or file.arrow_type != part.value.type
            ):
                self._complete_file(partition.files.pop(directory))
                file = None
            if file is None:
                file = partition.files[directory] = self._open(key, directory, part, times)
            file.writer.write(part.value)

    def _by_interval(
        self, partition: _KafkaPartition, directory: str, rows: ConnectBatch
    ) -> Iterator[tuple[int | None, ConnectBatch]]:
        """Yields the records of each file, with the time of the first of them."""
        if self._timestamp_of is None:
            yield None, rows
            return
        interval_ms = self._settings[names.ROTATE_INTERVAL]
        times = self._timestamp_of(rows)
        start = 0
        while start < len(rows):
            file = partition.files.get(directory)
            first_ms = times[start].as_py() if file is None else file.first_time_ms
            late = pc.index(pc.greater_equal(times.slice(start), first_ms + interval_ms), True)
            end = len(rows) if late.as_py() < 0 else start + late.as_py()
            if end > start:
                yield first_ms, rows.slice(start, end - start)
            if end < len(rows) and directory in partition.files:
                self._complete_file(partition.files.pop(directory))
            start = end

    def _open(
        self, key: TopicPartition, directory: str, rows: ConnectBatch, time_ms: int | None
    ) -> _OpenFile:
        path = self._directory / uuid.uuid4().hex
        writer = self._format.open(path, rows.value_schema, rows.value)
        name = self._name(key, directory, rows.offset[0].as_py())
        return _OpenFile(name, path, rows.value_schema, rows.value.type, writer, time_ms)

    def _name(self, key: TopicPartition, directory: str, offset: int) -> str:
        settings, (topic, partition) = self._settings, key
        delimiter: str = settings["file.delim"]
        directories: str = settings["directory.delim"]
        number = str(offset).zfill(settings["filename.offset.zero.pad.width"])
        file = f"{topic}{delimiter}{partition}{delimiter}{number}{self._format.extension}"
        parts = [settings["topics.dir"], topic, directory, file]
        return directories.join(part for part in parts if part)

    def _rotate(self, partition: _KafkaPartition) -> None:
        for file in partition.files.values():
            self._complete_file(file)
        partition.files.clear()
        partition.records = 0

    def _complete_file(self, file: _OpenFile) -> None:
        file.writer.close()
        if file.name in self._complete:
            raise ConnectError(
                f"Two files are named {file.name}: transforms give records of several topics the "
                f"same topic and offset. Keep the topics apart."
            )
        self._complete[file.name] = file.path

    # Ending

    def close(self) -> WriteReport:
        for partition in self._partitions.values():
            self._rotate(partition)
        positions = {key: end for key, (_, end) in self._context.ranges.items()}
        starts = {key: start for key, (start, _) in self._context.ranges.items()}
        pending = PendingFiles(uuid.uuid4().hex, starts, tuple(self._complete))
        stored = PositionStore(
            self._store, self._settings["topics.dir"], self._context.connector_name
        )
        if self._complete:
            _require_uncommitted(stored.read() or {}, starts)
            stored.add_pending(pending)
        for name, path in self._complete.items():
            self._store.upload(path, name)
        self._remove_directory()
        return WriteReport(positions, pending if self._complete else None)

    def abort(self) -> None:
        self._remove_directory()

    def _remove_directory(self) -> None:
        import shutil

        shutil.rmtree(self._directory, ignore_errors=True)


def _require_uncommitted(
    committed: Mapping[TopicPartition, int], starts: Mapping[TopicPartition, int]
) -> None:
    """Raises ConnectError if another writer has replaced this one: it may have files of the same
    names, with more records."""
    for (topic, partition), start in starts.items():
        if committed.get((topic, partition), -1) > start:
            raise ConnectError(
                f"Records of {topic}-{partition} from offset {start} were written by another "
                f"writer of the connector: this write is undone."
            )


def _by_partition(batch: ConnectBatch) -> Iterator[tuple[TopicPartition, ConnectBatch]]:
    """Yields the records of each topic and partition, in their order."""
    if not len(batch):
        return
    key = pc.binary_join_element_wise(
        batch.topic.cast(pa.string()), batch.partition.cast(pa.string()), "/"
    )
    for text, rows in _groups(key, batch):
        topic, _, partition = text.rpartition("/")
        yield (topic, int(partition)), rows


def _groups(keys: pa.Array, batch: ConnectBatch) -> Iterator[tuple[str, ConnectBatch]]:
    """Yields the records of each key, in their order, by the first record of each."""
    encoded = keys.dictionary_encode()
    if len(encoded.dictionary) == 1:
        yield encoded.dictionary[0].as_py(), batch
        return
    for code, text in enumerate(encoded.dictionary.to_pylist()):
        yield text, batch.filter(pc.equal(encoded.indices, code))
