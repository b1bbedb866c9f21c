"""The sink writes each row once, after crashes and beside writers of an older run."""

from typing import Any

import pytest
from tests.connect.connectors.jdbc.databases import Database, postgresql
from tests.connect.connectors.jdbc.test_sink import VALUE, rows, sink
from tests.connect.connectors.writing import context, records, write, write_new
from tests.connect.postgres_server import PASSWORD, PostgresServer

from barnabas.connect import ConnectError, SinkWriter
from barnabas.connect.connectors.jdbc import JdbcSink
from barnabas.connect.connectors.jdbc.database import DatabaseConnection
from barnabas.connect.connectors.jdbc.positions import POSITIONS_TABLE, WriterFencedError

T0 = ("t", 0)


@pytest.fixture
def target(database: Database) -> Database:
    """A database with a table without constraints: a row that is written twice is there twice."""
    database.execute("CREATE TABLE t (id INTEGER, name VARCHAR(9))")
    return database


def batch(start: int, end: int, partition: int = 0) -> Any:
    names = rows(*((number, "x") for number in range(start, end)))
    return records(names, VALUE, offset=start, partition=partition)


def ids(database: Database) -> list[int]:
    return [row[0] for row in database.rows("SELECT id FROM t ORDER BY id")]


def opened(connector: JdbcSink, start: int, end: int) -> SinkWriter:
    """Returns a writer that has got its records."""
    writer = connector.open(context({T0: (start, end)}))
    write_new(writer, batch(start, end))
    return writer


def test_positions_are_committed_with_the_rows(target: Database) -> None:
    connector = sink(target)
    assert connector.committed_positions([T0, ("t", 1)]) == {}
    write(connector, batch(0, 3), batch(10, 12, partition=1))
    assert connector.committed_positions([T0, ("t", 1), ("t", 2)]) == {T0: 3, ("t", 1): 12}
    write(connector, batch(3, 5))
    assert connector.committed_positions([T0]) == {T0: 5}
    assert sink(target).committed_positions([T0]) == {T0: 5}
    assert target.rows(f"SELECT DISTINCT connector FROM {POSITIONS_TABLE}") == [("c",)]


def test_a_writer_that_crashes_before_its_commit_leaves_nothing(target: Database) -> None:
    connector = sink(target, batch_size="1")
    opened(connector, 0, 3).abort()
    assert ids(target) == []
    assert connector.committed_positions([T0]) == {}
    write(connector, batch(0, 3))
    assert ids(target) == [0, 1, 2]


