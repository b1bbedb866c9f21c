"""JdbcSource on PostgreSQL and SQLite: modes, positions, tables, errors."""

import datetime
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.connect.connectors.jdbc.databases import Database, postgresql, sqlite
from tests.connect.connectors.writing import read, values
from tests.connect.postgres_server import PostgresServer

from barnabas.connect import ConnectError, InvalidConfigError, RetriableError
from barnabas.connect.connectors.jdbc import JdbcSource
from barnabas.connect.connectors.jdbc.database import AccessDeniedError


def source(database: Database, **settings: str) -> JdbcSource:
    connector = JdbcSource()
    given = {name.replace("_", "."): value for name, value in settings.items()}
    connector.configure({**database.settings, "topic.prefix": "db-", **given})
    return connector


def read_all(
    connector: JdbcSource, position: Any = None, max_rows: int = 1000
) -> tuple[list[Any], Any]:
    """Reads the only partition until there is nothing new; returns ids and the position."""
    (partition,) = connector.partitions()
    ids: list[Any] = []
    while batches := read(connector, partition, position, max_rows):
        ids += [row["id"] for row in values(batches)]
        position = batches[-1].position
    return ids, position


# Incrementing


def test_new_rows_are_those_with_a_greater_id(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)",
        "INSERT INTO t VALUES (1, 'a'), (2, NULL)",
    )
    connector = source(database, mode="incrementing", incrementing_column_name="id")
    connector.start()
    (partition,) = connector.partitions()
    assert partition == {"protocol": "1", "table": f"{database.schema}t"}
    assert connector.has_new(partition, None)
    (batch,) = read(connector, partition)
    assert batch.position == {"incrementing": 2}
    assert batch.records.topic.to_pylist() == ["db-t", "db-t"]
    assert batch.records.key_schema is None
    assert batch.records.value.to_pylist() == [{"id": 1, "name": "a"}, {"id": 2, "name": None}]
    schema = batch.records.value_schema
    assert schema is not None
    assert schema.name == "t"
    assert [(field.name, field.schema.is_optional) for field in schema.fields] == [
        ("id", False),
        ("name", True),
    ]
    assert not connector.has_new(partition, batch.position)
    assert read(connector, partition, batch.position) == []
    database.execute("INSERT INTO t VALUES (3, 'c')")
    assert connector.has_new(partition, batch.position)
    assert read_all(connector, batch.position) == ([3], {"incrementing": 3})


def test_reads_end_at_max_rows_and_resume(database: Database) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    rows = ",".join(f"({number})" for number in range(100))
    database.execute(f"INSERT INTO t VALUES {rows}")
    connector = source(
        database, mode="incrementing", incrementing_column_name="ID", batch_max_rows="3"
    )
    (partition,) = connector.partitions()
    (batch,) = read(connector, partition, None, 7)
    assert len(batch.records) == 7
    assert batch.positions == {2: {"incrementing": 2}, 5: {"incrementing": 5}}
    assert read_all(connector, None, 7)[0] == list(range(100))


def test_the_column_that_the_database_counts_up_is_the_default(database: Database) -> None:
    kind = "SERIAL PRIMARY KEY" if database.kind == "postgresql" else "INTEGER PRIMARY KEY"
    database.execute(f"CREATE TABLE t (name TEXT, id {kind})", "INSERT INTO t(name) VALUES ('a')")
    assert read_all(source(database, mode="incrementing")) == ([1], {"incrementing": 1})
    database.execute("CREATE TABLE u (name TEXT)")
    connector = source(database, mode="incrementing", table_whitelist="u")
    with pytest.raises(ConnectError, match="has no column that the database counts up"):
        connector.start()


def test_an_unfinished_read_leaves_the_connector_usable(database: Database) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    connector = source(
        database,
        mode="incrementing",
        incrementing_column_name="id",
        transaction_isolation_mode="REPEATABLE_READ",
    )
    (partition,) = connector.partitions()
    batches = connector.read(partition, None, 100)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    assert read_all(connector)[0] == [1, 2]


