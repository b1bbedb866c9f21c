"""What differs between databases: catalogs, types, statements."""

from __future__ import annotations

import datetime
import difflib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.connectors.jdbc.database import DatabaseConnection
from barnabas.connect.connectors.jdbc.url import DatabaseKind
from barnabas.connect.data.schema import (
    TIMESTAMP,
    ConnectSchema,
    Type,
    decimal_schema,
)
from barnabas.connect.errors import InvalidConfigError

DECIMAL_PRECISION: Final = "connect.decimal.precision"

EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


@dataclass(slots=True, frozen=True)
class TableId:
    """A table as the catalog names it."""

    schema: str | None
    name: str

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


@dataclass(slots=True, frozen=True)
class TableColumn:
    """A column as the catalog describes it."""

    name: str
    type_name: str
    """The type without modifiers, in lower case."""
    declared_type: str
    """The type with modifiers, as a statement names it."""
    precision: int = 0
    scale: int | None = None
    length: int = 0
    is_nullable: bool = True
    has_default: bool = False
    is_autoincrement: bool = False
    is_primary_key: bool = False


@dataclass(slots=True, frozen=True)
class SourceTypes:
    """The settings that decide the types of a source's fields."""

    numeric_mapping: str
    timezone: str
    granularity: str


@dataclass(slots=True, frozen=True)
class ColumnReader:
    """How a column of a result becomes a field."""

    name: str
    schema: ConnectSchema
    convert: Callable[[pa.Array], pa.Array]


@dataclass(slots=True, frozen=True)
class NewColumn:
    """A column that `auto.create` or `auto.evolve` adds."""

    name: str
    schema: ConnectSchema
    is_key: bool


class Dialect(ABC):
    kind: ClassVar[DatabaseKind]
    quote_character: ClassVar[str]
    has_schemas: ClassVar[bool] = True
    begin_write: ClassVar[str] = "BEGIN"

    def __init__(self, *, quotes: bool, timezone: str) -> None:
        self.quotes = quotes
        self.timezone = timezone

    # Names

    def quote(self, name: str) -> str:
        if not self.quotes:
            return name
        mark = self.quote_character
        return f"{mark}{name.replace(mark, mark * 2)}{mark}"

    def quoted(self, names: Iterable[str]) -> str:
        return ", ".join(map(self.quote, names))

    def qualified(self, table: TableId) -> str:
        parts = [table.name] if table.schema is None else [table.schema, table.name]
        return ".".join(map(self.quote, parts))

    def parse_table(self, name: str) -> TableId:
        """Splits `schema.table` and `catalog.schema.table`, where parts may have quotes."""
        parts = _identifier_parts(name, self.quote_character)
        if not 1 <= len(parts) <= 3 or not all(parts):
            raise InvalidConfigError(
                f"'{name}' is no name of a table: it has to be table, schema.table or "
                "catalog.schema.table. Set table.name.format, or rename the topic with a transform."
            )
        return TableId(parts[-2] if len(parts) > 1 else None, parts[-1])

    # Catalog

    @abstractmethod
    def tables(
        self,
        connection: DatabaseConnection,
        types: Sequence[str],
        schema_pattern: str | None = None,
    ) -> list[TableId]: ...

    @abstractmethod
    def find_table(self, connection: DatabaseConnection, table: TableId) -> TableId | None:
        """Returns the table as the catalog names it."""

    @abstractmethod
    def columns(self, connection: DatabaseConnection, table: TableId) -> list[TableColumn]: ...

    @abstractmethod
    def current_time_us(self, connection: DatabaseConnection) -> int:
        """Returns the database's clock, in microseconds since the epoch."""

    # Reading

    @abstractmethod
    def select(self, table: TableId, columns: Sequence[TableColumn]) -> str: ...

    @abstractmethod
    def reader(
        self, field: pa.Field, column: TableColumn | None, types: SourceTypes
    ) -> ColumnReader | None:
        """Returns None for a type that Connect does not have."""

    @abstractmethod
    def begin_read(self, isolation: str) -> str | None:
        """Returns the statement that begins a transaction; None if it needs none."""

    @abstractmethod
    def timestamp_literals(
        self, connection: DatabaseConnection, table: TableId | None, columns: Sequence[str]
    ) -> Callable[[int], str]:
        """Returns what writes a time, in microseconds, as the columns store it."""

    def wall_clock(self, time_us: int) -> datetime.datetime:
        from zoneinfo import ZoneInfo

        time = EPOCH + datetime.timedelta(microseconds=time_us)
        return time.astimezone(ZoneInfo(self.timezone))

    # Writing

    @abstractmethod
    def column_type(self, column: NewColumn) -> str:
        """Raises DataError if the database has no type for the schema."""

    @abstractmethod
    def default_literal(self, schema: ConnectSchema) -> str: ...

    @abstractmethod
    def fitted(self, values: pa.Array, column: TableColumn) -> tuple[pa.Array, bool]:
        """Returns values as the driver can send them, and whether the database takes them for the
        column as they are; otherwise it has to convert them. Raises ArrowInvalid if they do not
        fit."""

    @abstractmethod
    def staging_type(self, arrow_type: pa.DataType) -> str:
        """Returns the type of a column that takes values which the database has to convert."""

    @abstractmethod
    def converted(self, expression: str, column: TableColumn) -> str: ...

    @abstractmethod
    def create_staging(self, name: str, columns: Sequence[tuple[str, str]]) -> list[str]:
        """Returns the statements that make an empty temporary table."""

    def insert(self, table: TableId, columns: Sequence[str], select: str) -> str:
        return f"INSERT INTO {self.qualified(table)} ({self.quoted(columns)}) {select}"

    @abstractmethod
    def upsert(
        self, table: TableId, columns: Sequence[str], keys: Sequence[str], select: str
    ) -> str: ...

    def create_table(self, table: TableId, columns: Sequence[NewColumn]) -> str:
        lines = [self._definition(column) for column in columns]
        keys = [column.name for column in columns if column.is_key]
        if keys:
            lines.append(f"PRIMARY KEY({self.quoted(keys)})")
        return f"CREATE TABLE {self.qualified(table)} (\n" + ",\n".join(lines) + ")"

    def add_columns(self, table: TableId, columns: Sequence[NewColumn]) -> list[str]:
        name = self.qualified(table)
        return [f"ALTER TABLE {name} ADD {self._definition(column)}" for column in columns]

    def _definition(self, column: NewColumn) -> str:
        text = f"{self.quote(column.name)} {self.column_type(column)}"
        if column.schema.has_default and column.schema.default is not None:
            return f"{text} DEFAULT {self.default_literal(column.schema)}"
        return f"{text} {'NULL' if column.schema.is_optional and not column.is_key else 'NOT NULL'}"

    def delete(self, table: TableId, keys: Sequence[str], select: str) -> str:
        matches = " AND ".join(f"s.{self.quote(name)} = t.{self.quote(name)}" for name in keys)
        return (
            f"DELETE FROM {self.qualified(table)} AS t WHERE EXISTS "
            f"(SELECT 1 FROM ({select}) AS s WHERE {matches})"
        )

    def update(
        self, table: TableId, columns: Sequence[str], keys: Sequence[str], select: str
    ) -> str:
        changes = ", ".join(f"{self.quote(name)} = s.{self.quote(name)}" for name in columns)
        target = self.qualified(table)
        matches = " AND ".join(f"t.{self.quote(name)} = s.{self.quote(name)}" for name in keys)
        return f"UPDATE {target} AS t SET {changes} FROM ({select}) AS s WHERE {matches}"


