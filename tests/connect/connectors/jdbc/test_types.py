"""Values of each type pass from a source to a table and back."""

import datetime
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.connect.connectors.jdbc.databases import Database, postgresql, sqlite
from tests.connect.connectors.jdbc.test_sink import sink
from tests.connect.connectors.jdbc.test_source import source
from tests.connect.connectors.writing import Reporter, read, records, write
from tests.connect.postgres_server import PostgresServer

from barnabas.connect import ConnectSchema, SchemaField, Type
from barnabas.connect.connectors.jdbc import JdbcSource
from barnabas.connect.data.schema import DATE, TIME, TIMESTAMP, decimal_schema

UTC = datetime.UTC
SCHEMAS = {
    "i8": ConnectSchema(Type.INT8),
    "i16": ConnectSchema(Type.INT16),
    "i32": ConnectSchema(Type.INT32),
    "i64": ConnectSchema(Type.INT64),
    "f32": ConnectSchema(Type.FLOAT32),
    "f64": ConnectSchema(Type.FLOAT64),
    "yes": ConnectSchema(Type.BOOLEAN),
    "text": ConnectSchema(Type.STRING),
    "raw": ConnectSchema(Type.BYTES),
    "price": decimal_schema(2),
    "day": ConnectSchema(Type.INT32, name=DATE, version=1),
    "at": ConnectSchema(Type.INT32, name=TIME, version=1),
    "ts": ConnectSchema(Type.INT64, name=TIMESTAMP, version=1),
}
SCHEMA = ConnectSchema(
    Type.STRUCT,
    fields=tuple(SchemaField(name, schema.as_optional()) for name, schema in SCHEMAS.items()),
)
ROWS: list[dict[str, Any]] = [
    {
        "i8": -128,
        "i16": 32767,
        "i32": -(1 << 31),
        "i64": (1 << 63) - 1,
        "f32": 0.5,
        "f64": 1e300,
        "yes": True,
        "text": "häß'\"\\\n\t",
        "raw": b"\x00\xff",
        "price": Decimal("-12345678901234.56"),
        "day": datetime.date(1969, 12, 31),
        "at": datetime.time(23, 59, 59, 999000),
        "ts": datetime.datetime(2024, 7, 1, 12, 0, 0, 123000, UTC),
    },
    dict.fromkeys(SCHEMAS),
]


def one(connector: JdbcSource) -> Any:
    (partition,) = connector.partitions()
    (batch,) = read(connector, partition)
    return batch.records


def test_values_of_all_types_are_written_and_read_again(database: Database) -> None:
    connector = sink(database, auto_create="true", db_timezone="America/New_York")
    write(connector, records(ROWS, SCHEMA))
    settings = {"mode": "bulk", "table_whitelist": "t", "db_timezone": "America/New_York"}
    found = one(source(database, **settings))
    expected = [dict(row) for row in ROWS]
    if database.kind == "sqlite":
        expected[0] |= {
            "yes": 1,
            "price": -12345678901234.56,
            "day": -86_400_000,
            "at": 86_399_999,
            "ts": 1719835200123,
        }
    else:  # DECIMAL without precision
        scaled = expected[0]["price"].quantize(Decimal(1).scaleb(-38), context=Context(prec=80))
        expected[0]["price"] = scaled
    assert found.value.to_pylist() == expected


