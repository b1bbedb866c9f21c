"""MaskField: a fixed value in the place of what a field has."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_DOWN, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING

from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting, Importance
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.data.schema import ConnectSchema
from barnabas.connect.errors import DataError
from barnabas.connect.transforms.columns import (
    Column,
    ColumnTransform,
    Failures,
    Part,
    field_columns,
    java_class,
    reject_nulls,
    require_struct,
    struct_column,
)
from barnabas.connect.transforms.settings import (
    REPLACE_NULL_WITH_DEFAULT,
    field_list,
    non_empty_string,
    unique,
)

if TYPE_CHECKING:
    import pyarrow as pa

_PURPOSE = "mask fields"
_EXACT = Context(prec=10_000)


class _MaskField(ColumnTransform):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            field_list("fields", "Fields to mask.", Importance.HIGH, is_required=True),
            ConnectorSetting(
                "replacement",
                ConfigType.STRING,
                None,
                "What the fields get, which must be numbers or strings, instead of 0 or an empty "
                "value.",
                Importance.LOW,
                non_empty_string,
            ),
            REPLACE_NULL_WITH_DEFAULT,
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        self._fields = unique(self.settings["fields"])
        self._replacement: str | None = self.settings["replacement"]
        self._replaces_nulls: bool = self.settings["replace.null.with.default"]

    def convert(self, column: Column, batch: ConnectBatch, failures: Failures) -> Column:
        import pyarrow as pa

        reject_nulls(column, _PURPOSE, failures)
        column = require_struct(column, _PURPOSE)
        fields = field_columns(column, replaces_nulls=self._replaces_nulls)
        for name in [each for each in fields if each in self._fields]:
            field = fields[name]
            fields[name] = Column(field.schema, self._masked(field, failures))
        if column.schema is None:
            missing = Column(None, pa.nulls(len(column)))
            fields = {**dict.fromkeys(self._fields, missing), **fields}
        return struct_column(column.schema, fields, column.values, failures)

    def _masked(self, field: Column, failures: Failures) -> pa.Array:
        """Returns the mask where there is a value."""
        import pyarrow as pa
        import pyarrow.compute as pc

        values = field.values
        if values.null_count == len(values):
            return values
        try:
            mask = self._mask(values.type, field.schema)
        except DataError as error:
            failures.add_all(values.is_valid(), error)
            return values
        if not values.null_count:
            return pa.repeat(mask, len(values))
        if not pa.types.is_nested(mask.type):
            return pc.if_else(values.is_valid(), mask, pa.scalar(None, mask.type))
        choices = pa.array([mask.as_py(), None], mask.type)
        return choices.take(values.is_null().cast(pa.int8()))

    def _mask(self, arrow_type: pa.DataType, schema: ConnectSchema | None) -> pa.Scalar:
        import pyarrow as pa

        if self._replacement is not None:
            return _replacement(self._replacement, arrow_type, schema)
        is_type = pa.types
        if is_type.is_list(arrow_type) or is_type.is_map(arrow_type):
            return pa.scalar([], arrow_type)
        if is_type.is_struct(arrow_type) and schema is None:
            return pa.scalar({}, pa.struct([]))
        if is_type.is_string(arrow_type) or is_type.is_large_string(arrow_type):
            return pa.scalar("", arrow_type)
        if is_type.is_decimal(arrow_type):
            return pa.scalar(Decimal(0), arrow_type)
        if is_type.is_boolean(arrow_type):
            return pa.scalar(False)
        if is_type.is_temporal(arrow_type) or is_type.is_primitive(arrow_type):
            return pa.scalar(0, arrow_type)
        raise DataError(f"Cannot mask value of type: {java_class(arrow_type, schema)}")


def _replacement(text: str, arrow_type: pa.DataType, schema: ConnectSchema | None) -> pa.Scalar:
    import pyarrow as pa

    is_type = pa.types
    if is_type.is_string(arrow_type) or is_type.is_large_string(arrow_type):
        return pa.scalar(text, arrow_type)
    if is_type.is_integer(arrow_type):
        bits = arrow_type.bit_width
        whole = int(_number(text, "a number").to_integral_value(ROUND_DOWN, _EXACT))
        return pa.scalar((whole + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1)), arrow_type)
    if is_type.is_floating(arrow_type):
        return pa.scalar(float(_number(text, "a number")), arrow_type)
    if is_type.is_decimal(arrow_type):
        number = _number(text, "number")
        try:
            return pa.scalar(number, arrow_type)
        except pa.ArrowInvalid as error:
            raise DataError(f"{text} does not fit the schema: {error}") from None
    found = java_class(arrow_type, schema)
    raise DataError(f"Cannot mask value of type {found} with custom replacement.")


def _number(text: str, noun: str) -> Decimal:
    try:
        number = Decimal(text) if text == text.strip() and "_" not in text else None
    except InvalidOperation:
        number = None
    if number is None or not number.is_finite():
        raise DataError(f"Unable to convert {text} (class java.lang.String) to {noun}")
    return number


class MaskFieldKey(_MaskField):
    part = Part.KEY


class MaskFieldValue(_MaskField):
    part = Part.VALUE
