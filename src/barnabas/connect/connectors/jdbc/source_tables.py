"""The tables that a source reads, and which of their columns decide what is new."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.connect.connector import Partition
from barnabas.connect.connectors.jdbc.database import (
    ConnectionPool,
    DatabaseConnection,
    MissingTableError,
)
from barnabas.connect.connectors.jdbc.dialect import Dialect, TableColumn, TableId, nearest
from barnabas.connect.connectors.jdbc.source_query import SourceQuery
from barnabas.connect.connectors.jdbc.source_settings import (
    BULK,
    INCREMENTING_COLUMN,
    INCREMENTING_MAPPING,
    MODE,
    QUERY_SUFFIX,
    SCHEMA_PATTERN,
    TABLE_BLACKLIST,
    TABLE_EXCLUDE,
    TABLE_INCLUDE,
    TABLE_POLL_INTERVAL_MS,
    TABLE_TYPES,
    TABLE_WHITELIST,
    TIMESTAMP_COLUMNS,
    TIMESTAMP_MAPPING,
    TOPIC_PREFIX,
    VALIDATE_NON_NULL,
    incrementing_mapping,
    query_of,
    timestamp_mapping,
)
from barnabas.connect.errors import ConnectError

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


class SourceTables:
    """Finds the tables, and keeps what is known of those that were read."""

    def __init__(
        self, name: str, settings: Mapping[str, Any], dialect: Dialect, pool: ConnectionPool
    ) -> None:
        self._name = name
        self._settings = settings
        self._dialect = dialect
        self._pool = pool
        self._targets: dict[str, tuple[ReadTarget, float]] = {}
        """With the time after which a table is looked up again: it may have new columns."""
        self._lock = threading.Lock()

    def partition(self, table: TableId) -> Partition:
        if self._settings[MODE] == BULK:
            return {TABLE: table.name}
        return {PROTOCOL: "1", TABLE: str(table)}

    def forget(self) -> None:
        """Looks tables up again, since one may have changed."""
        with self._lock:
            self._targets.clear()

    def target(self, partition: Partition) -> ReadTarget:
        """Returns what a partition stands for. Raises MissingTableError."""
        key = partition_key(partition)
        now_s = time.monotonic()
        with self._lock:
            target, until_s = self._targets.get(key, (None, 0.0))
        if target is None or now_s >= until_s:
            target = self._find_target(partition)
            until_s = now_s + self._settings[TABLE_POLL_INTERVAL_MS] / 1000
            with self._lock:
                self._targets[key] = target, until_s
        return target

    def find(self) -> list[TableId]:
        settings = self._settings
        with self._pool.connection() as connection:
            tables = self._dialect.tables(
                connection, settings[TABLE_TYPES], settings[SCHEMA_PATTERN]
            )
        chosen = [table for table in tables if self._is_chosen(table)]
        for name in settings[TABLE_WHITELIST]:
            if not any(name in (table.name, str(table)) for table in tables):
                known = [str(table) for table in tables] + [table.name for table in tables]
                log.warning(
                    "Connector %s: there is no table '%s'.%s",
                    self._name,
                    name,
                    nearest(name, known),
                )
        names = [table.name for table in chosen]
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise ConnectError(
                f"Several schemas have a table {', '.join(repeated)}, whose rows would be in one "
                "topic. Choose one with schema.pattern or the lists of tables."
            )
        return chosen

    def _is_chosen(self, table: TableId) -> bool:
        settings, names = self._settings, (table.name, str(table))
        if settings[TABLE_WHITELIST]:
            return any(name in settings[TABLE_WHITELIST] for name in names)
        if settings[TABLE_BLACKLIST]:
            return not any(name in settings[TABLE_BLACKLIST] for name in names)
        if settings[TABLE_INCLUDE]:
            return _matches(settings[TABLE_INCLUDE], table) and not _matches(
                settings[TABLE_EXCLUDE], table
            )
        return True

    def _find_target(self, partition: Partition) -> ReadTarget:
        settings = self._settings
        suffix = settings[QUERY_SUFFIX].strip()
        timestamps = tuple(settings[TIMESTAMP_COLUMNS])
        incrementing = settings[INCREMENTING_COLUMN] or None
        mode = settings[MODE]
        if TABLE not in partition:
            query = SourceQuery(
                query_of(settings),
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
        if self._settings[MODE] == BULK:  # its partitions have no schema
            for each in self._dialect.tables(
                connection, self._settings[TABLE_TYPES], self._settings[SCHEMA_PATTERN]
            ):
                if each.name == table.name and self._is_chosen(each):
                    return each
        found = self._dialect.find_table(connection, table)
        if found is None:
            raise MissingTableError(f"Table {table} does not exist any more.")
        return found

    def _mapped(self, parse: Callable[[list[str]], Any], setting: str, table: TableId) -> Any:
        for pattern, mapped in parse(self._settings[setting]):
            if re.fullmatch(pattern, str(table)) or re.fullmatch(pattern, table.name):
                return mapped
        raise ConnectError(
            f"{setting} has no entry for table {table}. Add one, or do not read the table."
        )

    def _incrementing_column(self, table: TableId, columns: Sequence[TableColumn]) -> str:
        if self._settings[INCREMENTING_MAPPING]:
            mapped: str = self._mapped(incrementing_mapping, INCREMENTING_MAPPING, table)
            return mapped
        for column in columns:
            if column.is_autoincrement:
                return column.name
        raise ConnectError(
            f"Table {table} has no column that the database counts up. Set {INCREMENTING_COLUMN}."
        )

    def validate_non_null(self, target: ReadTarget) -> None:
        query, columns = target.query, target.columns
        if not self._settings[VALIDATE_NON_NULL] or not columns:
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


def partition_key(partition: Partition) -> str:
    key: str = partition.get(TABLE, "")
    return key


def _matches(patterns: Sequence[str], table: TableId) -> bool:
    return any(re.fullmatch(pattern, str(table)) for pattern in patterns)
