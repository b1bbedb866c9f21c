"""HoistField: a struct or map whose only field is the key or value."""

from __future__ import annotations

from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.data.schema import struct_schema
from barnabas.connect.transforms.columns import (
    Column,
    ColumnTransform,
    Failures,
    Part,
    struct_column,
)


class _HoistField(ColumnTransform):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "field", ConfigType.STRING, doc="The name of the field that is created."
            )
        )

    def separates_nulls(self, column: Column) -> bool:
        return True

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