def string_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def nearest(name: str, names: Iterable[str]) -> str:
    """Returns a sentence that names the most similar one, or nothing."""
    known = {each.lower(): each for each in names}
    found = difflib.get_close_matches(name.lower(), known, 1)
    return f" Did you mean '{known[found[0]]}'?" if found else ""


def _identifier_parts(name: str, mark: str) -> list[str]:
    parts, current, is_quoted = [], "", False
    for character in name:
        if character in (mark, '"'):
            is_quoted = not is_quoted
        elif character == "." and not is_quoted:
            parts.append(current)
            current = ""
        else:
            current += character
    return [*parts, current]


# Values of sources


def unchanged(values: pa.Array) -> pa.Array:
    return values


def cast_to(arrow_type: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    return lambda values: values if values.type == arrow_type else pc.cast(values, arrow_type)


def integer_schema(precision: int) -> ConnectSchema:
    """Returns the type for integers of so many digits, as `numeric.mapping` chooses it."""
    for digits, type_ in ((2, Type.INT8), (4, Type.INT16), (9, Type.INT32)):
        if precision <= digits:
            return ConnectSchema(type_)
    return ConnectSchema(Type.INT64)


def numeric_schema(precision: int, scale: int, mapping: str) -> ConnectSchema:
    """Returns the schema of NUMERIC(precision, scale)."""
    if 0 < precision <= 18:
        if scale == 0 and mapping in ("precision_only", "best_fit", "best_fit_eager_double"):
            return integer_schema(precision)
        if scale > 0 and mapping == "best_fit":
            return ConnectSchema(Type.FLOAT64)
    if scale > 0 and mapping == "best_fit_eager_double":
        return ConnectSchema(Type.FLOAT64)
    schema = decimal_schema(scale)
    parameters = {**schema.parameters, DECIMAL_PRECISION: str(precision)}
    return ConnectSchema(Type.BYTES, name=schema.name, version=1, parameters=parameters)


def timestamp_reader(name: str, types: SourceTypes) -> ColumnReader:
    """Reads instants, or wall clock times of `db.timezone`, as `timestamp.granularity` says."""

    def instants(values: pa.Array) -> pa.Array:
        if values.type.tz is None:
            values = pc.assume_timezone(
                values, types.timezone, ambiguous="earliest", nonexistent="earliest"
            )
        return values

    if types.granularity == "connect_logical":
        return ColumnReader(
            name,
            ConnectSchema(Type.INT64, name=TIMESTAMP, version=1),
            lambda values: pc.cast(instants(values), pa.timestamp("ms", "UTC"), safe=False),
        )
    unit = "us" if types.granularity.startswith("micros") else "ns"
    exact = pa.timestamp(unit, "UTC")
    if types.granularity.endswith("_long"):
        return ColumnReader(
            name,
            ConnectSchema(Type.INT64),
            lambda values: pc.cast(pc.cast(instants(values), exact), pa.int64()),
        )
    if types.granularity.endswith("_iso_datetime_string"):
        return ColumnReader(
            name,
            ConnectSchema(Type.STRING),
            lambda values: pc.strftime(pc.cast(instants(values), exact), "%Y-%m-%dT%H:%M:%S"),
        )
    return ColumnReader(
        name,
        ConnectSchema(Type.STRING),
        lambda values: pc.cast(pc.cast(pc.cast(instants(values), exact), pa.int64()), pa.string()),
    )


def plain_literal(value: Any) -> str:
    """Returns the literal of a default value that is a number, text or bytes."""
    match value:
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return string_literal(value)
    return str(value)
