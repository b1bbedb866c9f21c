"""Flatten: the fields of structs within a struct become fields of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.data.schema import (
    NO_DEFAULT,
    ConnectSchema,
    SchemaField,
    Type,
    java_type_name,
)
from barnabas.connect.errors import DataError
from barnabas.connect.transforms.columns import (
    Column,
    ColumnTransform,
    Failures,
    Part,
    require_struct,
    struct_column,
    struct_schema_like,
    with_default,
)

if TYPE_CHECKING:
    import pyarrow as pa

_PURPOSE = "flattening"


class _Flatten(ColumnTransform):
    passes_nulls = True

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "delimiter",
                ConfigType.STRING,
                ".",
                "What is between the names of a field and of the field within it.",
            )
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        self._delimiter: str = self.settings["delimiter"]

    def convert(self, column: Column, batch: ConnectBatch, failures: Failures) -> Column:
        column = require_struct(column, _PURPOSE)
        leaves: dict[str, Column] = {}
        if column.schema is None:
            self._flatten_map(column.values, "", leaves, failures)
            return struct_column(None, leaves, column.values, failures)
        fields: list[SchemaField] = []
        default = column.schema.default if column.schema.has_default else None
        self._flatten_schema(column.schema, "", column.schema.is_optional, default, fields)
        schema = struct_schema_like(column.schema, fields)
        self._flatten_struct(column, "", leaves)
        leaves = {
            each.name: Column(each.schema, leaves[each.name].values) for each in schema.fields
        }
        return struct_column(schema, leaves, column.values, failures)

    def _name(self, prefix: str, name: str) -> str:
        return f"{prefix}{self._delimiter}{name}" if prefix else name

    def _flatten_map(
        self, values: pa.Array, prefix: str, leaves: dict[str, Column], failures: Failures
    ) -> None:
        import pyarrow as pa

        for field, child in zip(values.type, values.flatten(), strict=True):
            name = self._name(prefix, field.name)
            if pa.types.is_struct(child.type):
                self._flatten_map(child, name, leaves, failures)
                continue
            if pa.types.is_decimal(child.type) or pa.types.is_temporal(child.type):
                error = DataError(
                    f"Flatten transformation was passed a value of type "
                    f"{java_type_name(child.type)} which is not supported by Connect's data API"
                )
                failures.add_all(child.is_valid(), error)
            leaves[name] = Column(None, child)

    def _flatten_schema(
        self,
        schema: ConnectSchema,
        prefix: str,
        is_optional: bool,
        default: Mapping[str, Any] | None,
        fields: list[SchemaField],
    ) -> None:
        """Adds the schemas of the leaves.

        A leaf is optional if a struct around it is, and has its default in the default of such a
        struct if it has none itself.
        """
        for each in schema.fields:
            name = self._name(prefix, each.name)
            leaf = each.schema
            field_default = leaf.default if leaf.has_default else None
            if field_default is None and default is not None:
                field_default = default.get(each.name)
            is_leaf_optional = is_optional or leaf.is_optional
            if leaf.type is Type.STRUCT:
                self._flatten_schema(leaf, name, is_leaf_optional, field_default, fields)
                continue
            if leaf.type is Type.MAP:
                raise DataError(
                    "Flatten transformation does not support MAP for record with schemas "
                    f"(for field {name})."
                )
            updated = replace(
                leaf,
                is_optional=is_leaf_optional,
                default=NO_DEFAULT if field_default is None else field_default,
            )
            fields.append(SchemaField(name, updated))

    def _flatten_struct(self, column: Column, prefix: str, leaves: dict[str, Column]) -> None:
        """Adds the leaves, null where a struct around them is null."""
        assert column.schema is not None
        parents = column.values
        for each, child in zip(column.schema.fields, parents.flatten(), strict=True):
            name = self._name(prefix, each.name)
            if each.schema.type is Type.STRUCT:
                self._flatten_struct(Column(each.schema, child), name, leaves)
                continue
            values = with_default(child, parents, each.schema)
            leaves[name] = Column(each.schema, values)


class FlattenKey(_Flatten):
    part = Part.KEY


class FlattenValue(_Flatten):
    part = Part.VALUE
