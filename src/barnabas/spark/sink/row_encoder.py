"""From the rows of a DataFrame to the columns that a producer takes, without a loop over rows.

Columns are found by their names, as Spark's Kafka connector finds them: value, key, topic,
partition, headers, and timestamp; others are left out. With a `valueFormat` the value may be of
any type, and where there is no column `value` all that are not named above are its fields.
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

    from barnabas.columns import Encoder
    from barnabas.columns.format import ColumnFormat

_TYPES = {
    "topic": ("string",),
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "partition": ("int",),
    "headers": ("array<struct<key:string,value:binary>>",),
    "timestamp": ("timestamp",),
}
_AS_THEY_ARE = ("key", "value", "partition", "headers", "timestamp")
_OF_READERS = ("offset", "timestampType")
"""Columns that a frame has because it was read from a topic."""


@dataclass(slots=True, frozen=True)
class EncodedColumn:
    """A column to be encoded: its own, or fields that are one value together."""

    name: str
    fields: tuple[str, ...]
    """Empty where the column itself is the value."""
    format: ColumnFormat
    arrow_type: pa.DataType


@dataclass(slots=True, frozen=True)
class RowShape:
    """Which columns there are, and what is to be done with them."""

    topic: str | None
    """Of all rows; None where each names its own."""
    plain: tuple[str, ...]
    typed: tuple[EncodedColumn, ...]

    def encoder(self) -> RowEncoder:
        return RowEncoder(self)


def shape_of(schema: StructType, options: SinkOptions) -> RowShape:
    """OptionError where the columns are not what the sink can write."""
    columns = {field.name: field.dataType for field in schema.fields}
    if options.topic is None and "topic" not in columns:
        raise OptionError(
            "Nothing says which topic to write to: set the option topic, or have a column topic."
        )
    if "value" not in columns and options.value is None:
        raise OptionError(
            f"There is no column value; there are {', '.join(columns)}. Name one so, or set "
            f"valueFormat to write them all as one value."
        )
    typed = {
        name: _typed(name, schema, options)
        for name, asked in (("key", options.key), ("value", options.value))
        if asked is not None and (name in columns or name == "value")
    }
    for name, kind in columns.items():
        allowed = _TYPES.get(name)
        if allowed is None or name in typed or (name == "topic" and options.topic is not None):
            continue
        if kind.simpleString() not in allowed:
            advice = f"; {name}Format says how to encode it" if name in ("key", "value") else ""
            must = " or ".join(allowed)
            raise OptionError(f"Column {name} is {kind.simpleString()} and must be {must}{advice}.")
    plain = tuple(name for name in _AS_THEY_ARE if name in columns and name not in typed)
    return RowShape(options.topic, plain, tuple(typed.values()))


def _typed(name: str, schema: StructType, options: SinkOptions) -> EncodedColumn:
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType as Struct

    apart = {*_TYPES, *_OF_READERS}
    own = [field for field in schema.fields if field.name == name]
    fields = own or [field for field in schema.fields if field.name not in apart]
    if not fields:
        raise OptionError(f"There is no column {name}, and none to make it of.")
    import pyarrow as pa

    arrow = to_arrow_schema(Struct(fields), timezone="UTC")
    arrow_type = arrow.field(0).type if own else pa.struct(list(arrow))
    names = () if own else tuple(field.name for field in fields)
    return EncodedColumn(name, names, column_format(name, options, arrow_type), arrow_type)


class RowEncoder:
    """Used for the batches of one task."""

    def __init__(self, shape: RowShape) -> None:
        self._shape = shape
        self._encoders: dict[str, Encoder] = {
            each.name: each.format.encoder(each.arrow_type) for each in shape.typed
        }

    def by_topic(self, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows of each topic, in their order, with the columns that producers know."""
        if not rows.num_rows:
            return
        encoded = self._encoded(rows)
        if self._shape.topic is not None:
            yield self._shape.topic, encoded
            return
        yield from _split(rows.column("topic"), encoded)

    def _encoded(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        columns: dict[str, Any] = {name: rows.column(name) for name in self._shape.plain}
        for each in self._shape.typed:
            columns[each.name] = self._encoders[each.name].encode(_values(rows, each))
        return pa.RecordBatch.from_pydict(columns)


def _values(rows: pa.RecordBatch, typed: EncodedColumn) -> pa.Array:
    import pyarrow as pa

    if not typed.fields:
        values = rows.column(typed.name)
    else:
        parts = [rows.column(name) for name in typed.fields]
        values = pa.StructArray.from_arrays(parts, names=list(typed.fields))
    return values if values.type == typed.arrow_type else values.cast(typed.arrow_type)


def _split(topics: pa.Array, rows: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    import pyarrow.compute as pc

    if topics.null_count:
        raise ValueError("A row has no topic: the column topic is null and no option topic is set.")
    found = topics.dictionary_encode()
    if len(found.dictionary) == 1:
        yield found.dictionary[0].as_py(), rows
        return
    order = pc.array_sort_indices(found.indices)  # which is stable
    runs = pc.run_end_encode(found.indices.take(order))
    rows = rows.take(order)
    begin = 0
    for code, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield found.dictionary[code].as_py(), rows.slice(begin, end - begin)
        begin = end
