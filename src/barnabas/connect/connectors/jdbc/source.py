"""Reads tables, or a query, into topics, as Confluent's JdbcSourceConnector.

What each mode promises, if the worker writes exactly once:

- `incrementing`: each row once, if rows get visible in the order of their ids. A row that a longer
  transaction commits with a smaller id than those that were read is missed. Changes of rows are not
  seen.
- `timestamp`: each change of a row that is still there at the next poll once, if rows get visible
  within `timestamp.delay.interval.ms` of their time. Rows that share a time are always in one
  transaction.
- `timestamp+incrementing`: the same, and rows that share a time may be read by parts.
- `bulk`: all rows at each poll, from one snapshot, in one batch in memory.

Unlike Confluent's, NUMERIC without a precision has 38 digits on both sides of the point, since a
Decimal of scale 127 would not fit Arrow's types. In query mode, and for views, all fields are
optional.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.config_def import ConfigDef, ConfigValue
from barnabas.connect.connector import Partition, Position, SourceBatch, SourceConnector
from barnabas.connect.connectors.jdbc.connection_settings import (
    connection_pool,
    database_url,
    dialect_of,
)
from barnabas.connect.connectors.jdbc.database import DatabaseConnection, MissingTableError
from barnabas.connect.connectors.jdbc.dialect import (
    ColumnReader,
    SourceTypes,
    TableColumn,
    TableId,
    nearest,
)
from barnabas.connect.connectors.jdbc.source_query import (
    RowPositions,
    SourceQuery,
    TimePosition,
    column_of,
    integers_of,
    start_of,
    time_position,
)
from barnabas.connect.connectors.jdbc.source_settings import (
    BATCH_MAX_ROWS,
    BULK,
    INCREMENTING_COLUMN,
    INCREMENTING_MAPPING,
    ISOLATION_MODE,
    MODE,
    NUMERIC_MAPPING,
    NUMERIC_PRECISION_MAPPING,
    POLL_INTERVAL_MS,
    QUERY_SUFFIX,
    SCHEMA_PATTERN,
    TABLE_BLACKLIST,
    TABLE_EXCLUDE,
    TABLE_INCLUDE,
    TABLE_POLL_INTERVAL_MS,
    TABLE_TYPES,
    TABLE_WHITELIST,
    TIMESTAMP_COLUMNS,
    TIMESTAMP_DELAY_MS,
    TIMESTAMP_GRANULARITY,
    TIMESTAMP_INITIAL,
    TIMESTAMP_MAPPING,
    TOPIC_PREFIX,
    VALIDATE_NON_NULL,
    check_source_settings,
    incrementing_mapping,
    query_of,
    source_config_def,
    timestamp_mapping,
)
from barnabas.connect.data.batch import ConnectBatch, source_batch
from barnabas.connect.data.schema import Schema, SchemaField, Type
from barnabas.connect.errors import ConfigError, ConnectError, DataError

log = logging.getLogger(__name__)

PROTOCOL = "protocol"
TABLE = "table"
QUERY_PARTITION: Partition = {"query": "query"}


@dataclass(slots=True, frozen=True)
class ReadTarget:
    """A table or the query, as one process knows it."""

    table: TableId | None
    topic: str
    columns: Mapping[str, TableColumn]
    query: SourceQuery


class JdbcSource(SourceConnector):
    version = "1.0"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return source_config_def()

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> list[ConfigValue]:
        values = super().validate(config)
        check_source_settings(values)
        return values

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        for value in self.validate(config):
            for error in value.errors:
                raise ConfigError(error)
        settings = self.settings
        url = database_url(settings, config)
        self._pool = connection_pool(url, settings)
        self._dialect = dialect_of(url, settings)
        self._query = query_of(settings)
        mapping = "precision_only" if settings[NUMERIC_PRECISION_MAPPING] else "none"
        self._types = SourceTypes(
            (settings[NUMERIC_MAPPING] or mapping).lower(),
            self._dialect.timezone,
            settings[TIMESTAMP_GRANULARITY].lower(),
        )
        self.poll_interval_ms = settings[POLL_INTERVAL_MS]
        self._targets: dict[str, ReadTarget] = {}
        self._lock = threading.Lock()
        self._tables: list[TableId] | None = None
        self._tables_due_s = 0.0
        self._bulk_read_s: dict[str, float] = {}
        self._dropped: set[tuple[str, str]] = set()

    # Driver

    def start(self) -> None:
        self._pool.open()
        if self._query:
            with self._pool.connection() as connection:
                connection.query("SELECT 1")
            return
        tables = self._find_tables()
        if not tables:
            log.warning("Connector %s finds no table that its settings name.", self.name)
        for table in tables:
            self._validate_non_null(self._target(_partition(table)))

    def stop(self) -> None:
        self._pool.close()

    def partitions(self) -> Sequence[Partition]:
        if self._query:
            return [QUERY_PARTITION]
        if self._tables is None or time.monotonic() >= self._tables_due_s:
            self._tables = self._find_tables()
            self._tables_due_s = time.monotonic() + self.settings[TABLE_POLL_INTERVAL_MS] / 1000
        if self.settings[MODE] == BULK:
            return [{TABLE: table.name} for table in self._tables]
        return [_partition(table) for table in self._tables]

    def has_new(self, partition: Partition, position: Position | None) -> bool:
        if self.settings[MODE] == BULK:
            read_s = self._bulk_read_s.get(_key(partition))
            return read_s is None or time.monotonic() - read_s >= self.poll_interval_ms / 1000
        if position is None and self.settings[TIMESTAMP_INITIAL] == -1:
            return True  # the read finds out the time to begin with
        target = self._target(partition)
        with self._pool.connection() as connection:
            start, end_us, literal = self._bounds(connection, target, position)
            query = target.query.any_row(self._dialect, literal, start, end_us)
            with self._explained_errors(target):
                return bool(connection.rows(query))

    def commit(self, positions: Sequence[tuple[Partition, Position]]) -> None:
        for partition, _ in positions:
            self._bulk_read_s[_key(partition)] = time.monotonic()

    def check_offsets(self, offsets: Sequence[tuple[Partition, Position | None]]) -> bool:
        for _, position in offsets:
            for name, value in (position or {}).items():
                if not isinstance(value, int) or isinstance(value, bool):
                    raise ConnectError(
                        f"The value for the '{name}' key in the offset has to be an integer."
                    )
        return True

    def _find_tables(self) -> list[TableId]:
        settings = self.settings
        with self._pool.connection() as connection:
            tables = self._dialect.tables(
                connection, settings[TABLE_TYPES], settings[SCHEMA_PATTERN]
            )
        chosen = [table for table in tables if self._is_chosen(table)]
        for name in settings[TABLE_WHITELIST]:
            if not any(name in (table.name, str(table)) for table in tables):
                known = [str(table) for table in tables] + [table.name for table in tables]
                log.warning("There is no table '%s'.%s", name, nearest(name, known))
        names = [table.name for table in chosen]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ConnectError(
                f"Several schemas have a table {', '.join(repeated)}, whose rows would be in one "
                "topic. Choose one with schema.pattern or the lists of tables."
            )
        return chosen

    def _is_chosen(self, table: TableId) -> bool:
        settings, names = self.settings, (table.name, str(table))
        if settings[TABLE_WHITELIST]:
            return any(name in settings[TABLE_WHITELIST] for name in names)
        if settings[TABLE_BLACKLIST]:
            return not any(name in settings[TABLE_BLACKLIST] for name in names)
        if settings[TABLE_INCLUDE]:
            return _matches(settings[TABLE_INCLUDE], table) and not _matches(
                settings[TABLE_EXCLUDE], table
            )
        return True

    def _validate_non_null(self, target: ReadTarget) -> None:
        query, columns = target.query, target.columns
        if not self.settings[VALIDATE_NON_NULL] or not columns:
            return
        advice = f"Make it NOT NULL, or set {VALIDATE_NON_NULL}=false."
        for name in (query.incrementing, *query.timestamps):
            if name is not None and name.lower() not in columns:
                raise ConnectError(
                    f"Table {target.table} has no column '{name}'."
                    + nearest(name, [column.name for column in columns.values()])
                )
        if query.incrementing is not None and columns[query.incrementing.lower()].is_nullable:
            raise ConnectError(
                f"Column '{query.incrementing}' of table {target.table} may be NULL: rows without "
                f"an id would never be read. {advice}"
            )
        if query.timestamps and all(columns[name.lower()].is_nullable for name in query.timestamps):
            raise ConnectError(
                f"Columns {', '.join(query.timestamps)} of table {target.table} may all be NULL: "
                f"rows without a time would never be read. {advice}"
            )

    # Both

    def _target(self, partition: Partition) -> ReadTarget:
        key = _key(partition)
        with self._lock:
            target = self._targets.get(key)
        if target is None:
            target = self._find_target(partition)
            with self._lock:
                self._targets[key] = target
        return target

    def _find_target(self, partition: Partition) -> ReadTarget:
        settings = self.settings
        suffix = settings[QUERY_SUFFIX].strip()
        timestamps = tuple(settings[TIMESTAMP_COLUMNS])
        incrementing = settings[INCREMENTING_COLUMN] or None
        mode = settings[MODE]
        if TABLE not in partition:
            query = SourceQuery(
                self._query,
                incrementing if "incrementing" in mode else None,
                timestamps if "timestamp" in mode else (),
                suffix,
            )
            return ReadTarget(None, settings[TOPIC_PREFIX], {}, query)
        schema, name = None, partition[TABLE]
        if self._dialect.has_schemas and "." in name:
            schema, _, name = name.partition(".")
        with self._pool.connection() as connection:
            table = self._find_table(connection, TableId(schema, name))
            columns = self._dialect.columns(connection, table)
        if "timestamp" in mode and not timestamps:
            timestamps = tuple(self._mapped(timestamp_mapping, TIMESTAMP_MAPPING, table))
        if "incrementing" in mode and incrementing is None:
            incrementing = self._incrementing_column(table, columns)
        by_name = {column.name.lower(): column for column in columns}
        names = {each.lower(): each for each in (incrementing or "", *timestamps)}
        names |= {key: by_name[key].name for key in names if key in by_name}
        query = SourceQuery(
            self._dialect.select(table, columns),
            names[incrementing.lower()] if incrementing and "incrementing" in mode else None,
            tuple(names[each.lower()] for each in timestamps) if "timestamp" in mode else (),
            suffix,
        )
        return ReadTarget(table, settings[TOPIC_PREFIX] + table.name, by_name, query)

    def _find_table(self, connection: DatabaseConnection, table: TableId) -> TableId:
        if self.settings[MODE] == BULK:  # its partitions have no schema
            for each in self._dialect.tables(
                connection, self.settings[TABLE_TYPES], self.settings[SCHEMA_PATTERN]
            ):
                if each.name == table.name and self._is_chosen(each):
                    return each
        found = self._dialect.find_table(connection, table)
        if found is None:
            raise MissingTableError(f"Table {table} does not exist any more.")
        return found

    def _mapped(self, parse: Callable[[list[str]], Any], setting: str, table: TableId) -> Any:
        for pattern, mapped in parse(self.settings[setting]):
            if re.fullmatch(pattern, str(table)) or re.fullmatch(pattern, table.name):
                return mapped
        raise ConnectError(
            f"{setting} has no entry for table {table}. Add one, or do not read the table."
        )

    def _incrementing_column(self, table: TableId, columns: Sequence[TableColumn]) -> str:
        if self.settings[INCREMENTING_MAPPING]:
            mapped: str = self._mapped(incrementing_mapping, INCREMENTING_MAPPING, table)
            return mapped
        for column in columns:
            if column.is_autoincrement:
                return column.name
        raise ConnectError(
            f"Table {table} has no column that the database counts up. Set {INCREMENTING_COLUMN}."
        )

    def _bounds(
        self, connection: DatabaseConnection, target: ReadTarget, position: Position | None
    ) -> tuple[TimePosition, int, Callable[[int], str]]:
        """Returns where to begin, before which time to end, and how times are written."""
        initial_ms = self.settings[TIMESTAMP_INITIAL]
        if not target.query.timestamps:
            return start_of(position, initial_ms), 0, str
        now_us = self._dialect.current_time_us(connection)
        end_us = now_us - self.settings[TIMESTAMP_DELAY_MS] * 1000
        if initial_ms == -1:
            initial_ms = now_us // 1000
        literal = self._dialect.timestamp_literals(
            connection, target.table, target.query.timestamps
        )
        return start_of(position, initial_ms), end_us, literal

    @contextmanager
    def _explained_errors(self, target: ReadTarget) -> Iterator[None]:
        try:
            yield
        except MissingTableError:
            with self._lock:
                self._targets.clear()
                self._tables = None
            raise

    # Tasks

    def read(
        self, partition: Partition, position: Position | None, max_rows: int
    ) -> Iterator[SourceBatch]:
        target = self._target(partition)
        with self._pool.connection() as connection:
            begin = self._dialect.begin_read(self.settings[ISOLATION_MODE].upper())
            if begin is not None:
                connection.execute(begin)
            with self._explained_errors(target):
                yield from self._read(connection, target, position, max_rows)
            if begin is not None:
                connection.execute("COMMIT")

    def _read(
        self,
        connection: DatabaseConnection,
        target: ReadTarget,
        position: Position | None,
        max_rows: int,
    ) -> Iterator[SourceBatch]:
        query = target.query
        start, end_us, literal = self._bounds(connection, target, position)
        if query.is_bulk:
            sql = query.rows(self._dialect, literal, start, end_us, None)
            yield from self._read_bulk(connection, target, sql)
            return
        if position is None and self.settings[TIMESTAMP_INITIAL] == -1:
            yield self._first_position(target, start)
            return
        sql = query.rows(self._dialect, literal, start, end_us, max_rows)
        if not query.is_by_time_only:
            yield from self._read_in_order(connection, target, sql)
            return
        is_limited = not query.suffix
        found = False
        for batch in self._read_by_time(connection, target, sql, max_rows if is_limited else None):
            found = True
            yield batch
        if not found and is_limited:
            # More than max_rows rows may share the first time.
            sql = query.rows(self._dialect, literal, start, end_us, None)
            for batch in self._read_by_time(connection, target, sql, None):
                yield batch
                return

    def _read_bulk(
        self, connection: DatabaseConnection, target: ReadTarget, sql: str
    ) -> Iterator[SourceBatch]:
        with connection.stream(sql) as (schema, batches):
            rows = _Rows(self, target, schema)
            read = pa.Table.from_batches(list(batches), schema)
        parts = read.combine_chunks().to_batches()
        if len(parts) > 1:  # a column of more than 2 GiB
            raise ConnectError(
                f"{target.table or 'The query'} is too large for mode {BULK}, which reads all rows "
                "as one batch. Use another mode, or a query that selects a part."
            )
        for part in parts:
            yield SourceBatch(rows.records(part), {})

    def _first_position(self, target: ReadTarget, start: TimePosition) -> SourceBatch:
        position: dict[str, int] = time_position(start.time_us)
        nothing = pa.array([], pa.struct([]))
        return SourceBatch(source_batch(target.topic, Schema(Type.STRUCT), nothing), position)

    def _read_in_order(
        self, connection: DatabaseConnection, target: ReadTarget, sql: str
    ) -> Iterator[SourceBatch]:
        every = self.settings[BATCH_MAX_ROWS]
        with connection.stream(sql) as (schema, batches):
            rows = _Rows(self, target, schema)
            for batch in batches:
                count = batch.num_rows
                if not count:
                    continue
                after = rows.positions(batch)
                cuts = {row: after.after(row) for row in range(every - 1, count - 1, every)}
                yield SourceBatch(rows.records(batch), after.after(count - 1), cuts)

    def _read_by_time(
        self, connection: DatabaseConnection, target: ReadTarget, sql: str, limit: int | None
    ) -> Iterator[SourceBatch]:
        """Yields batches that end where the time changes.

        If the result is as long as its limit, it has perhaps not all rows with the last time, so
        they are left for the next read.
        """
        read = 0
        held: pa.RecordBatch | None = None
        with connection.stream(sql) as (schema, batches):
            rows = _Rows(self, target, schema)
            for batch in batches:
                if not batch.num_rows:
                    continue
                read += batch.num_rows
                if held is not None:
                    batch = _joined(held, batch)
                start = rows.positions(batch).start_of_last_group()
                held = batch.slice(start)
                if start:
                    yield rows.batch(batch.slice(0, start))
            if held is not None and (limit is None or read < limit):
                yield rows.batch(held)

    def on_dropped(self, target: ReadTarget, field: pa.Field) -> None:
        name = (str(target.table), field.name)
        if name not in self._dropped:
            self._dropped.add(name)
            log.warning(
                "Column %s of %s is left out: Connect has no type for %s.",
                field.name,
                target.table or "the query",
                (field.metadata or {}).get(b"POSTGRESQL:type", str(field.type).encode()).decode(),
            )

    def readers(self, target: ReadTarget, schema: pa.Schema) -> Iterator[tuple[int, ColumnReader]]:
        for index, field in enumerate(schema):
            column = target.columns.get(field.name.lower())
            reader = self._dialect.reader(field, column, self._types)
            if reader is None:
                self.on_dropped(target, field)
                continue
            if column is None or column.is_nullable:
                reader = ColumnReader(reader.name, reader.schema.as_optional(), reader.convert)
            yield index, reader

    def time_readers(
        self, target: ReadTarget, schema: pa.Schema
    ) -> Iterator[tuple[int, ColumnReader]]:
        """Yields readers that give the times of the columns that positions are made of, in
        microseconds."""
        types = SourceTypes("none", self._dialect.timezone, "micros_long")
        names = {name.lower() for name in target.query.timestamps}
        for index, field in enumerate(schema):
            if field.name.lower() in names:
                column = target.columns.get(field.name.lower())
                reader = self._dialect.reader(field, column, types)
                if reader is not None and reader.schema.type is Type.INT64:
                    yield index, reader


class _Rows:
    """Turns the batches of one result into records."""

    def __init__(self, source: JdbcSource, target: ReadTarget, schema: pa.Schema) -> None:
        self._target = target
        self._readers = list(source.readers(target, schema))
        fields = tuple(SchemaField(reader.name, reader.schema) for _, reader in self._readers)
        name = None if target.table is None else target.table.name
        self._schema = Schema(Type.STRUCT, name=name, fields=fields)
        self._times = {
            reader.name.lower(): reader.convert for _, reader in source.time_readers(target, schema)
        }

    def records(self, batch: pa.RecordBatch) -> ConnectBatch:
        arrays = [self._convert(reader, batch.column(index)) for index, reader in self._readers]
        names = [reader.name for _, reader in self._readers]
        if arrays:
            value = pa.StructArray.from_arrays(arrays, names)
        else:
            value = pa.array([{}] * batch.num_rows, pa.struct([]))
        return source_batch(self._target.topic, self._schema, value)

    def _convert(self, reader: ColumnReader, values: pa.Array) -> pa.Array:
        try:
            return reader.convert(values)
        except pa.ArrowException as error:
            raise DataError(
                f"A value in column '{reader.name}' of {self._target.table or 'the query'} does "
                f"not fit its type: {error}"
            ) from error

    def positions(self, batch: pa.RecordBatch) -> RowPositions:
        query = self._target.query
        incrementing = times = None
        if query.incrementing is not None:
            incrementing = integers_of(column_of(batch, query.incrementing), query.incrementing)
        if query.timestamps:
            columns = [self._time_us(batch, name) for name in query.timestamps]
            times = columns[0] if len(columns) == 1 else pc.coalesce(*columns)
        return RowPositions(incrementing, times)

    def _time_us(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        values = column_of(batch, name)
        convert = self._times.get(name.lower())
        if convert is None:
            raise ConnectError(f"Column '{name}' has no times.")
        return convert(values)

    def batch(self, rows: pa.RecordBatch) -> SourceBatch:
        after = self.positions(rows)
        return SourceBatch(self.records(rows), after.after(rows.num_rows - 1))


def _partition(table: TableId) -> Partition:
    return {PROTOCOL: "1", TABLE: str(table)}


def _key(partition: Partition) -> str:
    key: str = partition.get(TABLE, "")
    return key


def _matches(patterns: Sequence[str], table: TableId) -> bool:
    return any(re.fullmatch(pattern, str(table)) for pattern in patterns)


def _joined(first: pa.RecordBatch, second: pa.RecordBatch) -> pa.RecordBatch:
    (batch,) = pa.Table.from_batches([first, second]).combine_chunks().to_batches()
    return batch
