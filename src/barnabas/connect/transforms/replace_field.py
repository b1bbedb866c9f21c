"""ReplaceField: leaves fields out, and renames them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting, Importance
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.data.schema import SchemaField, Type
from barnabas.connect.errors import DataError
from barnabas.connect.transforms.columns import (
    Column,
    ColumnTransform,
    Failures,
    Part,
    field_columns,
    require_struct,
    struct_column,
    struct_schema_like,
)
from barnabas.connect.transforms.settings import REPLACE_NULL_WITH_DEFAULT, field_list, pairs


def _valid_renames(name: str, value: Any) -> None:
    pairs(name, value or [])


class _ReplaceField(ColumnTransform):
    passes_nulls = True

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            field_list("exclude", "Fields to leave out.", Importance.MEDIUM, is_required=False),
            field_list(
                "include",
                "Fields to keep, without those of exclude. All if it is empty.",
                Importance.MEDIUM,
                is_required=False,
            ),
            ConnectorSetting(
                "renames",
                ConfigType.LIST,
                [],
                "Fields to rename, as old:new.",
                Importance.MEDIUM,
                _valid_renames,
            ),
            REPLACE_NULL_WITH_DEFAULT,
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        self._exclude = frozenset(self.settings["exclude"])
        self._include = frozenset(self.settings["include"])
        self._renames = pairs("renames", list(self.settings["renames"]))
        self._originals = {new: old for old, new in self._renames.items()}
        self._replaces_nulls: bool = self.settings["replace.null.with.default"]

    def convert(self, column: Column, batch: ConnectBatch, failures: Failures) -> Column:
        column = require_struct(column, "field replacement")
        fields = field_columns(column, replaces_nulls=self._replaces_nulls)
        kept = [name for name in fields if self._is_kept(name)]
        if column.schema is None:
            renamed = {self._renames.get(name, name): fields[name] for name in kept}
            return struct_column(None, renamed, column.values, failures)
        schema = struct_schema_like(
            column.schema,
            [SchemaField(self._renames.get(name, name), _schema_of(fields[name])) for name in kept],
        )
        replaced = {each.name: self._original(each, fields) for each in schema.fields}
        return struct_column(schema, replaced, column.values, failures)

    def _is_kept(self, name: str) -> bool:
        return name not in self._exclude and (not self._include or name in self._include)

    def _original(self, field: SchemaField, fields: Mapping[str, Column]) -> Column:
        """Returns the values of a field of the result.

        A field whose name another one is renamed to has the values of that one, as in Kafka.
        """
        name = self._originals.get(field.name, field.name)
        if name not in fields:
            raise DataError(f"{name} is not a valid field name")
        original = fields[name]
        if original.values.type != field.schema.arrow_type():
            type_ = Type.STRUCT if original.schema is None else original.schema.type
            raise DataError(
                f"Invalid Java object for schema with type {field.schema.type.name}: "
                f'{type_.name} for field: "{field.name}"'
            )
        return Column(field.schema, original.values)


def _schema_of(column: Column) -> Any:
    return column.schema


class ReplaceFieldKey(_ReplaceField):
    part = Part.KEY


class ReplaceFieldValue(_ReplaceField):
    part = Part.VALUE
