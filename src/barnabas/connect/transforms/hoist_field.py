"""HoistField: a struct or map whose only field is the key or value."""

from __future__ import annotations

from barnabas.connect.config_def import ConfigDef, ConfigType, Setting
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.data.schema import struct_schema
from barnabas.connect.transforms.columns import (
    Column,
    ColumnTransform,
    Failures,
    Part,
    allows_nulls,
    column_of,
    row_numbers,
    struct_column,
    with_column,
)
from barnabas.connect.transforms.transform import Transformed


class _HoistField(ColumnTransform):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            Setting("field", ConfigType.STRING, doc="The name of the field that is created.")
        )

    def apply(self, batch: ConnectBatch) -> Transformed:
        """A null that its schema does not allow has none: it becomes a map."""
        import pyarrow.compute as pc

        column = column_of(batch, self.part)
        nulls = column.values.null_count
        if column.schema is None or allows_nulls(column.schema) or not nulls:
            return super().apply(batch)
        rows = row_numbers(len(batch))
        is_null = column.values.is_null()
        without = with_column(batch, self.part, Column(None, column.values)).filter(is_null)
        parts = [(super().apply(without), rows.filter(is_null))]
        if nulls < len(batch):
            is_valid = pc.invert(is_null)
            parts.append((super().apply(batch.filter(is_valid)), rows.filter(is_valid)))
        return Transformed(
            [(each, numbers.take(taken)) for done, numbers in parts for each, taken in done.batches]
        )

    def convert(self, column: Column, batch: ConnectBatch, failures: Failures) -> Column:
        import pyarrow as pa

        name = self.settings["field"]
        schema = None if column.schema is None else struct_schema({name: column.schema})
        wholes = pa.repeat(pa.scalar(True), len(column))
        return struct_column(schema, {name: column}, wholes, failures)


class HoistFieldKey(_HoistField):
    part = Part.KEY


class HoistFieldValue(_HoistField):
    part = Part.VALUE