# Timestamps


def timestamp_table(database: Database, *, as_text: bool = False) -> None:
    kind = "TIMESTAMP NOT NULL" if not as_text else "TEXT NOT NULL"
    database.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY, ts {kind})")


def insert(database: Database, *rows: tuple[int, str]) -> None:
    database.execute(f"INSERT INTO t VALUES {','.join(map(str, rows))}")


def test_rows_are_read_in_the_order_of_their_times(database: Database) -> None:
    timestamp_table(database)
    insert(database, (1, "2024-01-01 00:00:02"), (2, "2024-01-01 00:00:01.123"))
    connector = source(database, mode="timestamp", timestamp_column_name="ts")
    connector.start()
    ids, position = read_all(connector)
    assert ids == [2, 1]
    assert position == {"timestamp": 1704067202000, "timestamp_nanos": 0}
    (partition,) = connector.partitions()
    assert not connector.has_new(partition, position)
    insert(database, (3, "2024-01-01 00:00:03.456"))
    assert connector.has_new(partition, position)
    ids, position = read_all(connector, position)
    assert (ids, position) == ([3], {"timestamp": 1704067203456, "timestamp_nanos": 456000000})
    assert read_all(connector, position)[0] == []


def test_microseconds_are_kept_in_positions(postgres_server: PostgresServer) -> None:
    database = postgresql(postgres_server)
    timestamp_table(database)
    insert(database, (1, "2024-01-01 00:00:00.000001"), (2, "2024-01-01 00:00:00.000002"))
    connector = source(database, mode="timestamp", timestamp_column_name="ts")
    (partition,) = connector.partitions()
    position = {"timestamp": 1704067200000, "timestamp_nanos": 1000}
    assert values(read(connector, partition, position)) == [
        {"id": 2, "ts": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)}
    ]


@pytest.mark.parametrize("max_rows", [1, 2, 3, 4, 7, 100])
def test_rows_that_share_a_time_are_read_together(database: Database, max_rows: int) -> None:
    timestamp_table(database)
    times = [1, 1, 1, 2, 3, 3, 3, 3, 4, 5, 5]
    insert(database, *((row, f"2024-01-01 00:00:0{time}") for row, time in enumerate(times)))
    connector = source(database, mode="timestamp", timestamp_column_name="ts")
    (partition,) = connector.partitions()
    position, ids = None, []
    while batches := read(connector, partition, position, max_rows):
        for batch in batches:
            last = times[ids[-1]] if ids else 0
            new = [row["id"] for row in batch.records.value.to_pylist()]
            assert times[new[0]] > last
            ids += new
        position = batches[-1].position
    assert sorted(ids) == list(range(len(times)))


@pytest.mark.parametrize("max_rows", [1, 2, 5, 100])
def test_rows_that_share_a_time_are_ordered_by_id(database: Database, max_rows: int) -> None:
    timestamp_table(database)
    insert(database, *((row, f"2024-01-01 00:00:0{row // 4}") for row in range(12)))
    connector = source(
        database,
        mode="timestamp+incrementing",
        timestamp_column_name="ts",
        incrementing_column_name="id",
    )
    connector.start()
    ids, position = read_all(connector, None, max_rows)
    assert ids == list(range(12))
    assert position == {"timestamp": 1704067202000, "timestamp_nanos": 0, "incrementing": 11}
    update = "UPDATE t SET ts = '2024-01-01 00:00:05' WHERE id = 3"
    database.execute(update)
    assert read_all(connector, position)[0] == [3]


