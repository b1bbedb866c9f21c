"""The tables that a sink writes to: found, created, extended, and matched with rows."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from barnabas.connect.connectors.jdbc.database import (
    DatabaseConnection,
    DatabaseError,
    MissingTableError,
    RowValueError,
)
from barnabas.connect.connectors.jdbc.dialect import (
    Dialect,
    NewColumn,
    TableColumn,
    TableId,
    nearest,
)
from barnabas.connect.connectors.jdbc.sink_settings import (
    AUTO_CREATE,
    AUTO_EVOLVE,
    TABLE_NAME_FORMAT,
    TABLE_TYPES,
)
from barnabas.connect.errors import ConnectError

log = logging.getLogger(__name__)


@dataclass(slots=True, frozen=True)
class TargetTable:
    """A table as the catalog describes it."""

    table: TableId
    columns: tuple[TableColumn, ...]

    def column(self, name: str) -> TableColumn | None:
        """Returns the column of a field: of that name, or else of that name in another case."""
        for column in self.columns:
            if column.name == name:
                return column
        lower = name.lower()
        return next((each for each in self.columns if each.name.lower() == lower), None)


class TargetTables:
    """Knows the tables of topics. A process keeps them between micro-batches."""

    def __init__(self, dialect: Dialect, settings: Mapping[str, Any]) -> None:
        self._dialect = dialect
        self._format: str = settings[TABLE_NAME_FORMAT]
        self._types: Sequence[str] = settings[TABLE_TYPES]
        self._creates: bool = settings[AUTO_CREATE]
        self._evolves: bool = settings[AUTO_EVOLVE]
        self._known: dict[str, TargetTable] = {}

    def forget(self) -> None:
        """Looks tables up again, since one may have changed."""
        self._known.clear()

    def table_for(
        self,
        connection: DatabaseConnection,
        topic: str,
        columns: Sequence[NewColumn],
        *,
        is_delete: bool,
    ) -> TargetTable | None:
        """Returns the table, with all of the columns. A table that deletes are for is not created:
        the result is None then."""
        found = self._known.get(topic)
        if found is not None and all(found.column(each.name) for each in columns):
            return found
        name = self._dialect.parse_table(self._format.replace("${topic}", topic))
        found = self._find(connection, name)
        if found is None:
            if is_delete and self._creates:
                return None
            found = self._create(connection, name, columns)
        missing = [each for each in columns if found.column(each.name) is None]
        if missing:
            found = self._evolve(connection, found, missing)
        self._known[topic] = found
        return found

    def _find(self, connection: DatabaseConnection, name: TableId) -> TargetTable | None:
        table = self._dialect.find_table(connection, name)
        if table is None:
            return None
        if table not in self._dialect.tables(connection, self._types):
            raise ConnectError(
                f"Table {table} is of another type than {TABLE_TYPES} allows: "
                f"{', '.join(self._types)}."
            )
        return TargetTable(table, tuple(self._dialect.columns(connection, table)))

    def _create(
        self, connection: DatabaseConnection, name: TableId, columns: Sequence[NewColumn]
    ) -> TargetTable:
        if not self._creates:
            known = [str(each) for each in self._dialect.tables(connection, self._types)]
            known += [each.rpartition(".")[2] for each in known]
            raise MissingTableError(
                f"Table {name} is missing and auto-creation is disabled."
                f"{nearest(str(name), known)} Create it, or set {AUTO_CREATE}=true."
            )
        try:
            with connection.savepoint("create_table"):
                connection.execute(self._dialect.create_table(name, columns))
            log.info("Created table %s.", name)
        except (RowValueError, DatabaseError):  # perhaps another task has created it
            if self._dialect.find_table(connection, name) is None:
                raise
        found = self._find(connection, name)
        if found is None:
            raise MissingTableError(f"Table {name} was created and is missing.")
        return found

    def _evolve(
        self, connection: DatabaseConnection, found: TargetTable, missing: Sequence[NewColumn]
    ) -> TargetTable:
        names = ", ".join(each.name for each in missing)
        if not self._evolves:
            hints = "".join(
                nearest(each.name, [column.name for column in found.columns]) for each in missing
            )
            raise ConnectError(
                f"Table {found.table} is missing fields ({names}) and auto-evolution is disabled."
                f"{hints} Add the columns, set {AUTO_EVOLVE}=true, or leave the fields out."
            )
        for each in missing:
            if each.is_key or not (each.schema.is_optional or each.schema.has_default):
                raise ConnectError(
                    f"Cannot ALTER TABLE {found.table} to add missing field {each.name}, as the "
                    "field is not optional and does not have a default value."
                )
        try:
            with connection.savepoint("add_columns"):
                for statement in self._dialect.add_columns(found.table, missing):
                    connection.execute(statement)
            log.info("Added columns %s to table %s.", names, found.table)
        except DatabaseError:  # perhaps another task has added them
            current = self._find(connection, found.table)
            if current is None or not all(current.column(each.name) for each in missing):
                raise
        current = self._find(connection, found.table)
        if current is None:
            raise MissingTableError(f"Table {found.table} does not exist any more.")
        return current
