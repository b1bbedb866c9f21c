"""Records as rows of a table: which columns they have, and which rows they add or delete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.connectors.jdbc.dialect import NewColumn
from barnabas.connect.connectors.jdbc.sink_settings import (
    DELETE_ENABLED,
    FIELDS_WHITELIST,
    KAFKA_COLUMNS,
    KEY_KAFKA,
    KEY_NONE,
    KEY_RECORD_KEY,
    KEY_RECORD_VALUE,
    PK_FIELDS,
    PK_MODE,
    REPLACE_NULL,
    STRING_COLUMN,
    TIMESTAMP_FIELDS,
    TIMESTAMP_PRECISION,
)
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.data.schema import TIMESTAMP, ConnectSchema, Type
from barnabas.connect.errors import DataError
from barnabas.connect.reporter import ErrorReporter

SEQUENCE = "\0sequence"
"""The column with the order of rows. No field has this name."""


@dataclass(slots=True, frozen=True)
class RowSet:
    """Rows that share their columns, in the order of their records."""

    columns: tuple[NewColumn, ...]
    """Keys first, unless they are fields of the value. Of deletes, only the keys."""
    rows: pa.Table
    """Their values, and SEQUENCE."""

    @property
    def keys(self) -> list[str]:
        return [column.name for column in self.columns if column.is_key]


class RowMapping:
    """Maps records to rows as the settings say."""

    def __init__(self, name: str, settings: Mapping[str, Any]) -> None:
        self._name = name
        self._key_mode: str = settings[PK_MODE].lower()
        self._key_fields: list[str] = settings[PK_FIELDS]
        self._fields = set(settings[FIELDS_WHITELIST])
        self._deletes: bool = settings[DELETE_ENABLED]
        self._replaces_null: bool = settings[REPLACE_NULL]
        self._string_column: str = settings[STRING_COLUMN]
        self._timestamp_fields = set(settings[TIMESTAMP_FIELDS])
        self._timestamp_unit = "ns" if settings[TIMESTAMP_PRECISION].lower()[0] == "n" else "us"

    def split(
        self, batch: ConnectBatch, sequence: int, reporter: ErrorReporter
    ) -> tuple[RowSet | None, RowSet | None]:
        """Returns the rows to write and to delete. Records that can be neither are reported."""
        numbers = pa.array(np.arange(sequence, sequence + len(batch)), pa.int64())
        batch, numbers = self._without(
            batch, numbers, self._lacks_key(batch), self._lacking_key, reporter
        )
        is_tombstone = batch.value.is_null()
        if not self._deletes:
            batch, numbers = self._without(
                batch, numbers, is_tombstone, self._lacking_value, reporter
            )
            return self._written(batch, numbers, reporter), None
        deleted = self._deleted(batch.filter(is_tombstone), numbers.filter(is_tombstone), reporter)
        is_value = pc.invert(is_tombstone)
        written = self._written(batch.filter(is_value), numbers.filter(is_value), reporter)
        return written, deleted

    # Records that have no row

    def _without(
        self,
        batch: ConnectBatch,
        numbers: pa.Array,
        is_wrong: pa.BooleanArray | None,
        error: Any,
        reporter: ErrorReporter,
    ) -> tuple[ConnectBatch, pa.Array]:
        if is_wrong is None or not is_wrong.true_count:
            return batch, numbers
        wrong = batch.filter(is_wrong)
        reporter.report(wrong, error(wrong))
        is_right = pc.invert(is_wrong)
        return batch.filter(is_right), numbers.filter(is_right)

    def _lacks_key(self, batch: ConnectBatch) -> pa.BooleanArray | None:
        return batch.key.is_null() if self._key_mode == KEY_RECORD_KEY else None

    def _lacking_key(self, records: ConnectBatch) -> DataError:
        return self._error(records, "a non-null key", "null key")

    def _lacking_value(self, records: ConnectBatch) -> DataError:
        return self._error(
            records,
            "a non-null Struct value and non-null Struct schema",
            "null value",
            f"{DELETE_ENABLED}=false and ",
        )

    def _error(
        self, records: ConnectBatch, required: str, found: str, setting: str = ""
    ) -> DataError:
        return DataError(
            f"Sink connector '{self._name}' is configured with '{setting}{PK_MODE}="
            f"{self._key_mode}' and therefore requires records with {required}, but found record "
            f"at ({describe_record(records)}) with a {found}."
        )

    # Rows

    def _written(
        self, batch: ConnectBatch, numbers: pa.Array, reporter: ErrorReporter
    ) -> RowSet | None:
        if not len(batch):
            return None
        try:
            columns = self._columns(batch)
        except DataError as error:
            reporter.report(batch, error)
            return None
        return _row_set(columns, numbers)

    def _deleted(
        self, tombstones: ConnectBatch, numbers: pa.Array, reporter: ErrorReporter
    ) -> RowSet | None:
        if not len(tombstones):
            return None
        try:
            columns = self._key_columns(tombstones)
        except DataError as error:
            reporter.report(tombstones, error)
            return None
        return _row_set(columns, numbers)

    def _columns(self, batch: ConnectBatch) -> list[tuple[NewColumn, pa.Array]]:
        fields = self._value_fields(batch)
        if self._key_mode == KEY_NONE:
            keys = []
        elif self._key_mode == KEY_RECORD_VALUE:
            wanted = self._key_fields or [name for name, _, _ in fields]
            keys = self._chosen(fields, wanted, "value")
        else:
            keys = self._key_columns(batch)
        names = {column.name for column, _ in keys}
        others = [
            (NewColumn(name, schema, False), values)
            for name, schema, values in fields
            if name not in names and (not self._fields or name in self._fields)
        ]
        if not keys and not others:
            raise DataError(f"The value has no field that {FIELDS_WHITELIST} allows.")
        return [*keys, *others]

    def _key_columns(self, batch: ConnectBatch) -> list[tuple[NewColumn, pa.Array]]:
        if self._key_mode == KEY_KAFKA:
            names = self._key_fields or KAFKA_COLUMNS
            types = (Type.STRING, Type.INT32, Type.INT64)
            arrays = (batch.topic, batch.partition, batch.offset)
            return [
                (NewColumn(name, ConnectSchema(type_), True), values)
                for name, type_, values in zip(names, types, arrays, strict=True)
            ]
        schema = batch.key_schema
        if schema is None:
            raise self._error(batch, "a non-null key schema", "null key schema")
        if schema.type is Type.STRUCT:
            fields = self._struct_fields(schema, batch.key)
            wanted = self._key_fields or [name for name, _, _ in fields]
            return self._chosen(fields, wanted, "key")
        if len(self._key_fields) != 1:
            raise DataError(
                f"The key is a {schema.type}, so {PK_FIELDS} has to name exactly one column."
            )
        if schema.type in (Type.ARRAY, Type.MAP):
            raise DataError(f"A key cannot be a {schema.type}.")
        return [(NewColumn(self._key_fields[0], schema, True), batch.key)]

    def _chosen(
        self,
        fields: Sequence[tuple[str, ConnectSchema, pa.Array]],
        wanted: Sequence[str],
        part: str,
    ) -> list[tuple[NewColumn, pa.Array]]:
        known = {name: (schema, values) for name, schema, values in fields}
        missing = [name for name in wanted if name not in known]
        if missing:
            raise DataError(
                f"{PK_FIELDS} names {', '.join(missing)}, which the {part} does not have. It has: "
                f"{', '.join(known)}."
            )
        return [(NewColumn(name, known[name][0], True), known[name][1]) for name in wanted]

    def _value_fields(self, batch: ConnectBatch) -> list[tuple[str, ConnectSchema, pa.Array]]:
        schema = batch.value_schema
        if schema is not None and schema.type is Type.STRUCT:
            return self._struct_fields(schema, batch.value)
        if schema is not None and schema.type is Type.STRING and schema.name is None:
            return [(self._string_column, schema, batch.value)]
        found = "without schema" if schema is None else f"with schema of type {schema.type}"
        raise DataError(
            f"Sink connector '{self._name}' requires values that are a Struct or a String, but "
            f"found record at ({describe_record(batch)}) with a value {found}. Use a converter "
            "with schemas, such as Avro or JSON with schemas.enable=true."
        )

    def _struct_fields(
        self, schema: ConnectSchema, values: pa.Array
    ) -> list[tuple[str, ConnectSchema, pa.Array]]:
        found = []
        for index, each in enumerate(schema.fields):
            column = pc.struct_field(values, [index])
            default = each.schema.default if each.schema.has_default else None
            if self._replaces_null and default is not None and column.null_count:
                column = pc.fill_null(column, pa.scalar(default, column.type))
            if each.name in self._timestamp_fields:
                found.append((each.name, *self._as_timestamp(each.name, each.schema, column)))
            else:
                found.append((each.name, each.schema, column))
        return found

    def _as_timestamp(
        self, name: str, schema: ConnectSchema, values: pa.Array
    ) -> tuple[ConnectSchema, pa.Array]:
        timestamp = ConnectSchema(Type.INT64, schema.is_optional, TIMESTAMP, 1)
        exact = pa.timestamp(self._timestamp_unit, "UTC")
        if schema.type is Type.INT64:
            values = values if schema.name else pc.cast(values, exact)
        elif schema.type is Type.STRING:
            try:
                values = pc.cast(pc.cast(values, pa.timestamp(self._timestamp_unit)), exact)
            except pa.ArrowInvalid as error:
                raise DataError(f"Field '{name}' is no time: {error}") from error
        else:
            raise DataError(
                f"{TIMESTAMP_FIELDS} has field '{name}', which is a {schema.type} and not an "
                "int64 or a string."
            )
        return timestamp, values


def describe_record(records: ConnectBatch) -> str:
    """Returns the coordinates of the first record."""
    return f"topic='{records.topic[0]}',partition={records.partition[0]},offset={records.offset[0]}"


def _row_set(columns: Sequence[tuple[NewColumn, pa.Array]], numbers: pa.Array) -> RowSet:
    arrays = [values for _, values in columns]
    names = [column.name for column, _ in columns]
    rows = pa.table([*arrays, numbers], names=[*names, SEQUENCE])
    return RowSet(tuple(column for column, _ in columns), rows)
