"""The database of a run: a table that rows are inserted into, and tables of sinks."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from tests.connect.postgres_server import PASSWORD, USER, running_postgres

SOURCE_TABLE = "rows"


class Database(Protocol):
    """Used by one thread at a time."""

    @property
    def settings(self) -> dict[str, str]:
        """Those of connectors."""
        ...

    def execute(self, sql: str) -> None: ...

    def rows(self, sql: str) -> list[tuple[Any, ...]]: ...


def create_source_table(database: Database) -> None:
    database.execute(f"CREATE TABLE {SOURCE_TABLE} (id INTEGER NOT NULL PRIMARY KEY, name TEXT)")


def insert_rows(database: Database, numbers: Sequence[int]) -> None:
    values = ", ".join(f"({number}, 'row {number}')" for number in numbers)
    database.execute(f"INSERT INTO {SOURCE_TABLE} VALUES {values}")


def table_numbers(database: Database, table: str) -> list[int]:
    """Returns the ids of all rows; of a table that does not exist yet, none."""
    try:
        return [number for (number,) in database.rows(f"SELECT id FROM {table}")]
    except Exception as error:
        if "no such table" in str(error) or "does not exist" in str(error):
            return []
        raise


class SqliteDatabase:
    def __init__(self, file: Path) -> None:
        self.settings = {"connection.url": f"jdbc:sqlite:{file}"}
        self._file = file
        self.execute("PRAGMA journal_mode=WAL")

    def execute(self, sql: str) -> None:
        with self._connect() as connection:
            connection.execute(sql)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self._connect() as connection:
            return list(connection.execute(sql))

    def _connect(self) -> Any:
        import sqlite3

        connection = sqlite3.connect(self._file, timeout=60, isolation_level=None)
        return contextlib.closing(connection)


class PostgresDatabase:
    def __init__(self, url: str, port: int) -> None:
        self.settings = {
            "connection.url": url,
            "connection.user": USER,
            "connection.password": PASSWORD,
        }
        name = url.rpartition("/")[2]
        self._uri = f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{port}/{name}"

    def execute(self, sql: str) -> None:
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with self._connect() as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def _connect(self) -> Any:
        from adbc_driver_postgresql import dbapi

        return contextlib.closing(dbapi.connect(self._uri, autocommit=True))


@contextlib.contextmanager
def database_of(kind: str, directory: Path) -> Iterator[Database]:
    if kind == "sqlite":
        yield SqliteDatabase(directory / "database.db")
        return
    with running_postgres() as server:
        yield PostgresDatabase(server.create_database(), server.port)
