"""PostgreSQL."""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
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
    numeric_schema,
    plain_literal,
    string_literal,
    timestamp_reader,
    unchanged,
)
from barnabas.connect.connectors.jdbc.url import DatabaseKind
from barnabas.connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, ConnectSchema, Type
from barnabas.connect.errors import DataError

log = logging.getLogger(__name__)

UNBOUNDED_SCALE = 38
UNBOUNDED_PRECISION = 76
"""Of NUMERIC without precision: what Arrow's widest decimal can have on both sides."""

_TABLE_KINDS = {
    "r": "TABLE",
    "p": "PARTITIONED TABLE",
    "v": "VIEW",
    "m": "MATERIALIZED VIEW",
    "f": "FOREIGN TABLE",
}

_READ_AS = {
    "int2": Type.INT16,
    "int4": Type.INT32,
    "int8": Type.INT64,
    "oid": Type.INT64,
    "float4": Type.FLOAT32,
    "float8": Type.FLOAT64,
    "bool": Type.BOOLEAN,
    "bytea": Type.BYTES,
} | dict.fromkeys(
    ("text", "varchar", "bpchar", "char", "name", "citext", "json", "jsonb", "xml"), Type.STRING
)

_SENT_AS: dict[str, pa.DataType] = {
    "int2": pa.int16(),
    "int4": pa.int32(),
    "int8": pa.int64(),
    "float4": pa.float32(),
    "float8": pa.float64(),
    "bool": pa.bool_(),
    "bytea": pa.binary(),
    "text": pa.string(),
    "varchar": pa.string(),
    "bpchar": pa.string(),
    "name": pa.string(),
    "citext": pa.string(),
    "json": pa.string(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}

_CREATED_AS = {
    Type.INT8: "SMALLINT",
    Type.INT16: "SMALLINT",
    Type.INT32: "INT",
    Type.INT64: "BIGINT",
    Type.FLOAT32: "REAL",
    Type.FLOAT64: "DOUBLE PRECISION",
    Type.BOOLEAN: "BOOLEAN",
    Type.STRING: "TEXT",
    Type.BYTES: "BYTEA",
}
_CREATED_AS_LOGICAL = {DECIMAL: "DECIMAL", DATE: "DATE", TIME: "TIME", TIMESTAMP: "TIMESTAMP"}


class PostgresqlDialect(Dialect):
    kind = DatabaseKind.POSTGRESQL
    quote_character: ClassVar[str] = '"'

    # Catalog

    def tables(
        self,
        connection: DatabaseConnection,
        types: Sequence[str],
        schema_pattern: str | None = None,
    ) -> list[TableId]:
        wanted = {each.strip().upper() for each in types}
        kinds = [kind for kind, name in _TABLE_KINDS.items() if name in wanted]
        if not kinds:
            return []
        matching = ""
        if schema_pattern:
            matching = f" AND n.nspname LIKE {string_literal(schema_pattern)}"
        found = connection.rows(
            "SELECT n.nspname::text AS schema, c.relname::text AS name FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE c.relkind IN ({', '.join(map(string_literal, kinds))}) "
            "AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast') "
            f"AND n.nspname NOT LIKE 'pg_temp%'{matching} ORDER BY 1, 2"
        )
        return [TableId(row["schema"], row["name"]) for row in found]

    def find_table(self, connection: DatabaseConnection, table: TableId) -> TableId | None:
        found = connection.rows(
            "SELECT n.nspname::text AS schema, c.relname::text AS name FROM pg_class c "
            "JOIN pg_namespace n ON n.oid = c.relnamespace "
            f"WHERE c.oid = to_regclass({string_literal(self.qualified(table))})"
        )
        return TableId(found[0]["schema"], found[0]["name"]) if found else None

    def columns(self, connection: DatabaseConnection, table: TableId) -> list[TableColumn]:
        name = string_literal(self.qualified(table))
        found = connection.rows(
            "SELECT a.attname::text AS name, t.typname::text AS type, a.atttypmod AS modifier, "
            "format_type(a.atttypid, a.atttypmod) AS declared, NOT a.attnotnull AS nullable, "
            "a.atthasdef AS has_default, a.attidentity::text <> '' AS identity, "
            "coalesce(pg_get_expr(d.adbin, d.adrelid), '') AS expression, "
            "coalesce(a.attnum = ANY(i.indkey::int2[]), false) AS is_key "
            "FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid "
            "LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
            "LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary "
            f"WHERE a.attrelid = to_regclass({name}) AND a.attnum > 0 AND NOT a.attisdropped "
            "ORDER BY a.attnum"
        )
        return [_column(row) for row in found]

    def current_time_us(self, connection: DatabaseConnection) -> int:
        (row,) = connection.rows("SELECT CURRENT_TIMESTAMP AS now")
        now: datetime.datetime = row["now"]
        return (now - EPOCH) // datetime.timedelta(microseconds=1)

    # Reading

    def select(self, table: TableId, columns: Sequence[TableColumn]) -> str:
        return f"SELECT * FROM {self.qualified(table)}"

    def reader(
        self, field: pa.Field, column: TableColumn | None, types: SourceTypes
    ) -> ColumnReader | None:
        metadata = field.metadata or {}
        type_name = metadata.get(b"POSTGRESQL:type", b"").decode()
        if type_name in _READ_AS:
            schema = ConnectSchema(_READ_AS[type_name])
            storage = schema.arrow_type()
            return ColumnReader(
                field.name, schema, lambda values: pc.cast(_storage(values), storage)
            )
        match type_name:
            case "numeric":
                modifier = int(metadata.get(b"POSTGRESQL:typmod", b"-1"))
                return _numeric_reader(field.name, modifier, types.numeric_mapping)
            case "date":
                return ColumnReader(
                    field.name, ConnectSchema(Type.INT32, name=DATE, version=1), unchanged
                )
            case "time":
                return ColumnReader(
                    field.name,
                    ConnectSchema(Type.INT32, name=TIME, version=1),
                    lambda values: pc.cast(values, pa.time32("ms"), safe=False),
                )
            case "timestamp" | "timestamptz":
                return timestamp_reader(field.name, types)
            case "uuid":
                return ColumnReader(field.name, ConnectSchema(Type.STRING), _uuid_text)
            case "money":
                return ColumnReader(
                    field.name,
                    ConnectSchema(Type.FLOAT64),
                    lambda values: pc.divide(pc.cast(values, pa.float64()), 100.0),
                )
            case "bit" | "varbit":
                return _bit_reader(field.name, 0 if column is None else column.length)
        if types_of.is_string(field.type):  # enumerations
            return ColumnReader(field.name, ConnectSchema(Type.STRING), unchanged)
        return None

    def begin_read(self, isolation: str) -> str | None:
        if isolation == "DEFAULT":
            return None
        return f"BEGIN ISOLATION LEVEL {isolation.replace('_', ' ')} READ ONLY"

    def timestamp_literals(
        self, connection: DatabaseConnection, table: TableId | None, columns: Sequence[str]
    ) -> Callable[[int], str]:
        # TIMESTAMP ignores the offset, and TIMESTAMPTZ uses it.
        return lambda time_us: string_literal(
            self.wall_clock(time_us).isoformat(" ", "microseconds")
        )

    # Writing

    def column_type(self, column: NewColumn) -> str:
        schema = column.schema
        if schema.name in _CREATED_AS_LOGICAL:
            return _CREATED_AS_LOGICAL[schema.name]
        if schema.type is Type.ARRAY and schema.value_schema is not None:
            return self.column_type(NewColumn(column.name, schema.value_schema, False)) + "[]"
        if schema.type not in _CREATED_AS:
            raise DataError(
                f"Field '{column.name}' has type {schema.type}, which has no type in PostgreSQL. "
                "Flatten it, or leave it out with fields.whitelist."
            )
        return _CREATED_AS[schema.type]

    def default_literal(self, schema: ConnectSchema) -> str:
        match schema.default:
            case bool() as value:
                return str(value).upper()
            case bytes() as value:
                return f"'\\x{value.hex()}'"
            case datetime.datetime() as value:
                return string_literal(
                    self.wall_clock((value - EPOCH) // datetime.timedelta(microseconds=1)).strftime(
                        "%Y-%m-%d %H:%M:%S.%f"
                    )
                )
            case datetime.date() | datetime.time() as value:
                return string_literal(value.isoformat())
        return plain_literal(schema.default)

    def fitted(self, values: pa.Array, column: TableColumn) -> tuple[pa.Array, bool]:
        value_type = values.type
        if types_of.is_timestamp(value_type):
            values = self._fitted_time(values, column)
        elif types_of.is_time(value_type):
            values = pc.cast(values, pa.time64("us"))
        elif types_of.is_int8(value_type):
            values = pc.cast(values, pa.int16())
        if column.type_name == "numeric":
            return values, types_of.is_decimal(value_type)
        sent = _SENT_AS.get(column.type_name)
        if sent is None or not _is_widening_or_checked(values.type, sent):
            return values, types_of.is_null(value_type)
        return pc.cast(values, sent), True

    def _fitted_time(self, values: pa.Array, column: TableColumn) -> pa.Array:
        """Returns the wall clock times of `db.timezone` for a column without time zone."""
        if values.type.tz is not None and column.type_name != "timestamptz":
            values = pc.cast(values, pa.timestamp(values.type.unit, self.timezone))
            values = pc.local_timestamp(values)
        return pc.cast(values, pa.timestamp("us", values.type.tz and "UTC"), safe=False)

    def staging_type(self, arrow_type: pa.DataType) -> str:
        for name, sent in _SENT_AS.items():
            if sent == arrow_type:
                return name
        if types_of.is_decimal(arrow_type):
            return "numeric"
        if types_of.is_list(arrow_type):
            return self.staging_type(arrow_type.value_type) + "[]"
        return "text"  # also for nulls

    def converted(self, expression: str, column: TableColumn) -> str:
        return f"CAST({expression} AS {column.declared_type})"

    def create_staging(self, name: str, columns: Sequence[tuple[str, str]]) -> list[str]:
        definitions = ", ".join(
            '"' + column.replace('"', '""') + f'" {type_}' for column, type_ in columns
        )
        return [
            f"DROP TABLE IF EXISTS pg_temp.{name}",
            f"CREATE TEMPORARY TABLE {name} ({definitions}) ON COMMIT DROP",
        ]

    def upsert(
        self, table: TableId, columns: Sequence[str], keys: Sequence[str], select: str
    ) -> str:
        others = [name for name in columns if name not in keys]
        changes = ", ".join(f"{self.quote(name)}=EXCLUDED.{self.quote(name)}" for name in others)
        action = f"UPDATE SET {changes}" if others else "NOTHING"
        return (
            f"INSERT INTO {self.qualified(table)} ({self.quoted(columns)}) {select} "
            f"ON CONFLICT ({self.quoted(keys)}) DO {action}"
        )


def _column(row: dict[str, Any]) -> TableColumn:
    type_name, modifier = row["type"], row["modifier"]
    precision, scale, length = 0, None, 0
    if type_name == "numeric" and modifier >= 4:
        precision, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
    elif type_name in ("bit", "varbit"):
        length = modifier
    return TableColumn(
        name=row["name"],
        type_name=type_name,
        declared_type=row["declared"],
        precision=precision,
        scale=scale,
        length=length,
        is_nullable=row["nullable"],
        has_default=row["has_default"] or row["identity"],
        is_autoincrement=row["identity"] or row["expression"].startswith("nextval("),
        is_primary_key=row["is_key"],
    )


def _is_widening_or_checked(given: pa.DataType, sent: pa.DataType) -> bool:
    """Returns whether Arrow converts the type without rounding, or else fails."""
    if given == sent or (types_of.is_integer(given) and types_of.is_integer(sent)):
        return True
    if types_of.is_timestamp(given) and types_of.is_timestamp(sent):
        return (given.tz is None) == (sent.tz is None)
    return bool(types_of.is_float32(given) and types_of.is_float64(sent))


# Values of sources


def _storage(values: pa.Array) -> pa.Array:
    return values.storage if isinstance(values, pa.ExtensionArray) else values


def _numeric_reader(name: str, modifier: int, mapping: str) -> ColumnReader:
    if modifier >= 4:
        precision, scale = (modifier - 4) >> 16, (modifier - 4) & 0x7FF
        scale -= 0x800 if scale >= 0x400 else 0  # eleven bits, signed
    else:
        precision, scale = UNBOUNDED_PRECISION, UNBOUNDED_SCALE
    schema = numeric_schema(precision, scale, mapping)
    arrow_type = schema.arrow_type()
    widest = pa.decimal256(UNBOUNDED_PRECISION, scale) if precision > 38 else None
    exact = widest or pa.decimal128(38, scale)

    def convert(values: pa.Array) -> pa.Array:
        text = _storage(values)
        is_special = pc.match_substring_regex(text, "(?i)^[+-]?(nan|inf)")
        if pc.any(is_special).as_py():
            log.warning("Column %s has NaN or Infinity, which become null: Decimal has none.", name)
            text = pc.if_else(is_special, pa.scalar(None, pa.string()), text)
        if types_of.is_floating(arrow_type):
            return pc.cast(text, arrow_type)
        decimals = pc.cast(text, exact)
        return decimals if exact == arrow_type else pc.cast(decimals, arrow_type)

    return ColumnReader(name, schema, convert)


def _uuid_text(values: pa.Array) -> pa.Array:
    """Returns the text of UUIDs: hexadecimal digits in groups of 8, 4, 4, 4 and 12."""
    storage = _storage(values)
    if types_of.is_string(storage.type):
        return storage
    if not len(storage):
        return pa.array([], pa.string())
    filled = pc.fill_null(storage, b"\0" * 16)
    data = np.frombuffer(filled.buffers()[1], np.uint8)
    rows = data[filled.offset * 16 : (filled.offset + len(filled)) * 16].reshape(-1, 16)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = np.full((len(rows), 36), ord("-"), np.uint8)
    positions = [index for index in range(36) if index not in (8, 13, 18, 23)]
    text[:, positions[0::2]] = digits[rows >> 4]
    text[:, positions[1::2]] = digits[rows & 15]
    offsets = np.arange(len(rows) + 1, dtype=np.int32) * 36
    result = pa.StringArray.from_buffers(len(rows), pa.py_buffer(offsets), pa.py_buffer(text))
    if not storage.null_count:
        return result
    return pc.if_else(storage.is_valid(), result, pa.scalar(None, pa.string()))


def _bit_reader(name: str, length: int) -> ColumnReader:
    """Reads BIT(1) as a boolean, up to BIT(8) as an int8, and else the bits as bytes. The driver
    gives four bytes with the length before them."""

    def bits(values: pa.Array) -> pa.Array:
        found = [None if each is None else each[4:] for each in _storage(values).to_pylist()]
        return pa.array(found, pa.binary())

    def number(values: pa.Array) -> pa.Array:
        numbers = [
            None if each is None else each[0] >> (8 - length) for each in bits(values).to_pylist()
        ]
        return pa.array(numbers, pa.uint8()).cast(pa.int8(), safe=False)

    if length == 1:
        return ColumnReader(
            name, ConnectSchema(Type.BOOLEAN), lambda values: pc.cast(number(values), pa.bool_())
        )
    if 1 < length <= 8:
        return ColumnReader(name, ConnectSchema(Type.INT8), number)
    return ColumnReader(name, ConnectSchema(Type.BYTES), bits)