def test_the_first_time_that_is_not_null_is_used(database: Database) -> None:
    database.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, changed TIMESTAMP, created TIMESTAMP NOT NULL)",
        "INSERT INTO t VALUES (1, NULL, '2024-01-01 00:00:01'), "
        "(2, '2024-01-01 00:00:09', '2024-01-01 00:00:00'), (3, NULL, '2024-01-01 00:00:05')",
    )
    connector = source(database, mode="timestamp", timestamp_column_name="changed, created")
    connector.start()
    assert read_all(connector, None, 2) == (
        [1, 3, 2],
        {"timestamp": 1704067209000, "timestamp_nanos": 0},
    )


def test_rows_younger_than_the_delay_are_not_read(database: Database) -> None:
    timestamp_table(database)
    now = datetime.datetime.now(datetime.UTC)
    old, new = (now - datetime.timedelta(seconds=each) for each in (7200, 60))
    insert(database, *((row, f"{at:%Y-%m-%d %H:%M:%S}") for row, at in ((1, old), (2, new))))
    settings = {"mode": "timestamp", "timestamp_column_name": "ts"}
    assert read_all(source(database, **settings))[0] == [1, 2]
    delayed = source(database, timestamp_delay_interval_ms="3600000", **settings)
    assert read_all(delayed)[0] == [1]
    (partition,) = delayed.partitions()
    assert not delayed.has_new(partition, {"timestamp": int(old.timestamp() * 1000)})


def test_reading_begins_at_the_initial_time(database: Database) -> None:
    timestamp_table(database)
    insert(database, (1, "2024-01-01 00:00:01"), (2, "2024-01-01 00:00:02"))
    settings = {"mode": "timestamp", "timestamp_column_name": "ts"}
    assert read_all(source(database, timestamp_initial="1704067201000", **settings))[0] == [2]
    connector = source(database, timestamp_initial="-1", **settings)
    (partition,) = connector.partitions()
    assert connector.has_new(partition, None)
    (batch,) = read(connector, partition, None)
    assert len(batch.records) == 0
    assert abs(batch.position["timestamp"] / 1000 - time.time()) < 60
    assert not connector.has_new(partition, batch.position)


def test_times_are_in_the_time_zone_of_the_database(database: Database) -> None:
    timestamp_table(database)
    insert(database, (1, "2024-07-01 12:00:00"))
    connector = source(
        database, mode="timestamp", timestamp_column_name="ts", db_timezone="Europe/Berlin"
    )
    (partition,) = connector.partitions()
    (batch,) = read(connector, partition)
    noon = datetime.datetime(2024, 7, 1, 10, tzinfo=datetime.UTC)
    assert batch.records.value.to_pylist() == [{"id": 1, "ts": noon}]
    assert batch.position == {"timestamp": int(noon.timestamp() * 1000), "timestamp_nanos": 0}
    assert read(connector, partition, batch.position) == []


def test_time_zones_of_columns_are_used(postgres_server: PostgresServer) -> None:
    database = postgresql(postgres_server)
    database.execute(
        "CREATE TABLE t (id INT, ts TIMESTAMPTZ NOT NULL)",
        "INSERT INTO t VALUES (1, '2024-07-01 12:00:00+05:30')",
    )
    connector = source(
        database, mode="timestamp", timestamp_column_name="ts", db_timezone="Europe/Berlin"
    )
    _, position = read_all(connector)
    assert position == {"timestamp": 1719815400000, "timestamp_nanos": 0}
    assert read_all(connector, position)[0] == []


def test_sqlite_times_may_be_milliseconds(tmp_path: Path) -> None:
    database = sqlite(tmp_path)
    timestamp_table(database)
    database.execute("INSERT INTO t VALUES (1, 1704067201000), (2, 1704067202500)")
    connector = source(database, mode="timestamp", timestamp_column_name="ts")
    ids, position = read_all(connector)
    assert ids == [1, 2]
    assert position == {"timestamp": 1704067202500, "timestamp_nanos": 500000000}
    assert read_all(connector, position)[0] == []


# Bulk and queries


