"""Writes the records of one task in one transaction.

Rows of a table are collected, and then written by few statements: inserts by COPY, everything else
by COPY into a temporary table and one statement that applies it. The rows that cannot be written
are found by halving, each half in a savepoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.connector import SinkWriter, TopicPartition, WriteContext, WriteReport
from barnabas.connect.connectors.jdbc.database import (
    ConnectionPool,
    DatabaseConnection,
    RowValueError,
)
from barnabas.connect.connectors.jdbc.dialect import Dialect, NewColumn, TableColumn
from barnabas.connect.connectors.jdbc.positions import (
    PositionTable,
    StoredPosition,
    first_to_write,
)
from barnabas.connect.connectors.jdbc.sink_rows import (
    SEQUENCE,
    RowMapping,
    RowSet,
    describe_record,
)
from barnabas.connect.connectors.jdbc.sink_settings import INSERT, UPDATE
from barnabas.connect.connectors.jdbc.sink_table import TargetTable, TargetTables
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.errors import ConnectError, RetriableError
from barnabas.connect.reporter import ErrorReporter

WRITTEN = "barnabas_connect_written"
DELETED = "barnabas_connect_deleted"
"""Temporary tables."""
STAGED_SEQUENCE = "barnabas_connect_sequence"

MAX_BUFFERED_BYTES = 64 << 20


@dataclass(slots=True, frozen=True)
class WriterSettings:
    """What writers of one connector share."""

    dialect: Dialect
    insert_mode: str
    batch_size: int
    max_retries: int
    mapping: RowMapping
    tables: TargetTables
    positions: PositionTable | None
    """None if the framework keeps the offsets."""


class JdbcWriter(SinkWriter):
    def __init__(
        self, pool: ConnectionPool, settings: WriterSettings, context: WriteContext
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._context = context
        self._ranges = context.ranges
        self._reporter = context.reporter
        self._buffers: dict[str, RowBuffer] = {}
        self._sequence = 0
        self._has_begun = False
        self._is_open = True
        self._stored: dict[TopicPartition, StoredPosition] = {}
        self._first = {key: start for key, (start, _) in context.ranges.items()}
        """The first offset of each partition whose row is not written yet."""
        with self._limited_retries():
            self._connection = pool.acquire()
            try:
                if settings.positions is not None:
                    self._stored = settings.positions.read(self._connection, context.ranges)
                    self._first = first_to_write(context.ranges, self._stored)
            except BaseException:
                self._connection.close()
                raise

    def first_offsets(self) -> Mapping[TopicPartition, int]:
        return self._first

    def write(self, batch: ConnectBatch) -> None:
        with self._limited_retries():
            for topic in pc.unique(batch.topic).to_pylist():
                of_topic = batch
                if pc.any(pc.not_equal(batch.topic, topic)).as_py():
                    of_topic = batch.filter(pc.equal(batch.topic, topic))
                self._collect(topic, of_topic)

    @contextmanager
    def _limited_retries(self) -> Iterator[None]:
        """Raises an error that cannot be retried when `max.retries` are used up."""
        try:
            yield
        except RetriableError as error:
            if self._context.attempt < self._settings.max_retries:
                raise
            raise ConnectError(f"{error} Tried {self._context.attempt + 1} times.") from error

    def _collect(self, topic: str, batch: ConnectBatch) -> None:
        mapping = self._settings.mapping
        written, deleted = mapping.split(batch, self._sequence, self._reporter)
        buffer = self._buffers.setdefault(topic, RowBuffer())
        if not buffer.takes(written, deleted):
            self._flush(topic, buffer)
            buffer = self._buffers[topic] = RowBuffer()
        buffer.add(batch, self._sequence, written, deleted)
        self._sequence += len(batch)
        if buffer.rows >= self._settings.batch_size or buffer.size_bytes >= MAX_BUFFERED_BYTES:
            self._flush(topic, buffer)
            self._buffers[topic] = RowBuffer()

    def _flush(self, topic: str, buffer: RowBuffer) -> None:
        if not buffer.rows:
            return
        self._begin()
        settings = self._settings
        try:
            RowFlush(self._connection, settings, topic, self._reporter).write(buffer)
        except ConnectError:
            settings.tables.forget()
            raise

    def _begin(self) -> None:
        if not self._has_begun:
            self._connection.execute(self._settings.dialect.begin_write)
            self._has_begun = True

    def close(self) -> WriteReport:
        with self._limited_retries():
            for topic, buffer in self._buffers.items():
                self._flush(topic, buffer)
            self._commit()
        self._is_open = False
        self._pool.release(self._connection)
        return WriteReport({key: end for key, (_, end) in self._ranges.items()})

    def _commit(self) -> None:
        positions = self._settings.positions
        if positions is not None:
            ends = {key: end for key, (_, end) in self._ranges.items() if self._first[key] < end}
            if ends:
                self._begin()
                positions.advance(self._connection, self._stored, ends)
        if self._has_begun:
            self._connection.execute("COMMIT")

    def abort(self) -> None:
        self._settings.tables.forget()
        if self._is_open:
            self._is_open = False
            if self._has_begun:
                self._connection.rollback()
            self._pool.release(self._connection)


@dataclass(slots=True)
class RowBuffer:
    """Rows of one table that are not written yet."""

    records: list[tuple[int, ConnectBatch]] = field(default_factory=list)
    """The records, with the sequence of the first of each batch."""
    written: list[RowSet] = field(default_factory=list)
    deleted: list[RowSet] = field(default_factory=list)
    rows: int = 0
    size_bytes: int = 0

    def takes(self, written: RowSet | None, deleted: RowSet | None) -> bool:
        """Returns whether rows have the same columns as those that are in the buffer."""
        for sets, new in ((self.written, written), (self.deleted, deleted)):
            if sets and new is not None and sets[0].columns != new.columns:
                return False
        written = written or (self.written[0] if self.written else None)
        deleted = deleted or (self.deleted[0] if self.deleted else None)
        if written is None or deleted is None:
            return True
        return {each for each in written.columns if each.is_key} == set(deleted.columns)

    def add(
        self, batch: ConnectBatch, sequence: int, written: RowSet | None, deleted: RowSet | None
    ) -> None:
        self.records.append((sequence, batch))
        for sets, new in ((self.written, written), (self.deleted, deleted)):
            if new is not None:
                sets.append(new)
                self.rows += new.rows.num_rows
                self.size_bytes += new.rows.nbytes

    def record(self, sequence: int) -> ConnectBatch:
        start, batch = next(entry for entry in reversed(self.records) if entry[0] <= sequence)
        return batch.slice(sequence - start, 1)


@dataclass(slots=True, frozen=True)
class RowChanges:
    """Rows to write and to delete, or a part of them."""

    written: pa.Table | None
    deleted: pa.Table | None

    def sequences(self) -> list[int]:
        found = [table[SEQUENCE] for table in (self.written, self.deleted) if table is not None]
        return sorted(number for each in found for number in each.to_pylist())

    def part(self, is_in: Callable[[pa.ChunkedArray], pa.ChunkedArray]) -> RowChanges:
        parts = (
            None if table is None else table.filter(is_in(table[SEQUENCE]))
            for table in (self.written, self.deleted)
        )
        return RowChanges(*(part if part is not None and part.num_rows else None for part in parts))


class RowFlush:
    """Writes the rows of a buffer to their table."""

    def __init__(
        self,
        connection: DatabaseConnection,
        settings: WriterSettings,
        topic: str,
        reporter: ErrorReporter,
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._dialect = settings.dialect
        self._topic = topic
        self._reporter = reporter

    def write(self, buffer: RowBuffer) -> None:
        columns = (buffer.written or buffer.deleted)[0].columns
        target = self._settings.tables.table_for(
            self._connection, self._topic, columns, is_delete=not buffer.written
        )
        if target is None:
            return
        changes = RowChanges(*(_joined(sets) for sets in (buffer.written, buffer.deleted)))
        self._apply(buffer, _Matched(target, columns), changes)

    def _apply(self, buffer: RowBuffer, matched: _Matched, changes: RowChanges) -> None:
        try:
            with self._connection.savepoint("rows"):
                self._execute(matched, changes)
            return
        except (RowValueError, pa.ArrowInvalid) as error:
            failure = error
        sequences = changes.sequences()
        if len(sequences) == 1:
            record = buffer.record(sequences[0])
            message = f"Record at ({describe_record(record)}) does not fit table "
            self._reporter.report(
                record, RowValueError(f"{message}{matched.target.table}: {failure}")
            )
            return
        middle = sequences[len(sequences) // 2]
        self._apply(buffer, matched, changes.part(lambda each: pc.less(each, middle)))
        self._apply(buffer, matched, changes.part(lambda each: pc.greater_equal(each, middle)))

    def _execute(self, matched: _Matched, changes: RowChanges) -> None:
        mode = self._settings.insert_mode
        table = matched.target.table
        written, deleted = changes.written, changes.deleted
        if deleted is not None:
            last = deleted.group_by(matched.keys).aggregate([(SEQUENCE, "max")])
            last = last.rename_columns([*last.column_names[:-1], SEQUENCE])
            select = self._stage(DELETED, matched, last, matched.keys)
            self._connection.execute(
                self._dialect.delete(table, matched.target_names(matched.keys), select)
            )
        if written is None:
            return
        names = [column.name for column in matched.columns]
        if mode == INSERT and deleted is None and self._copy(matched, written, names):
            return
        if mode != INSERT:
            written = _last_of_each_key(written, matched.keys)
        select = self._stage(WRITTEN, matched, written, names)
        if deleted is not None:
            select += self._not_deleted_later(matched)
        columns = matched.target_names(names)
        keys = matched.target_names(matched.keys)
        if mode == INSERT:
            statement = self._dialect.insert(table, columns, select)
        elif mode == UPDATE:
            others = [name for name in columns if name not in keys]
            if not others:
                return
            statement = self._dialect.update(table, others, keys, select)
        else:
            statement = self._dialect.upsert(table, columns, keys, select)
        self._connection.execute(statement)

    def _copy(self, matched: _Matched, rows: pa.Table, names: Sequence[str]) -> bool:
        """Writes rows as they are, and returns False if the database has to convert them."""
        fitted = [
            self._dialect.fitted(_values(rows, name), matched.by_name[name]) for name in names
        ]
        if not all(is_direct for _, is_direct in fitted):
            return False
        table = pa.table([values for values, _ in fitted], names=matched.target_names(names))
        self._connection.insert(
            matched.target.table.name, table, schema=matched.target.table.schema
        )
        return True

    def _stage(self, name: str, matched: _Matched, rows: pa.Table, columns: Sequence[str]) -> str:
        """Copies rows to a temporary table, and returns the SELECT for the values of columns."""
        arrays, definitions, expressions = [], [], []
        for each in columns:
            column = matched.by_name[each]
            values, is_direct = self._dialect.fitted(_values(rows, each), column)
            arrays.append(values)
            definitions.append((column.name, self._dialect.staging_type(values.type)))
            quoted = '"' + column.name.replace('"', '""') + '"'
            expression = quoted if is_direct else self._dialect.converted(quoted, column)
            expressions.append(f"{expression} AS {self._dialect.quote(column.name)}")
        arrays.append(_values(rows, SEQUENCE))
        definitions.append((STAGED_SEQUENCE, self._dialect.staging_type(pa.int64())))
        for statement in self._dialect.create_staging(name, definitions):
            self._connection.execute(statement)
        table = pa.table(arrays, names=[column for column, _ in definitions])
        self._connection.insert(name, table, is_temporary=True)
        return f"SELECT {', '.join(expressions)} FROM {name} AS w WHERE true"

    def _not_deleted_later(self, matched: _Matched) -> str:
        keys = ('"' + name.replace('"', '""') + '"' for name in matched.target_names(matched.keys))
        same = " AND ".join(f"d.{key} = w.{key}" for key in keys)
        return (
            f" AND NOT EXISTS (SELECT 1 FROM {DELETED} AS d WHERE {same} "
            f"AND d.{STAGED_SEQUENCE} > w.{STAGED_SEQUENCE})"
        )


class _Matched:
    """The fields of rows, and the columns of the table for them."""

    def __init__(self, target: TargetTable, columns: Sequence[NewColumn]) -> None:
        self.target = target
        self.columns = columns
        self.keys = [column.name for column in columns if column.is_key]
        self.by_name: Mapping[str, TableColumn] = {
            each.name: column for each in columns if (column := target.column(each.name))
        }

    def target_names(self, names: Sequence[str]) -> list[str]:
        return [self.by_name[name].name for name in names]


def _joined(sets: Sequence[RowSet]) -> pa.Table | None:
    return pa.concat_tables([each.rows for each in sets]) if sets else None


def _values(rows: pa.Table, name: str) -> pa.Array:
    column = rows[name]
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _last_of_each_key(rows: pa.Table, keys: Sequence[str]) -> pa.Table:
    last = rows.group_by(list(keys)).aggregate([(SEQUENCE, "max")])
    if last.num_rows == rows.num_rows:
        return rows
    return rows.filter(pc.is_in(rows[SEQUENCE], last[f"{SEQUENCE}_max"].combine_chunks()))
