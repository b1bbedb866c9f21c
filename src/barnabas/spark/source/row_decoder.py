"""From the connector's columns to those that were declared, keys and values decoded.

A record that cannot be decoded ends the read, or is left out, or has nulls instead and a column
that tells what it was and why, as `mode` says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from barnabas.spark.options_parser import OptionError
from barnabas.spark.source.connection import SourceError
from barnabas.spark.source.formats import ColumnFormats, CorruptRecordMode, decoder, formats_of
from barnabas.spark.source.option_names import parse_options
from barnabas.spark.source.declared_schema import SIZE, declared_schema

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from barnabas.columns.format import ColumnFormat

_CORRUPT_FIELDS = [
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("reason", pa.string()),
]


def row_decoder(
    options: Mapping[str, str], schema: StructType, formats: ColumnFormats | None
) -> RowDecoder:
    """OptionError where the schema has columns that there are not."""
    asked = parse_options(options)
    formats = formats or formats_of(asked)
    there = declared_schema(asked, formats)
    types = {field.name: field.dataType for field in there}
    for field in schema:
        if types.get(field.name) != field.dataType:
            raise OptionError(
                f"The schema has a column {field.name} of type {field.dataType.simpleString()};"
                f" there are {there.simpleString()}."
            )
    return RowDecoder(tuple(field.name for field in schema), formats)


@dataclass(slots=True, frozen=True)
class RowDecoder:
    """The columns that are handed to Spark, in their order."""

    names: tuple[str, ...]
    formats: ColumnFormats

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        reasons = [
            reason
            for name, format_ in (("key", self.formats.key), ("value", self.formats.value))
            if format_ is not None and (reason := _decode(columns, name, format_)) is not None
        ]
        why = _together(reasons)
        if why is not None and self.formats.mode is CorruptRecordMode.FAILFAST:
            raise _undecodable(batch, why)
        if SIZE in self.names:
            columns[SIZE] = _size(batch)
        if self.formats.has_corrupt_column:
            columns[self.formats.corrupt_column] = _corrupt(batch, why)
        shaped = pa.RecordBatch.from_pydict({name: columns[name] for name in self.names})
        if why is not None and self.formats.mode is CorruptRecordMode.DROPMALFORMED:
            return shaped.filter(why.is_null())
        return shaped


def _decode(
    columns: dict[str, pa.Array], name: str, format_: ColumnFormat
) -> pa.StringArray | None:
    """Put the values in place of the payloads; why some could not be decoded."""
    import pyarrow.compute as pc  # not in the driver, which has no rows

    decoded = decoder(format_).decode(columns[name])
    columns[name] = decoded.values
    if decoded.reasons is None:
        return None
    return pc.binary_join_element_wise(f"{name}: ", decoded.reasons, "")


def _size(batch: pa.RecordBatch) -> pa.Int32Array:
    import pyarrow.compute as pc

    key, value = (pc.binary_length(batch.column(name)).fill_null(0) for name in ("key", "value"))
    return pc.add(key, value)


def _together(reasons: list[pa.StringArray]) -> pa.StringArray | None:
    """All that is wrong with each record; None if nothing is with any."""
    import pyarrow.compute as pc

    if len(reasons) < 2:
        return reasons[0] if reasons else None
    return pc.coalesce(pc.binary_join_element_wise(*reasons, " "), *reasons)


def _corrupt(batch: pa.RecordBatch, why: pa.StringArray | None) -> pa.StructArray:
    if why is None:
        return pa.nulls(batch.num_rows, pa.struct(_CORRUPT_FIELDS))
    cells = [batch.column("key"), batch.column("value"), why]
    return pa.StructArray.from_arrays(cells, fields=_CORRUPT_FIELDS, mask=why.is_null())


def _undecodable(batch: pa.RecordBatch, why: pa.StringArray) -> SourceError:
    import pyarrow.compute as pc

    first = pc.index(why.is_valid(), True).as_py()
    topic, partition, offset = (
        batch.column(name)[first].as_py() for name in ("topic", "partition", "offset")
    )
    return SourceError(
        f"{topic} [{partition}] offset {offset} cannot be decoded: {why[first].as_py()} Set mode to"
        f" PERMISSIVE to have such records in a column of their own, or to DROPMALFORMED."
    )