def test_records_are_not_written_again_after_a_commit_that_was_not_reported(
    target: Database,
) -> None:
    connector = sink(target)
    opened(connector, 0, 3).close()
    report = write(connector, batch(0, 3), attempt=1)
    assert report.positions == {T0: 3}
    assert ids(target) == [0, 1, 2]
    write(sink(target), batch(0, 5))
    assert ids(target) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_commit_whose_response_is_lost_is_not_repeated(
    target: Database, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    connector = sink(target)
    execute = DatabaseConnection.execute

    def lose_response(self: DatabaseConnection, sql: str) -> None:
        if sql == "COMMIT":
            if is_committed:
                execute(self, sql)
            raise ConnectError("connection lost")
        execute(self, sql)

    writer = opened(connector, 0, 3)
    monkeypatch.setattr(DatabaseConnection, "execute", lose_response)
    with pytest.raises(ConnectError, match="connection lost"):
        writer.close()
    monkeypatch.undo()
    writer.abort()
    assert len(ids(target)) == (3 if is_committed else 0)
    write(connector, batch(0, 3), attempt=1)
    assert ids(target) == [0, 1, 2]


def test_of_two_writers_of_the_same_records_one_is_fenced(postgres_server: PostgresServer) -> None:
    target = postgresql(postgres_server)
    target.execute("CREATE TABLE t (id INTEGER, name VARCHAR(9))")
    connector = sink(target)
    for start in (0, 3):  # without and with a stored position
        first, second = (opened(connector, start, start + 3) for _ in range(2))
        first.close()
        with pytest.raises(WriterFencedError, match="Records of t-0 were written by another"):
            second.close()
        second.abort()
    assert ids(target) == [0, 1, 2, 3, 4, 5]


def test_a_writer_is_fenced_when_the_connector_starts_elsewhere(target: Database) -> None:
    old = sink(target)
    write(old, batch(0, 3))
    zombie = old.open(context({T0: (3, 6)}))
    new = sink(target)
    zombie.write(batch(3, 6))
    with pytest.raises(WriterFencedError):
        zombie.close()
    zombie.abort()
    assert new.committed_positions([T0]) == {T0: 3}
    write(new, batch(3, 6))
    assert ids(target) == list(range(6))


def test_a_zombie_that_comes_late_is_fenced(target: Database) -> None:
    old = sink(target)
    write(old, batch(0, 3))
    write(sink(target), batch(3, 10))
    with pytest.raises(WriterFencedError):
        write(old, batch(3, 6))
    assert ids(target) == list(range(10))


def test_records_that_do_not_exist_any_more_are_skipped(target: Database) -> None:
    connector = sink(target)
    write(connector, batch(0, 3))
    write(connector, batch(100, 102))
    assert connector.committed_positions([T0]) == {T0: 102}
    assert ids(target) == [0, 1, 2, 100, 101]


def test_a_range_without_rows_is_committed(target: Database) -> None:
    connector = sink(target)
    report = connector.open(context({T0: (5, 8)})).close()
    assert report.positions == {T0: 8}
    assert connector.committed_positions([T0]) == {T0: 8}


def test_an_operator_changes_the_positions(target: Database) -> None:
    connector = sink(target)
    write(connector, batch(0, 3), batch(0, 3, partition=1))
    zombie = opened(connector, 3, 6) if "postgres" in target.kind else None
    assert connector.check_offsets({T0: 1, ("t", 1): None})
    assert connector.committed_positions([T0, ("t", 1)]) == {T0: 1}
    if zombie is not None:
        with pytest.raises(WriterFencedError):
            zombie.close()
        zombie.abort()
    write(connector, batch(1, 3))
    assert ids(target) == [0, 0, 1, 1, 1, 2, 2, 2]


def test_connectors_have_positions_of_their_own(target: Database) -> None:
    write(sink(target), batch(0, 3))
    assert sink(target, name="it's").committed_positions([T0]) == {}
    write(sink(target, name="it's"), batch(0, 3))
    assert ids(target) == [0, 0, 1, 1, 2, 2]


def test_positions_are_not_kept_if_that_is_disabled(target: Database) -> None:
    connector = sink(target, barnabas_exactly_once="false")
    write(connector, batch(0, 3))
    assert connector.committed_positions([T0]) is None
    write(connector, batch(0, 3))
    assert ids(target) == [0, 0, 1, 1, 2, 2]
    with pytest.raises(Exception, match=POSITIONS_TABLE):
        target.rows(f"SELECT * FROM {POSITIONS_TABLE}")


def test_a_user_that_may_not_create_tables_writes_at_least_once(
    postgres_server: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    target = postgresql(postgres_server)
    user = target.url.rpartition("/")[2].replace("test", "writer")
    target.execute(
        "CREATE TABLE t (id INTEGER, name VARCHAR(9))",
        "REVOKE CREATE ON SCHEMA public FROM PUBLIC",
        f"CREATE ROLE {user} LOGIN PASSWORD '{PASSWORD}'",
        f"GRANT INSERT, SELECT ON t TO {user}",
    )
    connector = sink(target, connection_user=user)
    assert "writes at least once" in caplog.text
    assert connector.committed_positions([T0]) is None
    write(connector, batch(0, 3))
    task = JdbcSink()
    task.configure(connector.originals)
    write(task, batch(3, 4))
    assert ids(target) == [0, 1, 2, 3]
    with pytest.raises(ConnectError, match="needs a table barnabas_connect_positions"):
        sink(target, connection_user=user, barnabas_exactly_once="true")


def test_a_task_finds_out_that_positions_are_kept(target: Database) -> None:
    connector = sink(target)
    write(connector, batch(0, 3))
    task = JdbcSink()
    task.configure(connector.originals)
    write(task, batch(0, 4))
    assert ids(target) == [0, 1, 2, 3]
