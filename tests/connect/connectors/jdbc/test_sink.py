"""JdbcSink on PostgreSQL and SQLite: modes, keys, deletes, tables, errors."""

from typing import Any

import pyarrow as pa
import pytest
from tests.connect.connectors.jdbc.databases import Database, postgresql
from tests.connect.connectors.writing import Reporter, context, records, write
from tests.connect.postgres_server import PostgresServer

from barnabas.connect import (
    ConnectError,
    ConnectSchema,
    DataError,
    InvalidConfigError,
    RetriableError,
    SchemaField,
    Type,
)
from barnabas.connect.connectors.jdbc import JdbcSink
from barnabas.connect.connectors.jdbc.database import MissingTableError

INT = ConnectSchema(Type.INT32)
STRING = ConnectSchema(Type.STRING)
VALUE = ConnectSchema(
    Type.STRUCT,
    fields=(SchemaField("id", INT), SchemaField("name", STRING.as_optional())),
)
KEY = ConnectSchema(Type.STRUCT, fields=(SchemaField("id", INT),))


def sink(database: Database, **settings: str) -> JdbcSink:
    connector = JdbcSink()
    given = {name.replace("_", "."): value for name, value in settings.items()}
    given = {name.replace("record.", "record_"): value for name, value in given.items()}
    connector.configure({**database.settings, "retry.backoff.ms": "0", **given})
    connector.start()
    return connector


def rows(*entries: tuple[int, str | None]) -> list[dict[str, Any]]:
    return [{"id": number, "name": name} for number, name in entries]


def keyed(*entries: tuple[int, str | None], offset: int = 0) -> Any:
    """Returns records with keys; those with the name "-" are tombstones."""
    values = [None if name == "-" else {"id": number, "name": name} for number, name in entries]
    keys = [{"id": number} for number, _ in entries]
    return records(values, VALUE, keys, KEY, offset=offset)


def table(database: Database, key: str = "PRIMARY KEY") -> None:
    database.execute(f"CREATE TABLE t (id INTEGER {key}, name VARCHAR(20))")


# Modes


def test_insert_adds_rows(database: Database) -> None:
    table(database, "")
    connector = sink(database)
    report = write(connector, records(rows((1, "a"), (2, None)), VALUE))
    assert report.positions == {("t", 0): 2}
    write(connector, records(rows((1, "a")), VALUE, offset=2))
    assert database.rows("SELECT * FROM t ORDER BY id, name") == [(1, "a"), (1, "a"), (2, None)]


def test_upsert_replaces_rows_and_the_last_of_a_key_wins(database: Database) -> None:
    table(database)
    connector = sink(database, insert_mode="upsert", pk_mode="record_value", pk_fields="id")
    write(connector, records(rows((1, "a"), (2, "b"), (1, "c")), VALUE))
    assert database.rows("SELECT * FROM t ORDER BY id") == [(1, "c"), (2, "b")]
    write(connector, records(rows((2, "d"), (3, "e")), VALUE, offset=3))
    assert database.rows("SELECT * FROM t ORDER BY id") == [(1, "c"), (2, "d"), (3, "e")]


def test_upsert_of_keys_alone(database: Database) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    connector = sink(database, insert_mode="upsert", pk_mode="record_key", pk_fields="id")
    for offset in (0, 2):
        batch = records([{"id": 1}, {"id": 2}], KEY, [1, 2], INT, offset=offset)
        write(connector, batch)
    assert database.rows("SELECT * FROM t ORDER BY id") == [(1,), (2,)]


def test_update_changes_only_rows_that_exist(database: Database) -> None:
    table(database)
    database.execute("INSERT INTO t VALUES (1, 'old'), (2, 'old')")
    connector = sink(database, insert_mode="update", pk_mode="record_key")
    write(connector, keyed((1, "a"), (3, "b"), (1, "new")))
    assert database.rows("SELECT * FROM t ORDER BY id") == [(1, "new"), (2, "old")]