def test_bulk_reads_all_rows_at_each_poll(database: Database) -> None:
    database.execute("CREATE TABLE t (id INTEGER)", "INSERT INTO t VALUES (1), (2), (NULL)")
    connector = source(database, mode="bulk", poll_interval_ms="3600000")
    connector.start()
    (partition,) = connector.partitions()
    assert partition == {"table": "t"}
    assert connector.has_new(partition, None)
    (batch,) = read(connector, partition, None, 2)
    assert [row["id"] for row in batch.records.value.to_pylist()] == [1, 2, None]
    assert batch.position == {}
    connector.commit([(partition, batch.position)])
    assert not connector.has_new(partition, batch.position)
    hurried = source(database, mode="bulk", poll_interval_ms="1")
    hurried.commit([(partition, {})])
    time.sleep(0.002)
    assert hurried.has_new(partition, {})
    assert len(values(read(hurried, partition, {}))) == 3


def test_an_empty_table_gives_nothing(database: Database) -> None:
    database.execute("CREATE TABLE t (id INTEGER)")
    connector = source(database, mode="bulk")
    assert values(read(connector, connector.partitions()[0])) == []


def test_a_query_is_read_into_the_topic_of_the_prefix(database: Database) -> None:
    database.execute(
        "CREATE TABLE a (id INTEGER PRIMARY KEY, b INTEGER)",
        "CREATE TABLE b (id INTEGER PRIMARY KEY, name TEXT)",
        "INSERT INTO a VALUES (1, 10), (2, 20)",
        "INSERT INTO b VALUES (10, 'x'), (20, 'y')",
    )
    connector = source(
        database,
        mode="incrementing",
        incrementing_column_name="id",
        query="SELECT a.id AS id, b.name FROM a JOIN b ON a.b = b.id AND a.id > 0 ",
    )
    if database.kind == "postgresql":  # the name is ambiguous in WHERE
        connector = source(
            database,
            mode="incrementing",
            incrementing_column_name="id",
            query="SELECT * FROM (SELECT a.id, b.name FROM a JOIN b ON a.b = b.id) AS joined;",
        )
    else:
        connector = source(
            database,
            mode="incrementing",
            incrementing_column_name="id",
            query="SELECT * FROM (SELECT a.id, b.name FROM a JOIN b ON a.b = b.id)",
        )
    connector.start()
    (partition,) = connector.partitions()
    assert partition == {"query": "query"}
    assert connector.has_new(partition, {"incrementing": 1})
    (batch,) = read(connector, partition, {"incrementing": 1})
    assert batch.records.value.to_pylist() == [{"id": 2, "name": "y"}]
    assert batch.records.topic.to_pylist() == ["db-"]
    assert not connector.has_new(partition, batch.position)


def test_the_suffix_is_added_to_statements(database: Database) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1),(2),(3)")
    connector = source(
        database, mode="incrementing", incrementing_column_name="id", query_suffix=" LIMIT 2 "
    )
    (partition,) = connector.partitions()
    assert [row["id"] for row in values(read(connector, partition))] == [1, 2]
    assert read_all(connector)[0] == [1, 2, 3]


# Tables


def test_tables_are_chosen_by_lists_and_patterns(database: Database) -> None:
    for name in ("orders", "orders_old", "users", "log"):
        database.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)")
    database.execute("CREATE VIEW seen AS SELECT * FROM users")

    def names(**settings: str) -> list[str]:
        connector = source(database, mode="bulk", **settings)
        return [each["table"] for each in connector.partitions()]

    assert names() == ["log", "orders", "orders_old", "users"]
    assert names(table_whitelist="users, orders") == ["orders", "users"]
    assert names(table_whitelist=f"{database.schema}users") == ["users"]
    assert names(table_blacklist="log") == ["orders", "orders_old", "users"]
    assert names(table_include_list=".*orders.*") == ["orders", "orders_old"]
    assert names(table_include_list=".*orders.*", table_exclude_list=".*_old") == ["orders"]
    assert names(table_types="VIEW") == ["seen"]
    assert names(table_types="TABLE,VIEW", table_blacklist="log,orders,orders_old") == [
        "seen",
        "users",
    ]


