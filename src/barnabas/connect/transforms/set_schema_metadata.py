"""SetSchemaMetadata: another name and version of the schema of structs.

Kafka has no others: it fails for all other schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting, Importance
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.data.schema import ConnectSchema, Type
from barnabas.connect.errors import DataError, InvalidConfigError
from barnabas.connect.transforms.columns import (
    Column,
    ColumnTransform,
    Failures,
    Part,
    field_columns,
    struct_column,
)
from barnabas.connect.transforms.settings import REPLACE_NULL_WITH_DEFAULT


class _SetSchemaMetadata(ColumnTransform):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "schema.name",
                ConfigType.STRING,
                None,
                "The name of the schema.",
                Importance.HIGH,
            ),
            ConnectorSetting(
                "schema.version",
                ConfigType.INT,
                None,
                "The version of the schema.",
                Importance.HIGH,
            ),
            REPLACE_NULL_WITH_DEFAULT,
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        self._name: str | None = self.settings["schema.name"]
        self._version: int | None = self.settings["schema.version"]
        if self._name is None and self._version is None:
            raise InvalidConfigError("Neither schema name nor version configured")
        self._replaces_nulls: bool = self.settings["replace.null.with.default"]

    def convert(self, column: Column, batch: ConnectBatch, failures: Failures) -> Column:
        if column.schema is None:
            failures.add_all(
                column.values.is_valid(),
                DataError("Schema required for [updating schema metadata]"),
            )
            return column
        schema = self._updated(column.schema)
        if schema.type is not Type.STRUCT:
            raise DataError("Cannot list fields on non-struct type")
        fields = field_columns(column, replaces_nulls=self._replaces_nulls)
        return struct_column(schema, fields, column.values, failures)

    def _updated(self, schema: ConnectSchema) -> ConnectSchema:
        return replace(
            schema,
            name=schema.name if self._name is None else self._name,
            version=schema.version if self._version is None else self._version,
        )


class SetSchemaMetadataKey(_SetSchemaMetadata):
    part = Part.KEY


class SetSchemaMetadataValue(_SetSchemaMetadata):
    part = Part.VALUE