@pytest.mark.parametrize(
    ("declared", "literal", "schema", "value"),
    [
        ("smallint", "1", ConnectSchema(Type.INT16), 1),
        ("integer", "1", ConnectSchema(Type.INT32), 1),
        ("bigint", "1", ConnectSchema(Type.INT64), 1),
        ("real", "0.5", ConnectSchema(Type.FLOAT32), 0.5),
        ("double precision", "0.1", ConnectSchema(Type.FLOAT64), 0.1),
        ("boolean", "true", ConnectSchema(Type.BOOLEAN), True),
        ("text", "'a'", ConnectSchema(Type.STRING), "a"),
        ("varchar(3)", "'a'", ConnectSchema(Type.STRING), "a"),
        ("char(3)", "'a'", ConnectSchema(Type.STRING), "a  "),
        ("json", "'{\"a\": 1}'", ConnectSchema(Type.STRING), '{"a": 1}'),
        ("jsonb", "'{\"a\":1}'", ConnectSchema(Type.STRING), '{"a": 1}'),
        (
            "uuid",
            "'F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6'",
            ConnectSchema(Type.STRING),
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        ),
        ("xml", "'<a/>'", ConnectSchema(Type.STRING), "<a/>"),
        ("bytea", "'\\x00ff'", ConnectSchema(Type.BYTES), b"\x00\xff"),
        ("bit(1)", "B'1'", ConnectSchema(Type.BOOLEAN), True),
        ("bit(5)", "B'10011'", ConnectSchema(Type.INT8), 19),
        ("bit(12)", "B'000000011111'", ConnectSchema(Type.BYTES), b"\x01\xf0"),
        ("money", "'12.34'", ConnectSchema(Type.FLOAT64), 12.34),
        (
            "numeric(10,2)",
            "12.3",
            ConnectSchema(
                Type.BYTES,
                name=decimal_schema(2).name,
                version=1,
                parameters={"scale": "2", "connect.decimal.precision": "10"},
            ),
            Decimal("12.30"),
        ),
        ("date", "'2024-02-29'", SCHEMAS["day"], datetime.date(2024, 2, 29)),
        ("time", "'01:02:03.456789'", SCHEMAS["at"], datetime.time(1, 2, 3, 456000)),
        (
            "timestamp",
            "'2024-01-02 03:04:05.678999'",
            SCHEMAS["ts"],
            datetime.datetime(2024, 1, 2, 3, 4, 5, 678000, UTC),
        ),
        (
            "timestamptz",
            "'2024-01-02 03:04:05+01'",
            SCHEMAS["ts"],
            datetime.datetime(2024, 1, 2, 2, 4, 5, 0, UTC),
        ),
    ],
)
def test_types_of_postgresql(
    shared_postgresql: Database, declared: str, literal: str, schema: ConnectSchema, value: Any
) -> None:
    shared_postgresql.execute(
        "DROP TABLE IF EXISTS t",
        f"CREATE TABLE t (v {declared} NOT NULL, n {declared}, a int[], i inet)",
        f"INSERT INTO t VALUES ({literal}, NULL), ({literal}, {literal})",
    )
    found = one(source(shared_postgresql, mode="bulk"))
    (first, second) = found.value_schema.fields
    assert first.schema == schema
    assert second.schema == schema.as_optional()
    assert found.value.to_pylist() == [{"v": value, "n": None}, {"v": value, "n": value}]


@pytest.fixture(scope="module")
def shared_postgresql(postgres_server: PostgresServer) -> Database:
    return postgresql(postgres_server)


def test_columns_without_a_type_in_connect_are_left_out_with_a_warning(
    shared_postgresql: Database, caplog: pytest.LogCaptureFixture
) -> None:
    shared_postgresql.execute(
        "DROP TABLE IF EXISTS t", "CREATE TABLE t (id int, tags text[])", "INSERT INTO t VALUES (1)"
    )
    connector = source(shared_postgresql, mode="bulk")
    for _ in range(2):
        assert one(connector).value.to_pylist() == [{"id": 1}]
    assert [record.getMessage() for record in caplog.records] == [
        "Column tags of public.t is left out: Connect has no type for _text."
    ]