def test_columns_are_chosen_for_each_table(database: Database) -> None:
    database.execute(
        "CREATE TABLE a (id INTEGER NOT NULL)",
        "CREATE TABLE b (number INTEGER NOT NULL, at TIMESTAMP NOT NULL, later TIMESTAMP)",
        "INSERT INTO a VALUES (1)",
        "INSERT INTO b VALUES (2, '2024-01-01 00:00:00', NULL)",
    )
    connector = source(
        database,
        mode="incrementing",
        incrementing_column_mapping=".*a:id,.*b:number",
        table_include_list=".*[ab]",
    )
    connector.start()
    positions = [read(connector, each)[-1].position for each in connector.partitions()]
    assert positions == [{"incrementing": 1}, {"incrementing": 2}]
    by_time = source(
        database,
        mode="timestamp",
        timestamp_columns_mapping=".*b:[later|at]",
        table_include_list=".*b",
    )
    by_time.start()
    (batch,) = read(by_time, by_time.partitions()[0])
    assert batch.position["timestamp"] == 1704067200000
    unmapped = source(
        database, mode="timestamp", timestamp_columns_mapping=".*b:[at]", table_include_list=".*"
    )
    with pytest.raises(ConnectError, match="has no entry for table"):
        unmapped.start()


def test_schemas_are_chosen_by_a_pattern(postgres_server: PostgresServer) -> None:
    database = postgresql(postgres_server)
    database.execute(
        "CREATE SCHEMA one",
        "CREATE SCHEMA two",
        "CREATE TABLE one.t (id INTEGER PRIMARY KEY)",
        "CREATE TABLE two.t (id INTEGER PRIMARY KEY)",
        "INSERT INTO two.t VALUES (7)",
    )
    with pytest.raises(ConnectError, match="Several schemas have a table t"):
        source(database, mode="incrementing").partitions()
    connector = source(
        database,
        mode="incrementing",
        incrementing_column_name="id",
        schema_pattern="tw%",
    )
    assert connector.partitions() == [{"protocol": "1", "table": "two.t"}]
    assert read_all(connector)[0] == [7]


def test_columns_that_may_be_null_are_an_error(database: Database) -> None:
    database.execute("CREATE TABLE t (id INTEGER, ts TIMESTAMP)")
    for settings, message in (
        (
            {"mode": "incrementing", "incrementing_column_name": "id"},
            "'id' of table .*t may be NULL",
        ),
        ({"mode": "timestamp", "timestamp_column_name": "ts"}, "ts of table .*t may all be NULL"),
        (
            {"mode": "timestamp", "timestamp_column_name": "tsx"},
            "has no column 'tsx'. Did you mean 'ts'",
        ),
    ):
        with pytest.raises(ConnectError, match=message):
            source(database, **settings).start()
    source(
        database, mode="incrementing", incrementing_column_name="id", validate_non_null="false"
    ).start()


def test_a_table_that_was_dropped_is_found_again(database: Database) -> None:
    create = "CREATE TABLE t (id INTEGER PRIMARY KEY)"
    database.execute(create)
    connector = source(database, mode="incrementing", incrementing_column_name="id")
    (partition,) = connector.partitions()
    read(connector, partition)
    database.execute("DROP TABLE t")
    with pytest.raises(ConnectError, match=r'relation "public.t" does not exist|no such table'):
        read(connector, partition)
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, more TEXT)")
    database.execute("INSERT INTO t VALUES (1, 'x')")
    assert values(read(connector, partition)) == [{"id": 1, "more": "x"}]


# Errors


