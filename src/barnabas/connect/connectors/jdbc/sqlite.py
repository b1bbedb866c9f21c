"""SQLite.

Its columns have no types that are enforced, so fields get the type that the column is declared as.
INTEGER is int64, since each value may have 64 bits. Dates and times are stored as milliseconds
since the epoch, as SQLite's JDBC driver does; ISO texts are read too.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types_of

from barnabas.connect.connectors.jdbc.database import DatabaseConnection
from barnabas.connect.connectors.jdbc.dialect import (
    EPOCH,
    ColumnReader,
    Dialect,
    NewColumn,
    SourceTypes,
    TableColumn,
    TableId,
    cast_to,
    numeric_schema,
    plain_literal,
    string_literal,
    timestamp_reader,
)
from barnabas.connect.connectors.jdbc.url import DatabaseKind
from barnabas.connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, ConnectSchema, Type
from barnabas.connect.errors import DataError

_READ_AS = {
    "boolean": Type.BOOLEAN,
    "bool": Type.BOOLEAN,
    "tinyint": Type.INT8,
    "smallint": Type.INT16,
    "int2": Type.INT16,
    "real": Type.FLOAT64,
    "double": Type.FLOAT64,
    "double precision": Type.FLOAT64,
    "float": Type.FLOAT64,
    "blob": Type.BYTES,
    "binary": Type.BYTES,
    "varbinary": Type.BYTES,
}
_TIMES = ("timestamp", "datetime", "date", "time")

_CREATED_AS = {
    Type.INT8: "INTEGER",
    Type.INT16: "INTEGER",
    Type.INT32: "INTEGER",
    Type.INT64: "INTEGER",
    Type.FLOAT32: "REAL",
    Type.FLOAT64: "REAL",
    Type.BOOLEAN: "INTEGER",
    Type.STRING: "TEXT",
    Type.BYTES: "BLOB",
}
_CREATED_AS_LOGICAL = dict.fromkeys((DECIMAL, DATE, TIME, TIMESTAMP), "NUMERIC")

_DAY_MS = 86_400_000


class SqliteDialect(Dialect):
    kind = DatabaseKind.SQLITE
    quote_character: ClassVar[str] = "`"
    has_schemas: ClassVar[bool] = False
    begin_write: ClassVar[str] = "BEGIN IMMEDIATE"

    # Catalog

    def tables(
        self,
        connection: DatabaseConnection,
        types: Sequence[str],
        schema_pattern: str | None = None,
    ) -> list[TableId]:
        kinds = [
            string_literal(each.strip().lower())
            for each in types
            if each.strip().upper() in ("TABLE", "VIEW")
        ]
        if not kinds:
            return []
        found = connection.rows(
            f"SELECT name FROM sqlite_master WHERE type IN ({', '.join(kinds)}) "
            "AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name"
        )
        return [TableId(None, row["name"]) for row in found]

    def find_table(self, connection: DatabaseConnection, table: TableId) -> TableId | None:
        found = connection.rows(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') "
            f"AND lower(name) = lower({string_literal(table.name)})"
        )
        return TableId(None, found[0]["name"]) if found else None

    def columns(self, connection: DatabaseConnection, table: TableId) -> list[TableColumn]:
        rows = connection.rows(
            f'SELECT name, type, "notnull", dflt_value IS NOT NULL AS has_default, pk '
            f"FROM pragma_table_info({string_literal(table.name)}) ORDER BY cid"
        )
        keys = sum(row["pk"] > 0 for row in rows)
        return [
            _column(
                row["name"], row["type"] or "", row["notnull"], row["has_default"], row["pk"], keys
            )
            for row in rows
        ]

    def current_time_us(self, connection: DatabaseConnection) -> int:
        (row,) = connection.rows(
            "SELECT CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) AS now"
        )
        return int(row["now"]) * 1000

    # Reading

    def select(self, table: TableId, columns: Sequence[TableColumn]) -> str:
        names = ", ".join(self._selected(column) for column in columns) or "*"
        return f"SELECT {names} FROM {self.qualified(table)}"

    def _selected(self, column: TableColumn) -> str:
        name = self.quote(column.name)
        # The driver gives a decimal as a double, which may round it.
        return f"CAST({name} AS TEXT) AS {name}" if column.scale is not None else name

    def reader(
        self, field: pa.Field, column: TableColumn | None, types: SourceTypes
    ) -> ColumnReader | None:
        if column is None:
            return _reader_of_value(field)
        type_name = column.type_name
        if column.scale is not None:
            schema = numeric_schema(column.precision, column.scale, types.numeric_mapping)
            exact = pa.decimal128(38, column.scale)
            storage = schema.arrow_type()
            return ColumnReader(
                field.name,
                schema,
                lambda values: pc.cast(pc.cast(pc.cast(values, pa.string()), exact), storage),
            )
        if type_name in ("timestamp", "datetime"):
            reader = timestamp_reader(field.name, types)
            return ColumnReader(
                field.name,
                reader.schema,
                lambda values: reader.convert(_instants(values, types.timezone)),
            )
        if type_name == "date":
            return ColumnReader(field.name, ConnectSchema(Type.INT32, name=DATE, version=1), _dates)
        if type_name == "time":
            return ColumnReader(field.name, ConnectSchema(Type.INT32, name=TIME, version=1), _times)
        schema = ConnectSchema(_READ_AS.get(type_name) or _affinity(type_name))
        return ColumnReader(field.name, schema, cast_to(schema.arrow_type()))

    def begin_read(self, isolation: str) -> str | None:
        return None  # all transactions are serializable

    def timestamp_literals(
        self, connection: DatabaseConnection, table: TableId | None, columns: Sequence[str]
    ) -> Callable[[int], str]:
        if table is not None:
            value = self.quoted(columns)
            value = value if len(columns) == 1 else f"COALESCE({value})"
            found = connection.rows(
                f"SELECT typeof({value}) AS type FROM {self.qualified(table)} "
                f"WHERE {value} IS NOT NULL LIMIT 1"
            )
            if found and found[0]["type"] == "text":
                return self._text_literal
        return lambda time_us: str(time_us // 1000)

    def _text_literal(self, time_us: int) -> str:
        time = self.wall_clock(time_us).replace(tzinfo=None)
        unit = "milliseconds" if time.microsecond % 1000 == 0 else "microseconds"
        return string_literal(time.isoformat(" ", unit if time.microsecond else "seconds"))

    # Writing

    def column_type(self, column: NewColumn) -> str:
        schema = column.schema
        if schema.name in _CREATED_AS_LOGICAL:
            return _CREATED_AS_LOGICAL[schema.name]
        if schema.type not in _CREATED_AS:
            raise DataError(
                f"Field '{column.name}' has type {schema.type}, which has no type in SQLite. "
                "Flatten it, or leave it out with fields.whitelist."
            )
        return _CREATED_AS[schema.type]

    def default_literal(self, schema: ConnectSchema) -> str:
        match schema.default:
            case bool() as value:
                return str(int(value))
            case datetime.datetime() as value:
                return str((value - EPOCH) // datetime.timedelta(milliseconds=1))
            case datetime.date() as value:
                return str((value - EPOCH.date()).days * _DAY_MS)
            case datetime.time() as value:
                return str(
                    ((value.hour * 60 + value.minute) * 60 + value.second) * 1000
                    + value.microsecond // 1000
                )
        return plain_literal(schema.default)

    def fitted(self, values: pa.Array, column: TableColumn) -> tuple[pa.Array, bool]:
        value_type = values.type
        if types_of.is_null(value_type) or types_of.is_boolean(value_type):
            values = pc.cast(values, pa.int64())
        elif types_of.is_timestamp(value_type):
            values = pc.cast(pc.cast(values, pa.timestamp("ms"), safe=False), pa.int64())
        elif types_of.is_date(value_type):
            days = pc.cast(pc.cast(values, pa.date32()), pa.int32())
            values = pc.multiply(pc.cast(days, pa.int64()), _DAY_MS)
        elif types_of.is_time(value_type):
            milliseconds = pc.cast(values, pa.time32("ms"), safe=False)
            values = pc.cast(pc.cast(milliseconds, pa.int32()), pa.int64())
        elif types_of.is_decimal(value_type):
            values = pc.cast(values, pa.string())
        elif types_of.is_nested(value_type):
            raise DataError(f"Column {column.name}: SQLite has no type for {value_type}.")
        return values, True

    def staging_type(self, arrow_type: pa.DataType) -> str:
        return ""

    def converted(self, expression: str, column: TableColumn) -> str:
        return expression

    def create_staging(self, name: str, columns: Sequence[tuple[str, str]]) -> list[str]:
        definitions = ", ".join('"' + column.replace('"', '""') + '"' for column, _ in columns)
        return [
            f"DROP TABLE IF EXISTS temp.{name}",
            f"CREATE TEMPORARY TABLE {name} ({definitions})",
        ]

    def upsert(
        self, table: TableId, columns: Sequence[str], keys: Sequence[str], select: str
    ) -> str:
        return f"INSERT OR REPLACE INTO {self.qualified(table)} ({self.quoted(columns)}) {select}"


def _column(
    name: str, declared: str, not_null: int, has_default: int, key: int, keys: int
) -> TableColumn:
    match = re.fullmatch(r"\s*([^()]*?)\s*(?:\(\s*(\d+)\s*(?:,\s*(-?\d+)\s*)?\))?\s*", declared)
    type_name = (match[1] if match else declared).lower()
    precision = int(match[2]) if match and match[2] else 0
    is_decimal = type_name in ("numeric", "decimal") and precision > 0
    return TableColumn(
        name=name,
        type_name=type_name,
        declared_type=declared,
        precision=precision,
        scale=int((match and match[3]) or 0) if is_decimal else None,
        # The rowid, which is never null although nothing declares it.
        is_nullable=not not_null and not (key and keys == 1 and type_name == "integer"),
        has_default=bool(has_default),
        is_autoincrement=bool(key) and keys == 1 and type_name == "integer",
        is_primary_key=bool(key),
    )


def _affinity(type_name: str) -> Type:
    if "int" in type_name:
        return Type.INT64
    if any(each in type_name for each in ("real", "floa", "doub", "numeric", "decimal")):
        return Type.FLOAT64
    return Type.BYTES if "blob" in type_name else Type.STRING


def _reader_of_value(field: pa.Field) -> ColumnReader | None:
    """Returns a reader for an expression of a query, by the type of its first values."""
    for is_type, type_ in (
        (types_of.is_integer, Type.INT64),
        (types_of.is_floating, Type.FLOAT64),
        (types_of.is_string, Type.STRING),
        (types_of.is_binary, Type.BYTES),
    ):
        if is_type(field.type):
            schema = ConnectSchema(type_)
            return ColumnReader(field.name, schema, cast_to(schema.arrow_type()))
    return None


def _instants(values: pa.Array, timezone: str) -> pa.Array:
    """Returns times from milliseconds or ISO texts; texts are in `timezone`."""
    if not types_of.is_string(values.type):
        return pc.cast(pc.cast(values, pa.int64()), pa.timestamp("ms", "UTC"))
    is_number = pc.fill_null(pc.match_substring_regex(values, r"^-?\d{5,}$"), False)
    nothing = pa.scalar(None, pa.string())
    numbers = pc.cast(pc.if_else(is_number, values, nothing), pa.int64())
    texts = pc.cast(pc.if_else(is_number, nothing, values), pa.timestamp("us"))
    of_texts = pc.assume_timezone(texts, timezone, ambiguous="earliest", nonexistent="earliest")
    of_texts = pc.cast(of_texts, pa.timestamp("us", "UTC"))
    return pc.coalesce(of_texts, pc.cast(numbers, pa.timestamp("ms", "UTC")).cast(of_texts.type))


def _dates(values: pa.Array) -> pa.Array:
    return pc.cast(_instants(values, "UTC"), pa.date32(), safe=False)


def _times(values: pa.Array) -> pa.Array:
    if types_of.is_string(values.type):
        is_clock = pc.match_substring(values, ":")
        with_date = pc.binary_join_element_wise("1970-01-01", values, " ")
        values = pc.if_else(is_clock, with_date, values)
    return pc.cast(_instants(values, "UTC"), pa.time32("ms"), safe=False)
