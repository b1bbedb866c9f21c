"""ValueToKey: a key of fields of the value."""

from __future__ import annotations

from collections.abc import Mapping

from barnabas.connect.config_def import ConfigDef, Importance
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.data.schema import ConnectSchema, Type
from barnabas.connect.errors import DataError
from barnabas.connect.transforms.columns import (
    Column,
    Failures,
    Part,
    column_of,
    field_columns,
    reject_nulls,
    require_struct,
    struct_column,
    struct_schema_like,
    transformed,
)
from barnabas.connect.transforms.settings import REPLACE_NULL_WITH_DEFAULT, field_list, unique
from barnabas.connect.transforms.transform import Transform, Transformed

_PURPOSE = "copying fields from value to key"


class ValueToKey(Transform):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            field_list(
                "fields",
                "Fields of the value that the key gets.",
                Importance.HIGH,
                is_required=True,
            ),
            REPLACE_NULL_WITH_DEFAULT,
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        self._fields = unique(self.settings["fields"])
        self._replaces_nulls: bool = self.settings["replace.null.with.default"]

    def apply(self, batch: ConnectBatch) -> Transformed:
        failures = Failures(len(batch))
        value = column_of(batch, Part.VALUE)
        reject_nulls(value, _PURPOSE, failures)
        try:
            key = self._key(value, failures)
        except DataError as error:
            failures.add_all(value.values.is_valid(), error)
            return transformed(batch, failures)
        return transformed(batch.with_key(key.schema, key.values), failures)

    def _key(self, value: Column, failures: Failures) -> Column:
        import pyarrow as pa

        value = require_struct(value, _PURPOSE)
        fields = field_columns(value, replaces_nulls=self._replaces_nulls)
        if value.schema is None:
            missing = Column(None, pa.nulls(len(value)))
            copied = {name: fields.get(name, missing) for name in self._fields}
            return struct_column(None, copied, value.values, failures)
        for name in self._fields:
            if name not in fields:
                raise DataError(f"Field does not exist: {name}")
        copied = {name: fields[name] for name in self._fields}
        schemas = {each.name: each.schema for each in value.schema.fields}
        schema = struct_schema_like(
            ConnectSchema(Type.STRUCT), {name: schemas[name] for name in self._fields}
        )
        return struct_column(schema, copied, value.values, failures)
