"""The databases that tests run on: PostgreSQL and SQLite, empty for each test."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.connect.postgres_server import PASSWORD, USER, PostgresServer

from barnabas.connect.connectors.jdbc.url import parse_url


@dataclass
class Database:
    kind: str
    url: str

    @property
    def settings(self) -> dict[str, str]:
        settings = {"name": "c", "connection.url": self.url, "connection.attempts": "1"}
        if self.kind == "postgresql":
            settings |= {"connection.user": USER, "connection.password": PASSWORD}
        return settings

    @property
    def schema(self) -> str:
        """What qualified names begin with."""
        return "public." if self.kind == "postgresql" else ""

    def execute(self, *statements: str) -> None:
        with closing(self._connect()) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        with closing(self._connect()) as connection, connection.cursor() as cursor:
            cursor.execute(sql)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    def _connect(self) -> Any:
        url = parse_url(self.url, USER, PASSWORD)
        if self.kind == "postgresql":
            from adbc_driver_postgresql import dbapi
        else:
            from adbc_driver_sqlite import dbapi
        return dbapi.connect(url.uri, autocommit=True)


def postgresql(server: PostgresServer) -> Database:
    return Database("postgresql", server.create_database())


def sqlite(folder: Path) -> Database:
    return Database("sqlite", f"jdbc:sqlite:{folder / 'test.db'}")


@pytest.fixture(params=["postgresql", "sqlite"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        yield sqlite(tmp_path)
    else:
        yield postgresql(request.getfixturevalue("postgres_server"))