@pytest.mark.parametrize(
    ("mapping", "types"),
    [
        ("none", [None, None, None]),
        ("precision_only", [Type.INT8, None, None]),
        ("best_fit", [Type.INT8, Type.FLOAT64, None]),
        ("best_fit_eager_double", [Type.INT8, Type.FLOAT64, Type.FLOAT64]),
    ],
)
def test_numeric_mapping(database: Database, mapping: str, types: list[Type | None]) -> None:
    database.execute(
        "CREATE TABLE t (a NUMERIC(2,0), b NUMERIC(10,2), c NUMERIC(20,3))",
        "INSERT INTO t VALUES (7, 1.25, 2.5)",
    )
    found = one(source(database, mode="bulk", numeric_mapping=mapping))
    assert [each.schema.type for each in found.value_schema.fields] == [
        type_ or Type.BYTES for type_ in types
    ]
    assert found.value.to_pylist() == [
        {"a": Decimal(7), "b": Decimal("1.25"), "c": Decimal("2.500")}
    ]


@pytest.mark.parametrize(
    ("granularity", "value"),
    [
        ("micros_long", 1704164645678901),
        ("nanos_long", 1704164645678901000),
        ("micros_string", "1704164645678901"),
        ("nanos_string", "1704164645678901000"),
        ("micros_iso_datetime_string", "2024-01-02T03:04:05.678901"),
        ("nanos_iso_datetime_string", "2024-01-02T03:04:05.678901000"),
    ],
)
def test_timestamp_granularity(shared_postgresql: Database, granularity: str, value: Any) -> None:
    shared_postgresql.execute(
        "DROP TABLE IF EXISTS t",
        "CREATE TABLE t (ts timestamp)",
        "INSERT INTO t VALUES ('2024-01-02 03:04:05.678901')",
    )
    connector = source(
        shared_postgresql,
        mode="timestamp",
        timestamp_column_name="ts",
        timestamp_granularity=granularity,
    )
    found = one(connector)
    assert found.value.to_pylist() == [{"ts": value}]


def test_numbers_that_decimals_do_not_have_become_null(
    shared_postgresql: Database, caplog: pytest.LogCaptureFixture
) -> None:
    shared_postgresql.execute(
        "DROP TABLE IF EXISTS t", "CREATE TABLE t (n numeric)", "INSERT INTO t VALUES ('NaN'), (1)"
    )
    found = one(source(shared_postgresql, mode="bulk"))
    assert [row["n"] for row in found.value.to_pylist()] == [None, Decimal(1)]
    assert "has NaN or Infinity" in caplog.text


def test_sqlite_types(tmp_path: Path) -> None:
    database = sqlite(tmp_path)
    database.execute(
        "CREATE TABLE t (a BOOLEAN, b SMALLINT, c VARCHAR(5), d DATE, e TIME, f DATETIME, g BLOB, "
        "h NUMERIC(8,3), i REAL, j)",
        "INSERT INTO t VALUES (1, 2, 'x', '2024-01-02', '01:02:03', '2024-01-02 03:04:05', x'01', "
        "1.005, 2, 'any')",
        "INSERT INTO t VALUES (0, 2, 'x', 1704153600000, 3723000, 1704164645000, NULL, NULL, NULL, "
        "NULL)",
    )
    found = one(source(database, mode="bulk")).value.to_pylist()
    times = {
        "d": datetime.date(2024, 1, 2),
        "e": datetime.time(1, 2, 3),
        "f": datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC),
    }
    assert found == [
        {"a": True, "b": 2, "c": "x", **times, "g": b"\x01", "h": Decimal("1.005"), "i": 2.0}
        | {"j": "any"},
        {"a": False, "b": 2, "c": "x", **times, "g": None, "h": None, "i": None, "j": None},
    ]


