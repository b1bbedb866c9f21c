"""Connections to a database, and its errors as Connect's."""

from __future__ import annotations

import atexit
import logging
import re
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from barnabas.connect.connectors.jdbc.url import DatabaseKind, DatabaseUrl
from barnabas.connect.errors import ConnectError, DataError, InvalidConfigError, RetriableError

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Connection

log = logging.getLogger(__name__)

IDLE_S = 5.0
"""For how long a connection is used again without testing it."""

MAX_IDLE = 4


class DatabaseError(ConnectError):
    """A statement failed, and would fail again."""

    java_class = "java.sql.SQLException"

    def __init__(self, message: str, sqlstate: str | None = None) -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class MissingTableError(DatabaseError):
    """A statement names a table that does not exist."""


class AccessDeniedError(DatabaseError):
    """The user may not do that, or log in."""


class RowValueError(DataError):
    """A value does not fit its column, or violates a constraint."""

    java_class = "java.sql.BatchUpdateException"


class DatabaseConnection:
    """A connection whose transactions are explicit."""

    def __init__(self, url: DatabaseUrl, connection: Connection) -> None:
        self.url = url
        self._connection = connection
        self._cursor = connection.cursor()
        self.is_usable = True
        """False once the connection was lost."""
        self.used_s = time.monotonic()

    def execute(self, sql: str) -> None:
        with self._translated_errors(sql):
            self._cursor.execute(sql)

    def query(self, sql: str) -> pa.Table:
        """Returns all rows of a small result."""
        with self._translated_errors(sql):
            self._cursor.execute(sql)
            return self._cursor.fetch_arrow_table()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.query(sql).to_pylist()
        return rows

    @contextmanager
    def stream(self, sql: str) -> Iterator[tuple[pa.Schema, Iterator[pa.RecordBatch]]]:
        """Gives the rows of a result while the database sends them."""
        cursor = self._connection.cursor()
        try:
            with self._translated_errors(sql):
                cursor.execute(sql)
                reader = cursor.fetch_record_batch()
            yield reader.schema, self._batches(reader, sql)
        finally:
            with suppress(Exception):
                cursor.close()

    def _batches(self, reader: Any, sql: str) -> Iterator[pa.RecordBatch]:
        while True:
            with self._translated_errors(sql):
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    return
            yield batch

    def insert(
        self, table: str, rows: pa.Table, *, schema: str | None = None, is_temporary: bool = False
    ) -> None:
        """Appends rows to a table. Types must be those that the table's columns are sent as."""
        options: dict[str, Any] = {"temporary": True} if is_temporary else {}
        if schema is not None and not is_temporary:
            options["db_schema_name"] = schema
        with self._translated_errors(f"insert into {table}"):
            self._cursor.adbc_ingest(table, rows, mode="append", **options)

    @contextmanager
    def transaction(self, begin: str = "BEGIN") -> Iterator[None]:
        self.execute(begin)
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            self.rollback()
            raise

    @contextmanager
    def savepoint(self, name: str) -> Iterator[None]:
        """Undoes what was done inside if an error that is not the connection's leaves it."""
        self.execute(f"SAVEPOINT {name}")
        try:
            yield
        except (DataError, DatabaseError):
            self.execute(f"ROLLBACK TO SAVEPOINT {name}")
            self.execute(f"RELEASE SAVEPOINT {name}")
            raise
        self.execute(f"RELEASE SAVEPOINT {name}")

    def rollback(self) -> None:
        if self.is_usable:
            try:
                self.execute("ROLLBACK")
            except ConnectError as error:
                log.debug("Rollback failed: %s", error)
                self.is_usable = False

    def close(self) -> None:
        self.is_usable = False
        with suppress(Exception):
            self._cursor.close()
        with suppress(Exception):
            self._connection.close()

    def __del__(self) -> None:
        self.close()

    @contextmanager
    def _translated_errors(self, sql: str) -> Iterator[None]:
        from adbc_driver_manager import Error

        try:
            yield
        except (Error, pa.ArrowException, OSError) as error:
            translated = translate(error, self.url, sql)
            if isinstance(translated, RetriableError):
                self.is_usable = False
            raise translated from error


class ConnectionPool:
    """Opens connections, and keeps those that are idle.

    Connectors are used in one process at a time; the driver's threads share a pool. Only in the
    driver, where `open` is called, a connection is tried several times: a task that waited for its
    database would make the other connectors of its query wait too.
    """

    def __init__(self, url: DatabaseUrl, attempts: int, backoff_ms: int) -> None:
        self._url = url
        self._attempts = attempts
        self._backoff_ms = backoff_ms
        self._idle: list[DatabaseConnection] = []
        self._closed = threading.Event()
        self._is_in_driver = False
        _pools.add(self)

    @contextmanager
    def connection(self) -> Iterator[DatabaseConnection]:
        connection = self.acquire()
        try:
            yield connection
        except BaseException:
            connection.close()  # a transaction or result may be unfinished
            raise
        self.release(connection)

    def acquire(self) -> DatabaseConnection:
        while self._idle:
            connection = self._idle.pop()
            if time.monotonic() - connection.used_s < IDLE_S or _is_alive(connection):
                return connection
            connection.close()
        return self._open()

    def release(self, connection: DatabaseConnection) -> None:
        if connection.is_usable and len(self._idle) < MAX_IDLE and not self._closed.is_set():
            connection.used_s = time.monotonic()
            self._idle.append(connection)
        else:
            connection.close()

    def open(self) -> None:
        """Called in the driver: allows connections, also after `close`."""
        self._is_in_driver = True
        self._closed.clear()

    def close(self) -> None:
        self._closed.set()
        self.close_idle()

    def close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _open(self) -> DatabaseConnection:
        attempts = self._attempts if self._is_in_driver else 1
        for attempt in range(1, attempts + 1):
            try:
                return connect(self._url)
            except RetriableError as error:
                if attempt == attempts or self._closed.is_set():
                    raise
                log.warning("%s Attempt %d of %d.", error, attempt, attempts)
                self._closed.wait(self._backoff_ms / 1000)
        raise AssertionError("there is at least one attempt")