@pytest.mark.parametrize("mode", ["insert", "upsert"])
def test_deletes_and_writes_of_a_key_keep_their_order(database: Database, mode: str) -> None:
    table(database)
    database.execute("INSERT INTO t VALUES (1, 'old'), (2, 'old'), (3, 'old'), (4, 'old')")
    connector = sink(database, insert_mode=mode, pk_mode="record_key", delete_enabled="true")
    write(
        connector,
        keyed((1, "-"), (2, "-"), (2, "new"), (5, "a"), (5, "-"), (6, "a"), (6, "-"), (6, "b")),
        keyed((3, "-"), (7, "c"), offset=8),
    )
    assert database.rows("SELECT * FROM t ORDER BY id") == [
        (2, "new"),
        (4, "old"),
        (6, "b"),
        (7, "c"),
    ]
    write(connector, keyed((4, "-"), (9, "-"), offset=10))
    assert database.rows("SELECT id FROM t ORDER BY id") == [(2,), (6,), (7,)]


def test_a_delete_removes_columns_that_a_later_upsert_does_not_write(database: Database) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(9), more VARCHAR(9))")
    database.execute("INSERT INTO t VALUES (1, 'old', 'old')")
    connector = sink(database, insert_mode="upsert", pk_mode="record_key", delete_enabled="true")
    write(connector, keyed((1, "-"), (1, "new")))
    assert database.rows("SELECT * FROM t") == [(1, "new", None)]


def test_tombstones_in_runs_of_their_own_are_written_together(database: Database) -> None:
    """Converters give values without a schema in batches of their own."""
    table(database)
    connector = sink(database, insert_mode="upsert", pk_mode="record_key", delete_enabled="true")
    batches = []
    for offset in range(0, 20, 2):
        key = [{"id": offset}]
        batches.append(keyed((offset, "a"), offset=offset))
        batches.append(records(pa.nulls(1), None, key, KEY, offset=offset + 1))
    write(connector, *batches, keyed((99, "b"), offset=20))
    assert database.rows("SELECT * FROM t") == [(99, "b")]


# Keys


def test_the_key_may_be_primitive(database: Database) -> None:
    table(database)
    value = ConnectSchema(Type.STRUCT, fields=(SchemaField("name", STRING),))
    connector = sink(database, insert_mode="upsert", pk_mode="record_key", pk_fields="id")
    write(connector, records([{"name": "a"}], value, [7], INT))
    assert database.rows("SELECT * FROM t") == [(7, "a")]
    unnamed = sink(database, pk_mode="record_key")
    with pytest.raises(DataError, match="has to name exactly one column"):
        write(unnamed, records([{"name": "a"}], value, [7], INT, offset=1))


def test_the_key_may_be_the_coordinates_of_the_record(database: Database) -> None:
    connector = sink(
        database, insert_mode="upsert", pk_mode="kafka", auto_create="true", fields_whitelist="name"
    )
    write(connector, records(rows((1, "a"), (2, "b")), VALUE, partition=3, offset=40))
    assert database.rows("SELECT * FROM t ORDER BY __connect_offset") == [
        ("t", 3, 40, "a"),
        ("t", 3, 41, "b"),
    ]


def test_keys_that_are_missing_are_errors(database: Database) -> None:
    table(database)
    connector = sink(database, pk_mode="record_key")
    with pytest.raises(DataError, match=r"requires records with a non-null key.*offset=0"):
        write(connector, records(rows((1, "a")), VALUE))
    with pytest.raises(DataError, match="non-null key schema"):
        write(connector, records(rows((1, "a")), VALUE, [{"id": 1}], None))
    named = sink(database, pk_mode="record_value", pk_fields="number")
    with pytest.raises(DataError, match="names number, which the value does not have"):
        write(named, records(rows((1, "a")), VALUE))


def test_a_null_value_is_an_error_without_deletes(database: Database) -> None:
    table(database)
    connector = sink(database, pk_mode="record_key")
    with pytest.raises(DataError, match=r"delete.enabled=false and pk.mode=record_key"):
        write(connector, keyed((1, "-")))


def test_values_without_schema_are_errors(database: Database) -> None:
    table(database)
    with pytest.raises(DataError, match=r"Struct or a String.*value without schema"):
        write(sink(database), records(rows((1, "a")), None))


def test_a_string_is_one_column(database: Database) -> None:
    connector = sink(database, auto_create="true")
    write(connector, records(["a", "b"], STRING))
    assert database.rows("SELECT record_value FROM t ORDER BY 1") == [("a",), ("b",)]


# Tables


def test_a_missing_table_is_an_error_with_the_nearest_name(database: Database) -> None:
    database.execute("CREATE TABLE orders (id INTEGER)")
    with pytest.raises(
        MissingTableError, match=r"auto-creation is disabled. Did you mean 'orders'"
    ):
        write(sink(database), records(rows((1, "a")), VALUE, topic="order"))


