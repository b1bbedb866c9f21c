"""ExtractField: a field instead of the key or value that has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.data.schema import Type
from barnabas.connect.errors import DataError, IllegalFieldError
from barnabas.connect.transforms.columns import (
    Column,
    ColumnTransform,
    Failures,
    Part,
    java_class,
    require_struct,
    with_default,
    wrong_kind,
)
from barnabas.connect.transforms.field_path import FIELD_SYNTAX_VERSION, steps_of
from barnabas.connect.transforms.settings import REPLACE_NULL_WITH_DEFAULT

if TYPE_CHECKING:
    import pyarrow as pa

_NESTED = "nested field access"


class _ExtractField(ColumnTransform):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "field", ConfigType.STRING, doc="The name or the path of the field to extract."
            ),
            REPLACE_NULL_WITH_DEFAULT,
            FIELD_SYNTAX_VERSION,
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        self._path: str = self.settings["field"]
        self._steps = steps_of(self._path, self.settings["field.syntax.version"])
        self._replaces_nulls: bool = self.settings["replace.null.with.default"]

    def separates_nulls(self, column: Column) -> bool:
        """A tombstone must not get the default of the field."""
        schema = column.schema
        for step in self._steps:
            field = None if schema is None else schema.field(step)
            schema = None if field is None else field.schema
        return schema is None or schema.has_default

    def convert(self, column: Column, batch: ConnectBatch, failures: Failures) -> Column:
        return self._extracted(require_struct(column, "field extraction"), failures)

    def _extracted(self, column: Column, failures: Failures) -> Column:
        for index, step in enumerate(self._steps):
            is_last = index + 1 == len(self._steps)
            if index:
                column = _nested_struct(column, failures)
            if column.schema is None:
                column = _map_entry(column, step)
            else:
                column = self._struct_field(column, step, is_last=is_last)
        return column

    def _struct_field(self, column: Column, name: str, *, is_last: bool) -> Column:
        import pyarrow.compute as pc

        assert column.schema is not None
        if column.schema.type is not Type.STRUCT:
            raise DataError("Cannot look up fields on non-struct type")
        names = [each.name for each in column.schema.fields]
        if name not in names:
            raise IllegalFieldError(f"Unknown field: {self._path}")
        index = names.index(name)
        schema = column.schema.fields[index].schema
        values = pc.struct_field(column.values, [index])
        if values.null_count and (self._replaces_nulls or not is_last):
            values = with_default(values, column.values, schema)
        return Column(schema, values)


def _nested_struct(column: Column, failures: Failures) -> Column:
    import pyarrow as pa

    if column.schema is not None:
        return column
    try:
        return require_struct(column, _NESTED)
    except DataError:
        found = java_class(column.values.type, None).removeprefix("class ")
        failures.add_all(column.values.is_valid(), wrong_kind(None, _NESTED, found))
        return Column(None, pa.nulls(len(column)))


def _map_entry(column: Column, name: str) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc

    arrow_type = column.values.type
    if pa.types.is_null(arrow_type) or arrow_type.get_field_index(name) < 0:
        return Column(None, _nulls(column))
    return Column(None, pc.struct_field(column.values, [arrow_type.get_field_index(name)]))


def _nulls(column: Column) -> pa.NullArray:
    import pyarrow as pa

    return pa.nulls(len(column))


class ExtractFieldKey(_ExtractField):
    part = Part.KEY


class ExtractFieldValue(_ExtractField):
    part = Part.VALUE