_pools: weakref.WeakSet[ConnectionPool] = weakref.WeakSet()


@atexit.register
def close_idle_connections() -> None:
    """Closes what all pools of the process keep open."""
    for pool in list(_pools):
        pool.close_idle()


def _is_alive(connection: DatabaseConnection) -> bool:
    try:
        connection.query("SELECT 1")
    except ConnectError:
        return False
    return True


def connect(url: DatabaseUrl) -> DatabaseConnection:
    """Raises RetriableError if the database is down, AccessDeniedError if it rejects the user."""
    try:
        if url.kind is DatabaseKind.POSTGRESQL:
            from adbc_driver_postgresql import dbapi as driver
        else:
            from adbc_driver_sqlite import dbapi as driver
    except ImportError as error:
        raise InvalidConfigError(
            f"The driver for {url.kind} is not installed: {error}. Install barnabas[connect]."
        ) from error
    try:
        connection = DatabaseConnection(url, driver.connect(url.uri, autocommit=True))
    except driver.Error as error:
        raise translate(error, url, "connect") from error
    if url.kind is DatabaseKind.SQLITE:
        connection.execute("PRAGMA busy_timeout = 10000")
    return connection


# Errors

_RETRIABLE = ("08", "53", "57", "58", "40", "55P03", "25006")
"""Classes and codes of SQLSTATE: the connection, resources, shutdown and timeouts, deadlocks, a
standby."""
_OF_VALUES = ("22", "23", "21000", "44")
_DENIED = ("28", "42501", "3D000")

_DENIED_TEXT = re.compile(
    r"authentication failed|no password supplied|role \".*\" does not exist"
    r"|database \".*\" does not exist|no pg_hba.conf entry|permission denied"
)
_SQLITE_DOWN = re.compile(r"database is locked|database table is locked|disk I/O error|is full")
_SQLITE_VALUES = re.compile(r"constraint failed|datatype mismatch|too big")


def translate(error: Exception, url: DatabaseUrl, sql: str) -> ConnectError:
    """Returns the error of Connect for one of a driver."""
    sqlstate = getattr(error, "sqlstate", None)
    message = _message(error)
    if isinstance(error, pa.ArrowException) and sqlstate is None:
        return RowValueError(f"{url.shown}: {message}")
    if url.kind is DatabaseKind.SQLITE:
        return _translate_sqlite(message, url, sql)
    if sqlstate is None:
        return _translate_connecting(str(error), url)
    text = f"{url.shown}: {message} (SQLSTATE {sqlstate})"
    if sqlstate.startswith(_OF_VALUES) or sqlstate == "08P01":  # binary data of another type
        return RowValueError(text)
    if sqlstate.startswith(_RETRIABLE):
        return RetriableError(text)
    if sqlstate.startswith(_DENIED):
        return AccessDeniedError(text, sqlstate)
    if sqlstate == "42P01":
        return MissingTableError(text, sqlstate)
    return DatabaseError(text, sqlstate)


def _translate_connecting(text: str, url: DatabaseUrl) -> ConnectError:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    reason = " ".join(lines).rpartition("[libpq] ")[2]
    if _DENIED_TEXT.search(text):
        return AccessDeniedError(
            f"{url.shown}: {reason} Check connection.url, connection.user and connection.password."
        )
    if "[libpq] Failed to connect" in text or "server closed" in text or "no connection" in text:
        return RetriableError(f"{url.shown} cannot be reached: {reason}")
    if "connection" in text and "lost" in text:
        return RetriableError(f"{url.shown}: {reason}")
    return DatabaseError(f"{url.shown}: {reason}")


def _translate_sqlite(message: str, url: DatabaseUrl, sql: str) -> ConnectError:
    text = f"{url.shown}: {message}"
    if _SQLITE_DOWN.search(message):
        return RetriableError(text)
    if _SQLITE_VALUES.search(message):
        return RowValueError(text)
    if "no such table" in message:
        return MissingTableError(text)
    if "readonly database" in message or "failed to open" in message:
        return AccessDeniedError(f"{text} Check connection.url and the rights of the file.")
    return DatabaseError(text)


def _message(error: Exception) -> str:
    """Returns what the database says, without what the driver adds."""
    details: Mapping[bytes, bytes] = {
        _bytes(name): _bytes(value) for name, value in getattr(error, "details", None) or ()
    }
    primary = details.get(b"PG_DIAG_MESSAGE_PRIMARY")
    if primary is None:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        return re.sub(r"^[A-Z_]+: (?:\[\w+\] )?", "", first)
    more = details.get(b"PG_DIAG_MESSAGE_DETAIL")
    text = primary.decode(errors="replace")
    return text if more is None else f"{text}: {more.decode(errors='replace')}"


def _bytes(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else value