def test_a_missing_column_is_an_error_with_the_nearest_name(database: Database) -> None:
    database.execute("CREATE TABLE t (id INTEGER, names VARCHAR(9))")
    with pytest.raises(ConnectError, match=r"missing fields \(name\).*Did you mean 'names'"):
        write(sink(database), records(rows((1, "a")), VALUE))


def test_columns_match_in_any_case(database: Database) -> None:
    database.execute('CREATE TABLE t ("ID" INTEGER PRIMARY KEY, "Name" VARCHAR(9))')
    connector = sink(database, insert_mode="upsert", pk_mode="record_key", delete_enabled="true")
    write(connector, keyed((1, "a"), (2, "b"), (2, "-")))
    assert database.rows("SELECT * FROM t") == [(1, "a")]


def test_tables_are_created_and_extended(database: Database) -> None:
    connector = sink(
        database,
        auto_create="true",
        auto_evolve="true",
        insert_mode="upsert",
        pk_mode="record_key",
        table_name_format="k_${topic}",
    )
    write(connector, keyed((1, "a")))
    more = ConnectSchema(
        Type.STRUCT,
        fields=(
            *VALUE.fields,
            SchemaField("size", ConnectSchema(Type.INT64, is_optional=True)),
            SchemaField("kind", ConnectSchema(Type.STRING, default="it's")),
        ),
    )
    value = {"id": 2, "name": "b", "size": 5, "kind": "x"}
    write(connector, records([value], more, [{"id": 2}], KEY, offset=1))
    assert database.rows("SELECT * FROM k_t ORDER BY id") == [
        (1, "a", None, "it's"),
        (2, "b", 5, "x"),
    ]
    write(connector, keyed((1, "again"), offset=2))
    assert database.rows("SELECT name FROM k_t WHERE id = 1") == [("again",)]
    required = ConnectSchema(Type.STRUCT, fields=(*VALUE.fields, SchemaField("must", INT)))
    value = {"id": 3, "name": "c", "must": 1}
    with pytest.raises(ConnectError, match=r"Cannot ALTER TABLE .*missing field must"):
        write(connector, records([value], required, [{"id": 3}], KEY, offset=3))


def test_topics_are_written_to_their_tables(database: Database) -> None:
    connector = sink(database, auto_create="true")
    one, two = (records(rows((n, "x")), VALUE, topic=f"t{n}") for n in (1, 2))
    write(connector, one, two)
    assert database.rows("SELECT id FROM t1") == [(1,)]
    assert database.rows("SELECT id FROM t2") == [(2,)]


def test_a_table_of_another_type_is_an_error(database: Database) -> None:
    database.execute("CREATE TABLE a (id INTEGER, name TEXT)", "CREATE VIEW t AS SELECT * FROM a")
    with pytest.raises(ConnectError, match=r"Table .*t is of another type than table.types allows"):
        write(sink(database), records(rows((1, "a")), VALUE))


def test_a_table_in_a_schema_is_found(postgres_server: PostgresServer) -> None:
    database = postgresql(postgres_server)
    database.execute("CREATE SCHEMA s", "CREATE TABLE s.t (id INTEGER, name TEXT)")
    write(sink(database, table_name_format="s.${topic}"), records(rows((1, "a")), VALUE))
    assert database.rows("SELECT * FROM s.t") == [(1, "a")]
    with pytest.raises(InvalidConfigError, match="is no name of a table"):
        write(sink(database), records(rows((1, "a")), VALUE, topic="a.b.c.d"))


def test_names_without_quotes_match_in_any_case(database: Database) -> None:
    table(database)
    connector = sink(
        database, quote_sql_identifiers="never", insert_mode="upsert", pk_mode="record_key"
    )
    batch = keyed((1, "a"))
    write(connector, batch)
    write(
        sink(database, quote_sql_identifiers="never", table_name_format="T"),
        keyed((2, "b"), offset=1),
    )
    assert database.rows("SELECT * FROM t ORDER BY id") == [(1, "a"), (2, "b")]


# Errors


