"""TimestampConverter: timestamps as text, numbers, dates, times or timestamps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from barnabas.connect.config_def import ConfigDef, ConfigType, ConnectorSetting, Importance, one_of
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.data.schema import (
    DATE,
    NO_DEFAULT,
    TIME,
    TIMESTAMP,
    ConnectSchema,
    SchemaField,
    Type,
)
from barnabas.connect.errors import ConnectError, DataError, InvalidConfigError
from barnabas.connect.transforms.columns import (
    Column,
    ColumnTransform,
    Failures,
    Part,
    field_columns,
    java_class,
    require_struct,
    struct_column,
    struct_schema_like,
)
from barnabas.connect.transforms.settings import REPLACE_NULL_WITH_DEFAULT
from barnabas.connect.transforms.simple_date_format import SimpleDateFormat
from barnabas.connect.transforms.value_text import as_timestamps

if TYPE_CHECKING:
    import pyarrow as pa

_PURPOSE = "converting timestamp formats"

_TARGETS: Final = {
    "string": ConnectSchema(Type.STRING),
    "unix": ConnectSchema(Type.INT64),
    "Date": ConnectSchema(Type.INT32, name=DATE, version=1),
    "Time": ConnectSchema(Type.INT32, name=TIME, version=1),
    "Timestamp": ConnectSchema(Type.INT64, name=TIMESTAMP, version=1),
}
_PER_MILLISECOND: Final = {"microseconds": 1000, "nanoseconds": 1_000_000}
_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1


class _TimestampConverter(ColumnTransform):
    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef(
            ConnectorSetting(
                "field",
                ConfigType.STRING,
                "",
                "The field with the timestamp; empty if the whole key or value is one.",
                Importance.HIGH,
            ),
            ConnectorSetting(
                "target.type",
                ConfigType.STRING,
                doc="What the timestamp becomes: string, unix, Date, Time or Timestamp.",
                importance=Importance.HIGH,
                validator=one_of(*_TARGETS),
            ),
            ConnectorSetting(
                "format",
                ConfigType.STRING,
                "",
                "The pattern, as of SimpleDateFormat, of timestamps that are or become text.",
            ),
            ConnectorSetting(
                "unix.precision",
                ConfigType.STRING,
                "milliseconds",
                "The unit of timestamps that are or become numbers. What is less than a "
                "millisecond is cut off.",
                Importance.LOW,
                one_of("nanoseconds", "microseconds", "milliseconds", "seconds"),
            ),
            REPLACE_NULL_WITH_DEFAULT,
        )

    def configure(self, settings: Mapping[str, str]) -> None:
        super().configure(settings)
        self._field: str = self.settings["field"]
        self._target: str = self.settings["target.type"]
        self._precision: str = self.settings["unix.precision"]
        self._replaces_nulls: bool = self.settings["replace.null.with.default"]
        pattern: str = self.settings["format"]
        if self._target == "string" and not pattern.strip():
            raise InvalidConfigError(
                "TimestampConverter requires format option to be specified when using string "
                "timestamps"
            )
        self._format: SimpleDateFormat | None = None
        if pattern.strip():
            try:
                self._format = SimpleDateFormat(pattern)
            except ValueError as error:
                raise InvalidConfigError(
                    "TimestampConverter requires a SimpleDateFormat-compatible pattern for string "
                    f"timestamps: {pattern}: {error}"
                ) from None

    def separates_nulls(self, column: Column) -> bool:
        """A tombstone passes also if all values with the schema fail."""
        assert column.schema is not None
        if self._field:
            return column.schema.type is not Type.STRUCT
        return _kind_of_schema(column.schema) is None

    def convert(self, column: Column, batch: ConnectBatch, failures: Failures) -> Column:
        if not self._field:
            return self._converted(column, failures)
        if column.schema is None:
            return self._convert_map(column, failures)
        if column.schema.type is not Type.STRUCT:
            # Kafka finds the wrong class of a value before the wrong type of its schema.
            if column.values.null_count < len(column):
                require_struct(column, _PURPOSE)
            raise DataError("Cannot list fields on non-struct type")
        return self._convert_struct(column.schema, column.values, failures)

    def _convert_map(self, column: Column, failures: Failures) -> Column:
        import pyarrow as pa

        if column.values.null_count == len(column):
            return column
        column = require_struct(column, _PURPOSE)
        fields = field_columns(column, replaces_nulls=False)
        missing = Column(None, pa.nulls(len(column)))
        fields[self._field] = self._converted(fields.get(self._field, missing), failures)
        return struct_column(None, fields, column.values, failures)

    def _convert_struct(
        self, schema: ConnectSchema, values: pa.Array, failures: Failures
    ) -> Column:
        fields = field_columns(Column(schema, values), replaces_nulls=self._replaces_nulls)
        if self._field in fields:
            fields[self._field] = self._converted_field(fields[self._field], values, failures)
        updated = struct_schema_like(
            schema,
            [
                SchemaField(each.name, self._target_schema(each.schema))
                if each.name == self._field
                else each
                for each in schema.fields
            ],
        )
        updated = replace(updated, is_optional=schema.is_optional, default=self._default(schema))
        return struct_column(updated, fields, values, failures)

    def _converted_field(self, field: Column, parents: pa.Array, failures: Failures) -> Column:
        import pyarrow as pa

        assert field.schema is not None
        if _kind_of_schema(field.schema) is not None:
            return self._converted(field, failures)
        failures.add_all(parents.is_valid(), _unknown_kind(field.schema))
        schema = self._target_schema(field.schema)
        return Column(schema, pa.nulls(len(field), schema.arrow_type()))

    def _default(self, schema: ConnectSchema) -> Any:
        """Returns the default of the struct, with the field converted."""
        import pyarrow as pa

        if not schema.has_default or schema.default is None:
            return NO_DEFAULT
        failures = Failures(1)
        values = pa.array([schema.default], schema.arrow_type())
        converted = self._convert_struct(replace(schema, default=NO_DEFAULT), values, failures)
        for error in failures.errors.values():
            raise error
        return converted.values[0].as_py()

    def _target_schema(self, schema: ConnectSchema) -> ConnectSchema:
        target = _TARGETS[self._target]
        return target.as_optional() if schema.is_optional else target

    def _converted(self, column: Column, failures: Failures) -> Column:
        times = self._times(column, failures)
        schema = None if column.schema is None else self._target_schema(column.schema)
        return Column(schema, self._from_times(times))

    # From the original type

    def _times(self, column: Column, failures: Failures) -> pa.TimestampArray:
        """Returns milliseconds, null for rows that failed."""
        import pyarrow as pa

        if column.schema is None:
            kind = _kind_of(column.values)
        else:
            kind = _kind_of_schema(column.schema)
            if kind is None:
                raise _unknown_kind(column.schema)
        match kind:
            case "time":
                return as_timestamps(column.values)
            case "unix":
                milliseconds = self._milliseconds(column.values.cast(pa.int64()))
                return milliseconds.cast(pa.timestamp("ms", "UTC"))
            case "string":
                return self._parsed(column.values.cast(pa.string()), failures)
        if column.values.null_count < len(column):
            found = java_class(column.values.type, None)
            failures.add_all(
                column.values.is_valid(),
                DataError(f"TimestampConverter does not support {found} objects as timestamps"),
            )
        return pa.nulls(len(column), pa.timestamp("ms", "UTC"))

    def _milliseconds(self, numbers: pa.Int64Array) -> pa.Int64Array:
        import pyarrow.compute as pc

        if self._precision == "seconds":
            return _multiplied(numbers, 1000)
        if self._precision in _PER_MILLISECOND:
            return pc.divide(numbers, _PER_MILLISECOND[self._precision])
        return numbers

    def _parsed(self, texts: pa.StringArray, failures: Failures) -> pa.TimestampArray:
        import pyarrow as pa

        if self._format is None:
            failures.add_all(
                texts.is_valid(),
                DataError("Could not parse timestamp: set format to the pattern of the texts"),
            )
            return pa.nulls(len(texts), pa.timestamp("ms", "UTC"))
        times, failed = self._format.parse(texts)
        for row in failed:
            failures.add(
                row,
                DataError(
                    f"Could not parse timestamp: value ({texts[row]}) does not match pattern "
                    f"({self._format.pattern})"
                ),
            )
        return times

    # To the new type

    def _from_times(self, times: pa.TimestampArray) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        match self._target:
            case "string":
                assert self._format is not None
                return self._format.format(times)
            case "Date":
                return times.cast(pa.date32())
            case "Time":
                return times.cast(pa.time32("ms"))
            case "Timestamp":
                return times
        milliseconds = times.cast(pa.int64())
        if self._precision == "seconds":
            return pc.divide(milliseconds, 1000)
        return _multiplied(milliseconds, _PER_MILLISECOND.get(self._precision, 1))


def _kind_of_schema(schema: ConnectSchema) -> str | None:
    if schema.name in (TIMESTAMP, DATE, TIME):
        return "time"
    if schema.type is Type.STRING:
        return "string"
    if schema.type is Type.INT64:
        return "unix"
    return None


def _unknown_kind(schema: ConnectSchema) -> ConnectError:
    name = schema.type.name if schema.name is None else f"{schema.name}:{schema.type.name}"
    return ConnectError(
        f"Schema Schema{{{name}}} does not correspond to a known timestamp type format"
    )


def _kind_of(values: pa.Array) -> str | None:
    import pyarrow as pa

    is_type, arrow_type = pa.types, values.type
    if is_type.is_temporal(arrow_type):
        return "time"
    if is_type.is_int64(arrow_type):
        return "unix"
    if is_type.is_string(arrow_type) or is_type.is_large_string(arrow_type):
        return "string"
    return None


def _multiplied(numbers: pa.Int64Array, factor: int) -> pa.Int64Array:
    """Returns the products, or the nearest number of 64 bits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if factor == 1:
        return numbers
    try:
        return pc.multiply_checked(numbers, factor)
    except pa.ArrowInvalid:
        limit = _MAX_INT64 // factor
        inside = pc.multiply(pc.max_element_wise(pc.min_element_wise(
            numbers, limit, skip_nulls=False), -limit, skip_nulls=False), factor)  # fmt: skip
        product = pc.if_else(pc.greater(numbers, limit), _MAX_INT64, inside)
        return pc.if_else(pc.less(numbers, -limit), _MIN_INT64, product)


class TimestampConverterKey(_TimestampConverter):
    part = Part.KEY


class TimestampConverterValue(_TimestampConverter):
    part = Part.VALUE
