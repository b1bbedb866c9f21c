"""Decodes keys and values, and returns the declared columns.

Depending on `mode`, a record that cannot be decoded fails the read, is dropped, or has nulls and a
column with its payload and the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from barnabas.spark.options_parser import OptionError
from barnabas.spark.source.connection import SourceError
from barnabas.spark.source.declared_schema import SIZE, declared_schema
from barnabas.spark.source.formats import (
    ColumnFormats,
    CorruptRecordMode,
    decoder,
    formats_from_options,
)
from barnabas.spark.source.option_names import parse_options

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
    """Raises OptionError if the schema has a column that the source does not have."""
    parsed = parse_options(options)
    formats = formats or formats_from_options(parsed)
    declared = declared_schema(parsed, formats)
    types = {field.name: field.dataType for field in declared}
    for field in schema:
        if types.get(field.name) != field.dataType:
            raise OptionError(
                f"The schema has a column {field.name} of type {field.dataType.simpleString()};"
                f" the source has {declared.simpleString()}."
            )
    return RowDecoder(tuple(field.name for field in schema), formats)


@dataclass(slots=True, frozen=True)
class RowDecoder:
    """Decodes batches to the columns `names`, in their order."""

    names: tuple[str, ...]
    formats: ColumnFormats

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        column_reasons = [
            reason
            for name, format_ in (("key", self.formats.key), ("value", self.formats.value))
            if format_ is not None and (reason := _decode(columns, name, format_)) is not None
        ]
        reasons = _join_reasons(column_reasons)
        if reasons is not None and self.formats.mode is CorruptRecordMode.FAILFAST:
            raise _decode_error(batch, reasons)
        if SIZE in self.names:
            columns[SIZE] = _size(batch)
        if self.formats.has_corrupt_column:
            columns[self.formats.corrupt_column] = _corrupt_column(batch, reasons)
        decoded = pa.RecordBatch.from_pydict({name: columns[name] for name in self.names})
        if reasons is not None and self.formats.mode is CorruptRecordMode.DROPMALFORMED:
            return decoded.filter(reasons.is_null())
        return decoded


def _decode(
    columns: dict[str, pa.Array], name: str, format_: ColumnFormat
) -> pa.StringArray | None:
    """Replace payloads by values. Returns the reasons for those that cannot be decoded."""
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


def _join_reasons(reasons: list[pa.StringArray]) -> pa.StringArray | None:
    """Returns the joined reasons of each record; None if all records were decoded."""
    import pyarrow.compute as pc

    if len(reasons) < 2:
        return reasons[0] if reasons else None
    return pc.coalesce(pc.binary_join_element_wise(*reasons, " "), *reasons)


def _corrupt_column(batch: pa.RecordBatch, reasons: pa.StringArray | None) -> pa.StructArray:
    if reasons is None:
        return pa.nulls(batch.num_rows, pa.struct(_CORRUPT_FIELDS))
    columns = [batch.column("key"), batch.column("value"), reasons]
    return pa.StructArray.from_arrays(columns, fields=_CORRUPT_FIELDS, mask=reasons.is_null())


def _decode_error(batch: pa.RecordBatch, reasons: pa.StringArray) -> SourceError:
    import pyarrow.compute as pc

    first = pc.index(reasons.is_valid(), True).as_py()
    topic, partition, offset = (
        batch.column(name)[first].as_py() for name in ("topic", "partition", "offset")
    )
    return SourceError(
        f"{topic} [{partition}] offset {offset} cannot be decoded: {reasons[first].as_py()} Set"
        f" mode to PERMISSIVE to get such records in a separate column, or to DROPMALFORMED."
    )
