"""Cast: other types of fields, or of whole keys and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from barnabas.connect.config_def import (
    ConfigDef,
    ConfigType,
    ConnectorSetting,
    Importance,
    invalid_value,
)
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.data.schema import NO_DEFAULT, ConnectSchema, SchemaField, Type
from barnabas.connect.errors import DataError, InvalidConfigError
from barnabas.connect.transforms.columns import (
    Column,
    ColumnTransform,
    Failures,
    Part,
    declared_column,
    field_columns,
    require_struct,
    struct_column,
    struct_schema_like,
)
from barnabas.connect.transforms.settings import REPLACE_NULL_WITH_DEFAULT, java_split
from barnabas.connect.transforms.value_casts import SOURCE_NAMES, TARGETS, cast_values, names_of

_PURPOSE = "cast types"


class _Cast(ColumnTransform):
    passes_nulls = True

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "spec",
                ConfigType.LIST,
                doc="Fields and their new types, as field:type, or one type for the whole key or "
                "value. Types are int8, int16, int32, int64, float32, float64, boolean and "
                "string. Bytes can only be cast to string, which has them in base64.",
                importance=Importance.HIGH,
                validator=_valid_spec,
            ),
            REPLACE_NULL_WITH_DEFAULT,
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        self._whole, self._casts = _parse_spec(self.settings["spec"])
        self._replaces_nulls: bool = self.settings["replace.null.with.default"]

    def convert(self, column: Column, batch: ConnectBatch, failures: Failures) -> Column:
        if self._whole is not None:
            return self._cast_whole(column, self._whole, failures)
        if column.schema is None:
            return self._cast_map(column, failures)
        schema = self._struct_schema(column.schema)
        column = require_struct(column, _PURPOSE)
        fields = field_columns(column, replaces_nulls=self._replaces_nulls)
        for each in schema.fields:
            target = self._casts.get(each.name)
            if target is not None:
                original = fields[each.name]
                values = cast_values(original.values, original.schema, target, failures)
                fields[each.name] = Column(each.schema, values)
        return struct_column(schema, fields, column.values, failures)

    def _cast_whole(self, column: Column, target: Type, failures: Failures) -> Column:
        schema = column.schema
        values = cast_values(column.values, schema, target, failures)
        if schema is None:
            return Column(None, values)
        updated = ConnectSchema(
            target,
            schema.is_optional,
            schema.name,
            schema.version,
            schema.doc,
            _cast_default(schema, target),
            schema.parameters,
        )
        return declared_column(updated, values)

    def _cast_map(self, column: Column, failures: Failures) -> Column:
        import pyarrow as pa

        column = require_struct(column, _PURPOSE)
        fields = field_columns(column, replaces_nulls=False)
        missing = Column(None, pa.nulls(len(column)))
        for name, target in self._casts.items():
            values = fields.get(name, missing).values
            fields[name] = Column(None, cast_values(values, None, target, failures))
        return struct_column(None, fields, column.values, failures)

    def _struct_schema(self, schema: ConnectSchema) -> ConnectSchema:
        if schema.type is not Type.STRUCT:
            raise DataError("Cannot list fields on non-struct type")
        if schema.has_default and schema.default is not None:
            raise DataError(
                "Cast transformation does not support casting from STRUCT; "
                f"supported types are {SOURCE_NAMES}"
            )
        fields = [SchemaField(each.name, self._field_schema(each)) for each in schema.fields]
        return replace(struct_schema_like(schema, fields), is_optional=schema.is_optional)

    def _field_schema(self, field: SchemaField) -> ConnectSchema:
        target = self._casts.get(field.name)
        if target is None:
            return field.schema
        default = _cast_default(field.schema, target)
        return ConnectSchema(target, field.schema.is_optional, default=default)


def _cast_default(schema: ConnectSchema, target: Type) -> Any:
    import pyarrow as pa

    if not schema.has_default or schema.default is None:
        return NO_DEFAULT
    failures = Failures(1)
    default = pa.array([schema.default], schema.arrow_type())
    cast = cast_values(default, schema, target, failures)
    for error in failures.errors.values():
        raise error
    return cast[0].as_py()


def _valid_spec(_: str, value: Any) -> None:
    if not value:
        raise InvalidConfigError("Must specify at least one field to cast.")
    _parse_spec(value)


def _parse_spec(spec: list[str]) -> tuple[Type | None, dict[str, Type]]:
    """Returns the type of the whole key or value, and those of fields."""
    whole: Type | None = None
    casts: dict[str, Type] = {}
    for mapping in spec:
        parts = java_split(mapping)
        if len(parts) > 2 or not parts:
            text = f"Invalid rename mapping: {mapping}"
            raise InvalidConfigError(invalid_value("renames", spec, text))
        if len(parts) == 1:
            whole = _target(parts[0])
        else:
            casts[parts[0].strip()] = _target(parts[1])
    if whole is not None and len(spec) > 1:
        raise InvalidConfigError(
            "Cast transformations that specify a type to cast the entire value to may only "
            "specify a single cast in their spec"
        )
    return whole, casts


def _target(name: str) -> Type:
    name = name.strip()
    if name.upper() not in Type.__members__:
        raise InvalidConfigError(f"Invalid type found in casting spec: {name}")
    target = Type[name.upper()]
    if target not in TARGETS:
        raise InvalidConfigError(
            f"Cast transformation does not support casting to {target.name}; "
            f"supported types are {names_of(TARGETS)}"
        )
    return target


class CastKey(_Cast):
    part = Part.KEY


class CastValue(_Cast):
    part = Part.VALUE
