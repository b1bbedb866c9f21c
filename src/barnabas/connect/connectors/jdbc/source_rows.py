"""The rows of a result as records, and the positions after them."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.connect.connector import SourceBatch
from barnabas.connect.connectors.jdbc.dialect import ColumnReader, Dialect, SourceTypes
from barnabas.connect.connectors.jdbc.source_query import RowPositions, column_of, integers_of
from barnabas.connect.connectors.jdbc.source_tables import ReadTarget
from barnabas.connect.data.batch import ConnectBatch, source_batch
from barnabas.connect.data.schema import ConnectSchema, SchemaField, Type
from barnabas.connect.errors import ConnectError, DataError

log = logging.getLogger(__name__)


class SourceRows:
    """Reads the rows of tables and queries as the settings say."""

    def __init__(self, dialect: Dialect, types: SourceTypes) -> None:
        self._dialect = dialect
        self._types = types
        self._dropped: set[tuple[str, str]] = set()

    def result(self, target: ReadTarget, schema: pa.Schema) -> ResultRows:
        """Returns what turns the batches of one result into records."""
        return ResultRows(
            target, list(self._readers(target, schema)), list(self._time_readers(target, schema))
        )

    def _on_dropped(self, target: ReadTarget, field: pa.Field) -> None:
        name = (str(target.table), field.name)
        if name not in self._dropped:
            self._dropped.add(name)
            log.warning(
                "Column %s of %s is left out: Connect has no type for %s.",
                field.name,
                target.table or "the query",
                (field.metadata or {}).get(b"POSTGRESQL:type", str(field.type).encode()).decode(),
            )

    def _readers(self, target: ReadTarget, schema: pa.Schema) -> Iterator[tuple[int, ColumnReader]]:
        for index, field in enumerate(schema):
            column = target.columns.get(field.name.lower())
            reader = self._dialect.reader(field, column, self._types)
            if reader is None:
                self._on_dropped(target, field)
                continue
            if column is None or column.is_nullable:
                reader = ColumnReader(reader.name, reader.schema.as_optional(), reader.convert)
            yield index, reader

    def _time_readers(
        self, target: ReadTarget, schema: pa.Schema
    ) -> Iterator[tuple[int, ColumnReader]]:
        """Yields readers that give the times of the columns that positions are made of, in
        microseconds."""
        types = SourceTypes("none", self._dialect.timezone, "micros_long")
        names = {name.lower() for name in target.query.timestamps}
        for index, field in enumerate(schema):
            if field.name.lower() in names:
                column = target.columns.get(field.name.lower())
                reader = self._dialect.reader(field, column, types)
                if reader is not None and reader.schema.type is Type.INT64:
                    yield index, reader


class ResultRows:
    """Turns the batches of one result into records."""

    def __init__(
        self,
        target: ReadTarget,
        readers: list[tuple[int, ColumnReader]],
        time_readers: list[tuple[int, ColumnReader]],
    ) -> None:
        self._target = target
        self._readers = readers
        fields = tuple(SchemaField(reader.name, reader.schema) for _, reader in readers)
        name = None if target.table is None else target.table.name
        self._schema = ConnectSchema(Type.STRUCT, name=name, fields=fields)
        self._times = {reader.name.lower(): reader.convert for _, reader in time_readers}

    def records(self, batch: pa.RecordBatch) -> ConnectBatch:
        arrays = [self._convert(reader, batch.column(index)) for index, reader in self._readers]
        names = [reader.name for _, reader in self._readers]
        if arrays:
            value = pa.StructArray.from_arrays(arrays, names)
        else:
            value = pa.array([{}] * batch.num_rows, pa.struct([]))
        return source_batch(self._target.topic, self._schema, value)

    def _convert(self, reader: ColumnReader, values: pa.Array) -> pa.Array:
        try:
            return reader.convert(values)
        except pa.ArrowException as error:
            raise DataError(
                f"A value in column '{reader.name}' of {self._target.table or 'the query'} does "
                f"not fit its type: {error}"
            ) from error

    def positions(self, batch: pa.RecordBatch) -> RowPositions:
        query = self._target.query
        incrementing = times = None
        if query.incrementing is not None:
            incrementing = integers_of(column_of(batch, query.incrementing), query.incrementing)
        if query.timestamps:
            columns = [self._time_us(batch, name) for name in query.timestamps]
            times = columns[0] if len(columns) == 1 else pc.coalesce(*columns)
        return RowPositions(incrementing, times)

    def _time_us(self, batch: pa.RecordBatch, name: str) -> pa.Array:
        values = column_of(batch, name)
        convert = self._times.get(name.lower())
        if convert is None:
            raise ConnectError(f"Column '{name}' has no times.")
        return convert(values)

    def batch(self, rows: pa.RecordBatch) -> SourceBatch:
        after = self.positions(rows)
        return SourceBatch(self.records(rows), after.after(rows.num_rows - 1))