def test_a_wrong_password_is_an_error(postgres_server: PostgresServer) -> None:
    database = postgresql(postgres_server)
    connector = JdbcSource()
    connector.configure({**database.settings, "mode": "bulk", "connection.password": "wrong"})
    with pytest.raises(AccessDeniedError, match=r"password authentication failed.*Check") as error:
        connector.start()
    assert "wrong" not in str(error.value)
    missing = JdbcSource()
    missing.configure({**database.settings, "mode": "bulk", "connection.url": database.url + "x"})
    with pytest.raises(AccessDeniedError, match="does not exist"):
        missing.start()


def test_a_database_that_is_down_is_tried_again() -> None:
    connector = JdbcSource()
    connector.configure(
        {
            "name": "c",
            "mode": "bulk",
            "connection.url": "jdbc:postgresql://127.0.0.1:1/db",
            "connection.attempts": "2",
            "connection.backoff.ms": "1",
        }
    )
    with pytest.raises(RetriableError, match=r"127.0.0.1:1/db cannot be reached: .*refused"):
        connector.start()


def test_a_task_does_not_wait_for_a_database_that_is_down(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connector = JdbcSource()
    url = "jdbc:postgresql://127.0.0.1:1/db"
    connector.configure({"name": "c", "mode": "bulk", "connection.url": url, "query": "SELECT 1"})
    monkeypatch.setattr(threading.Event, "wait", lambda *_: pytest.fail("it waits"))
    with pytest.raises(RetriableError, match="cannot be reached"):
        read(connector, {"query": "query"})


def test_a_server_that_restarts_is_a_retriable_error(postgres_server: PostgresServer) -> None:
    database = postgresql(postgres_server)
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    connector = source(database, mode="incrementing", incrementing_column_name="id")
    (partition,) = connector.partitions()
    read(connector, partition)
    database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    with pytest.raises(RetriableError):
        read(connector, partition)
    assert values(read(connector, partition)) == [{"id": 1}]


@pytest.mark.parametrize(
    ("settings", "setting", "message"),
    [
        ({"mode": ""}, "mode", "Mode must be set"),
        ({"mode": "incremental"}, "mode", "String must be one of: bulk"),
        ({"connection.url": ""}, "connection.url", "is empty"),
        ({"connection.url": "jdbc:mysql://h/d"}, "connection.url", "There is no driver"),
        ({"db.timezone": "Mars"}, "db.timezone", "Invalid time zone"),
        ({"mode": "timestamp"}, "timestamp.column.name", "Columns have to be given"),
        ({"query": "DELETE FROM t"}, "query", "Only SELECT"),
        ({"query": "SELECT 1", "table.whitelist": "t"}, "query", "cannot be combined"),
        (
            {"query": "SELECT 1", "mode": "incrementing"},
            "incrementing.column.name",
            "A column has to be given",
        ),
        ({"table.exclude.list": "a"}, "table.exclude.list", "needs table.include.list"),
        ({"table.include.list": "["}, "table.include.list", "is no regular expression"),
        (
            {"table.whitelist": "a", "incrementing.column.mapping": ".*:id"},
            "incrementing.column.mapping",
            "cannot be mixed with",
        ),
        ({"incrementing.column.mapping": "id"}, "incrementing.column.mapping", "is not REGEX"),
        ({"timestamp.columns.mapping": "t:ts"}, "timestamp.columns.mapping", "is not REGEX"),
        ({"topic.prefix": "a b"}, "topic.prefix", "A topic's name"),
        ({"transaction.isolation.mode": "NONE"}, "transaction.isolation.mode", "one of"),
    ],
)
def test_settings_that_do_not_fit_are_errors(
    settings: dict[str, str], setting: str, message: str
) -> None:
    config = {"connection.url": "jdbc:sqlite:/tmp/x.db", "mode": "bulk", **settings}
    errors = {value.name: value.errors for value in JdbcSource.validate(config) if value.errors}
    assert message in errors[setting][0]
    with pytest.raises(InvalidConfigError):
        JdbcSource().configure(config)
