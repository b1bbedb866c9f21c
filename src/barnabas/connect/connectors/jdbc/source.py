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
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa

from barnabas.connect.config_def import ConfigDef, ConfigValueInfo
from barnabas.connect.connector import Partition, Position, SourceBatch, SourceConnector
from barnabas.connect.connectors.jdbc.connection_settings import (
    connection_pool,
    database_url,
    dialect_of,
)
from barnabas.connect.connectors.jdbc.database import DatabaseConnection, MissingTableError
from barnabas.connect.connectors.jdbc.dialect import (
    SourceTypes,
)
from barnabas.connect.connectors.jdbc.source_query import (
    TimePosition,
    start_of,
    time_position,
)
from barnabas.connect.connectors.jdbc.source_rows import SourceRows
from barnabas.connect.connectors.jdbc.source_settings import (
    BATCH_MAX_ROWS,
    BULK,
    ISOLATION_MODE,
    MODE,
    NUMERIC_MAPPING,
    NUMERIC_PRECISION_MAPPING,
    POLL_INTERVAL_MS,
    TABLE_POLL_INTERVAL_MS,
    TIMESTAMP_DELAY_MS,
    TIMESTAMP_GRANULARITY,
    TIMESTAMP_INITIAL,
    check_source_settings,
    query_of,
    source_config_def,
)
from barnabas.connect.connectors.jdbc.source_tables import (
    QUERY_PARTITION,
    ReadTarget,
    SourceTables,
    partition_key,
)
from barnabas.connect.data.batch import source_batch
from barnabas.connect.data.schema import ConnectSchema, Type
from barnabas.connect.errors import ConnectError, InvalidConfigError

log = logging.getLogger(__name__)


class JdbcSource(SourceConnector):
    version = "1.0"

    @classmethod
    def config_def(cls) -> ConfigDef:
        return source_config_def()

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> list[ConfigValueInfo]:
        values = super().validate(config)
        check_source_settings(values)
        return values

    def configure(self, config: Mapping[str, str]) -> None:
        super().configure(config)
        for value in self.validate(config):
            for error in value.errors:
                raise InvalidConfigError(error)
        settings = self.settings
        url = database_url(settings, config)
        self._pool = connection_pool(url, settings)
        self._dialect = dialect_of(url, settings)
        self._has_query = bool(query_of(settings))
        mapping = "precision_only" if settings[NUMERIC_PRECISION_MAPPING] else "none"
        types = SourceTypes(
            (settings[NUMERIC_MAPPING] or mapping).lower(),
            self._dialect.timezone,
            settings[TIMESTAMP_GRANULARITY].lower(),
        )
        self._rows = SourceRows(self._dialect, types)
        self._tables = SourceTables(self.name, settings, self._dialect, self._pool)
        self.poll_interval_ms = settings[POLL_INTERVAL_MS]
        self._partitions: list[Partition] | None = None
        self._partitions_due_s = 0.0
        self._bulk_read_s: dict[str, float] = {}

    # Driver

    def start(self) -> None:
        self._pool.open()
        if self._has_query:
            with self._pool.connection() as connection:
                connection.query("SELECT 1")
            return
        tables = self._tables.find()
        if not tables:
            log.warning("Connector %s finds no table that its settings name.", self.name)
        for table in tables:
            self._tables.validate_non_null(self._tables.target(self._tables.partition(table)))

    def stop(self) -> None:
        self._pool.close()

    def partitions(self) -> Sequence[Partition]:
        if self._has_query:
            return [QUERY_PARTITION]
        if self._partitions is None or time.monotonic() >= self._partitions_due_s:
            self._partitions = list(map(self._tables.partition, self._tables.find()))
            interval_s = self.settings[TABLE_POLL_INTERVAL_MS] / 1000
            self._partitions_due_s = time.monotonic() + interval_s
        return self._partitions

    def has_new(self, partition: Partition, position: Position | None) -> bool:
        if self.settings[MODE] == BULK:
            read_s = self._bulk_read_s.get(partition_key(partition))
            return read_s is None or time.monotonic() - read_s >= self.poll_interval_ms / 1000
        if position is None and self.settings[TIMESTAMP_INITIAL] == -1:
            return True  # the read finds out the time to begin with
        target = self._tables.target(partition)
        with self._pool.connection() as connection:
            start, end_us, literal = self._bounds(connection, target, position)
            query = target.query.any_row(self._dialect, literal, start, end_us)
            with self._lookup_after_errors():
                return bool(connection.rows(query))

    def commit(self, positions: Sequence[tuple[Partition, Position]]) -> None:
        for partition, _ in positions:
            self._bulk_read_s[partition_key(partition)] = time.monotonic()

    def check_offsets(self, offsets: Sequence[tuple[Partition, Position | None]]) -> bool:
        for _, position in offsets:
            for name, value in (position or {}).items():
                if not isinstance(value, int) or isinstance(value, bool):
                    raise ConnectError(
                        f"The value for the '{name}' key in the offset has to be an integer."
                    )
        return True

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
    def _lookup_after_errors(self) -> Iterator[None]:
        try:
            yield
        except MissingTableError:
            self._tables.forget()
            self._partitions = None
            raise

    # Tasks

    def read(
        self, partition: Partition, position: Position | None, max_rows: int
    ) -> Iterator[SourceBatch]:
        target = self._tables.target(partition)
        with self._pool.connection() as connection:
            begin = self._dialect.begin_read(self.settings[ISOLATION_MODE].upper())
            if begin is not None:
                connection.execute(begin)
            with self._lookup_after_errors():
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
            rows = self._rows.result(target, schema)
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
        return SourceBatch(
            source_batch(target.topic, ConnectSchema(Type.STRUCT), nothing), position
        )

    def _read_in_order(
        self, connection: DatabaseConnection, target: ReadTarget, sql: str
    ) -> Iterator[SourceBatch]:
        every = self.settings[BATCH_MAX_ROWS]
        with connection.stream(sql) as (schema, batches):
            rows = self._rows.result(target, schema)
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
            rows = self._rows.result(target, schema)
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


def _joined(first: pa.RecordBatch, second: pa.RecordBatch) -> pa.RecordBatch:
    (batch,) = pa.Table.from_batches([first, second]).combine_chunks().to_batches()
    return batch