def test_rows_that_do_not_fit_are_reported_and_the_others_written(
    database: Database,
) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    reporter = Reporter(tolerates_errors=True)
    names = [None if number in (13, 500, 999) else "x" for number in range(1000)]
    for offset, settings in ((0, {}), (1000, {"insert_mode": "upsert", "pk_mode": "record_key"})):
        connector = sink(database, **settings)
        batch = keyed(*((offset + row, name) for row, name in enumerate(names)), offset=offset)
        write(connector, batch, reporter=reporter)
    assert [offsets for offsets, _ in reporter.reported] == [
        [13], [500], [999], [1013], [1500], [1999],
    ]  # fmt: skip
    assert "offset=13) does not fit table" in reporter.reported[0][1]
    assert "name" in reporter.reported[0][1]
    assert database.rows("SELECT count(*) FROM t") == [(1994,)]


def test_a_row_that_does_not_fit_is_an_error_and_nothing_is_written(database: Database) -> None:
    database.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
    connector = sink(database)
    with pytest.raises(DataError, match="offset=7"):
        write(connector, keyed(*((row, None if row == 7 else "x") for row in range(20))))
    assert database.rows("SELECT count(*) FROM t") == [(0,)]
    write(connector, keyed((1, "x")))
    assert database.rows("SELECT count(*) FROM t") == [(1,)]


def test_a_repeated_key_in_insert_mode_is_an_error(database: Database) -> None:
    table(database)
    reporter = Reporter(tolerates_errors=True)
    write(sink(database), records(rows((1, "a"), (2, "b"), (1, "c")), VALUE), reporter=reporter)
    assert [offsets for offsets, _ in reporter.reported] == [[2]]
    assert database.rows("SELECT * FROM t ORDER BY id") == [(1, "a"), (2, "b")]


def test_values_that_are_too_large_are_reported(postgres_server: PostgresServer) -> None:
    database = postgresql(postgres_server)
    database.execute("CREATE TABLE t (id SMALLINT, name VARCHAR(3))")
    reporter = Reporter(tolerates_errors=True)
    batch = records(rows((1, "abc"), (70_000, "a"), (2, "abcd"), (3, None)), VALUE)
    write(sink(database), batch, reporter=reporter)
    assert [offsets for offsets, _ in reporter.reported] == [[1], [2]]
    assert database.rows("SELECT * FROM t ORDER BY id") == [(1, "abc"), (3, None)]


def test_a_database_that_is_down_is_retried_up_to_max_retries(
    postgres_server: PostgresServer,
) -> None:
    database = postgresql(postgres_server)
    table(database)
    connector = sink(database, max_retries="2")
    writer = connector.open(context({("t", 0): (0, 2)}))
    writer.write(keyed((1, "a")))
    database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    with pytest.raises(RetriableError):
        writer.close()
    writer.abort()
    write(connector, keyed((1, "a"), (2, "b")), attempt=1)
    assert database.rows("SELECT count(*) FROM t") == [(2,)]
    writer = connector.open(context({("t", 0): (2, 3)}, attempt=2))
    writer.write(keyed((3, "c"), offset=2))
    database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND datname = current_database()"
    )
    with pytest.raises(ConnectError, match="Tried 3 times") as error:
        writer.close()
    assert not isinstance(error.value, RetriableError)
    writer.abort()


@pytest.mark.parametrize(
    ("settings", "setting", "message"),
    [
        ({"connection.url": "jdbc:oracle:thin"}, "connection.url", "There is no driver"),
        ({"insert.mode": "merge"}, "insert.mode", "one of"),
        ({"insert.mode": "upsert"}, "insert.mode", "needs a primary key"),
        ({"delete.enabled": "true"}, "delete.enabled", "Deletes need pk.mode=record_key"),
        ({"pk.mode": "kafka", "pk.fields": "a,b"}, "pk.fields", "three columns"),
        ({"batch.size": "0"}, "batch.size", "at least 1"),
    ],
)
def test_settings_that_do_not_fit_are_errors(
    settings: dict[str, str], setting: str, message: str
) -> None:
    config = {"connection.url": "jdbc:sqlite:/tmp/x.db", **settings}
    errors = {value.name: value.errors for value in JdbcSink.validate(config) if value.errors}
    assert message in errors[setting][0]
    with pytest.raises(InvalidConfigError):
        JdbcSink().configure(config)
    missing = {value.name: value.errors for value in JdbcSink.validate({}) if value.errors}
    assert missing == {
        "connection.url": [
            'Missing required configuration "connection.url" which has no default value.'
        ]
    }