@pytest.mark.parametrize("settings", [{}, {"insert_mode": "upsert", "pk_mode": "record_value"}])
def test_values_are_converted_to_the_types_of_postgresql_columns(
    shared_postgresql: Database, settings: dict[str, str]
) -> None:
    shared_postgresql.execute(
        "DROP TABLE IF EXISTS t",
        "CREATE TABLE t (id bigint PRIMARY KEY, j jsonb, u uuid, n numeric(6,2), tz timestamptz, "
        "tags text[], small smallint, price double precision, day date)",
    )
    schema = ConnectSchema(
        Type.STRUCT,
        fields=(
            SchemaField("id", ConnectSchema(Type.INT32)),
            SchemaField("j", ConnectSchema(Type.STRING)),
            SchemaField("u", ConnectSchema(Type.STRING)),
            SchemaField("n", ConnectSchema(Type.STRING)),
            SchemaField("tz", SCHEMAS["ts"]),
            SchemaField("tags", ConnectSchema(Type.ARRAY, value_schema=ConnectSchema(Type.STRING))),
            SchemaField("small", ConnectSchema(Type.INT64)),
            SchemaField("price", ConnectSchema(Type.FLOAT32)),
            SchemaField("day", ConnectSchema(Type.STRING)),
        ),
    )
    noon = datetime.datetime(2024, 7, 1, 12, tzinfo=UTC)
    value = {
        "id": 1,
        "j": '{"a": [1]}',
        "u": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        "n": "12.5",
        "tz": noon,
        "tags": ["x", "y"],
        "small": 5,
        "price": 0.5,
        "day": "2024-02-29",
    }
    given = {**settings, "pk_fields": "id"} if settings else {}
    wrong = [
        value | {"id": 2, "u": "no"},
        value | {"id": 3, "j": "{"},
        value | {"id": 4, "small": 99999},
    ]
    reporter = Reporter(tolerates_errors=True)
    connector = sink(shared_postgresql, db_timezone="Asia/Tokyo", name=str(settings), **given)
    write(connector, records([value, *wrong], schema), reporter=reporter)
    assert [offsets for offsets, _ in reporter.reported] == [[1], [2], [3]]
    assert shared_postgresql.rows(
        "SELECT j->'a'->>0, u::text, n::text, tz, tags, small, price, day FROM t"
    ) == [
        (
            "1",
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            "12.50",
            noon,
            ["x", "y"],
            5,
            0.5,
            datetime.date(2024, 2, 29),
        )
    ]


def test_defaults_replace_nulls_unless_that_is_disabled(database: Database) -> None:
    default = ConnectSchema(Type.STRING, is_optional=True, default="none")
    schema = ConnectSchema(Type.STRUCT, fields=(SchemaField("name", default),))
    batch = records([{"name": None}, {"name": "a"}], schema)
    write(sink(database, auto_create="true"), batch)
    write(sink(database, replace_null_with_default="false", name="other"), batch)
    assert database.rows("SELECT name FROM t ORDER BY name IS NULL, name") == [
        ("a",),
        ("a",),
        ("none",),
        (None,),
    ]


def test_numbers_and_texts_are_written_as_timestamps(shared_postgresql: Database) -> None:
    shared_postgresql.execute("DROP TABLE IF EXISTS t")
    schema = ConnectSchema(
        Type.STRUCT,
        fields=(
            SchemaField("a", ConnectSchema(Type.INT64)),
            SchemaField("b", ConnectSchema(Type.STRING)),
        ),
    )
    connector = sink(
        shared_postgresql, auto_create="true", timestamp_fields_list="a,b", name="times"
    )
    write(connector, records([{"a": 1_700_000_000_123_456, "b": "2024-01-02T03:04:05"}], schema))
    assert shared_postgresql.rows("SELECT a, b FROM t") == [
        (
            datetime.datetime(2023, 11, 14, 22, 13, 20, 123456),
            datetime.datetime(2024, 1, 2, 3, 4, 5),
        )
    ]


def test_arrays_are_written_to_postgresql(shared_postgresql: Database) -> None:
    shared_postgresql.execute("DROP TABLE IF EXISTS t")
    schema = ConnectSchema(
        Type.STRUCT,
        fields=(
            SchemaField("v", ConnectSchema(Type.ARRAY, value_schema=ConnectSchema(Type.INT32))),
        ),
    )
    connector = sink(shared_postgresql, auto_create="true", name="arrays")
    write(connector, records(pa.array([{"v": [1, 2]}, {"v": []}], schema.arrow_type()), schema))
    assert shared_postgresql.rows("SELECT v FROM t ORDER BY 1") == [([],), ([1, 2],)]
