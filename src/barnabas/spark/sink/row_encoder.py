"""Encodes the rows of a DataFrame as the columns that a producer accepts, without a loop over rows.

Columns have the names of Spark's Kafka connector: value, key, topic, partition, headers, and
timestamp; other columns are ignored. With a `valueFormat` the value may have any type, and if there
is no column `value`, all other columns are the fields of the value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas.spark.options_parser import OptionError
from barnabas.spark.sink.formats import column_format
from barnabas.spark.sink.options import SinkOptions

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from barnabas.columns import ColumnEncoder
    from barnabas.columns.format import ColumnFormat

_TYPES = {
    "topic": ("string",),
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
    "timestamp": ("timestamp",),
}
_PLAIN_COLUMNS = ("key", "value", "partition", "headers", "timestamp")
_SOURCE_COLUMNS = ("offset", "timestampType")
"""Columns of a frame that was read from a topic."""


@dataclass(slots=True, frozen=True)
class EncodedColumn:
    """A key or value with a format: one column, or several columns as fields of one value."""

    name: str
    fields: tuple[str, ...]
    """The columns that are fields of the value; empty if the column itself is the value."""
    format: ColumnFormat
    arrow_type: pa.DataType


@dataclass(slots=True, frozen=True)
class RowLayout:
    """The columns to write, by how they are written."""

    topic: str | None
    """The topic of all rows; None if each row names its own."""
    plain_columns: tuple[str, ...]
    encoded_columns: tuple[EncodedColumn, ...]

    def encoder(self) -> RowEncoder:
        return RowEncoder(self)


def resolve_layout(schema: StructType, options: SinkOptions) -> RowLayout:
    """Raises OptionError if the sink cannot write the columns."""
    columns = {field.name: field.dataType for field in schema.fields}
    if options.topic is None and "topic" not in columns:
        raise OptionError(
            "There is no topic to write to: set the option topic, or add a column topic."
        )
    if "value" not in columns and options.value is None:
        raise OptionError(
            f"There is no column value; there are {', '.join(columns)}. Rename one, or set "
            f"valueFormat to write them all as one value."
        )
    encoded = {
        name: _encoded_column(name, schema, options)
        for name, format_ in (("key", options.key), ("value", options.value))
        if format_ is not None and (name in columns or name == "value")
    }
    for name, data_type in columns.items():
        allowed = _TYPES.get(name)
        if allowed is None or name in encoded or (name == "topic" and options.topic is not None):
            continue
        if data_type.simpleString() not in allowed:
            advice = f"; set {name}Format to encode it" if name in ("key", "value") else ""
            expected = " or ".join(allowed)
            raise OptionError(
                f"Column {name} is {data_type.simpleString()} and must be {expected}{advice}."
            )
    plain = tuple(name for name in _PLAIN_COLUMNS if name in columns and name not in encoded)
    return RowLayout(options.topic, plain, tuple(encoded.values()))


def _encoded_column(name: str, schema: StructType, options: SinkOptions) -> EncodedColumn:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType as Struct

    excluded = {*_TYPES, *_SOURCE_COLUMNS}
    own = [field for field in schema.fields if field.name == name]
    fields = own or [field for field in schema.fields if field.name not in excluded]
    if not fields:
        raise OptionError(
            f"There is no column {name}, and no other column to encode as the {name}."
        )
    import pyarrow as pa

    arrow = to_arrow_schema(Struct(fields), timezone="UTC")
    arrow_type = arrow.field(0).type if own else pa.struct(list(arrow))
    names = () if own else tuple(field.name for field in fields)
    return EncodedColumn(name, names, column_format(name, options, arrow_type), arrow_type)


class RowEncoder:
    """Encodes the batches of one task."""

    def __init__(self, layout: RowLayout) -> None:
        self._layout = layout
        self._encoders: dict[str, ColumnEncoder] = {
            column.name: column.format.encoder(column.arrow_type)
            for column in layout.encoded_columns
        }

    def by_topic(self, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Yields the rows of each topic, in their order, with the columns of a producer."""
        if not rows.num_rows:
            return
        batch = self._encode_columns(rows)
        if self._layout.topic is not None:
            yield self._layout.topic, batch
            return
        yield from _split(rows.column("topic"), batch)

    def _encode_columns(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        columns: dict[str, Any] = {name: rows.column(name) for name in self._layout.plain_columns}
        for column in self._layout.encoded_columns:
            columns[column.name] = self._encoders[column.name].encode(_values(rows, column))
        return pa.RecordBatch.from_pydict(columns)


def _values(rows: pa.RecordBatch, column: EncodedColumn) -> pa.Array:
    import pyarrow as pa

    if not column.fields:
        values = rows.column(column.name)
    else:
        parts = [rows.column(name) for name in column.fields]
        values = pa.StructArray.from_arrays(parts, names=list(column.fields))
    return values if values.type == column.arrow_type else values.cast(column.arrow_type)


def _split(topics: pa.Array, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    import pyarrow.compute as pc

    if topics.null_count:
        raise ValueError("A row has no topic: the column topic is null and no option topic is set.")
    encoded = topics.dictionary_encode()
    if len(encoded.dictionary) == 1:
        yield encoded.dictionary[0].as_py(), rows
        return
    order = pc.array_sort_indices(encoded.indices)  # which is stable
    runs = pc.run_end_encode(encoded.indices.take(order))
    rows = rows.take(order)
    begin = 0
    for code, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield encoded.dictionary[code].as_py(), rows.slice(begin, end - begin)
        begin = end
