"""Writers of primitive, fixed and enum columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from barnabas.columns.avro import _encoder
from barnabas.columns.avro.types import MAX_PRECISION, UUID_BYTES, timestamp_unit
from barnabas.schemas import SchemaError
from barnabas.schemas.avro.model import (
    AvroEnum,
    AvroFixed,
    AvroPrimitive,
    LogicalType,
)
from barnabas.wire.records.buffers import offsets_of, view

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True, frozen=True)
class FieldPath:
    """The path of a field in a row, for error messages."""

    path: str = ""

    def within(self, name: str) -> FieldPath:
        return FieldPath(f"{self.path}.{name}" if self.path else name)

    def mismatch(self, arrow_type: pa.DataType, required: str) -> SchemaError:
        return SchemaError(f"{self} has type {arrow_type}, and the schema requires {required}.")

    def __str__(self) -> str:
        return f"Field {self.path!r}" if self.path else "The value"


def primitive(schema: AvroPrimitive, values: pa.Array, path: FieldPath) -> _encoder.AvroWriter:
    import pyarrow as pa

    kinds, arrow_type = pa.types, values.type
    match schema.kind:
        case "boolean" if kinds.is_boolean(arrow_type):
            return _encoder.AvroBooleanWriter(view(values.buffers()[1], "B"), values.offset)
        case "int" if _is_integral(arrow_type):
            return _encoder.AvroIntWriter(
                integers(_in_unit(values, schema.logical_type, path), 32, path)
            )
        case "long" if _is_integral(arrow_type):
            return _encoder.AvroLongWriter(
                integers(_in_unit(values, schema.logical_type, path), 64, path)
            )
        case "float" if _is_number(arrow_type):
            return _encoder.AvroFloatWriter(_cells(_cast(values, pa.float32(), path)), 4)
        case "double" if _is_number(arrow_type):
            return _encoder.AvroFloatWriter(_cells(_cast(values, pa.float64(), path)), 8)
        case "bytes" if kinds.is_decimal(arrow_type) and is_decimal(schema.logical_type):
            return _decimal(schema.logical_type, -1, values, path)
        case "bytes" if _is_bytes(arrow_type):
            return _encoder.AvroBytesWriter(*_bytes(values))
        case "string" if kinds.is_string(arrow_type) or kinds.is_large_string(arrow_type):
            return _encoder.AvroBytesWriter(*_bytes(values))
        case "null" if values.null_count == len(values):
            return _encoder.AvroNullWriter()
    raise path.mismatch(
        arrow_type, schema.logical_type.name if schema.logical_type else schema.kind
    )


def fixed(schema: AvroFixed, values: pa.Array, path: FieldPath) -> _encoder.AvroWriter:
    import pyarrow as pa

    arrow_type = values.type
    if pa.types.is_decimal(arrow_type) and is_decimal(schema.logical_type):
        return _decimal(schema.logical_type, schema.size, values, path)
    is_uuid = schema.logical_type is not None and schema.logical_type.name == "uuid"
    if is_uuid and schema.size == UUID_BYTES and pa.types.is_string(arrow_type):
        values = _uuids(values, path)
    elif not pa.types.is_binary(arrow_type):
        raise path.mismatch(arrow_type, f"fixed {schema.name.full}")
    return _encoder.AvroFixedWriter(*_bytes(values), schema.size)


def enum(schema: AvroEnum, values: pa.Array, path: FieldPath) -> _encoder.AvroWriter:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(values.type):
        raise path.mismatch(values.type, f"enum {schema.name.full}")
    numbers = pc.index_in(values, value_set=pa.array(schema.symbols, pa.string()))
    writer = _encoder.AvroIntWriter(integers(numbers, 32, path))
    if numbers.null_count == values.null_count:
        return writer
    return _encoder.AvroNullableWriter(
        view(numbers.buffers()[0], "B"),
        numbers.offset,
        writer,
        _encoder.AvroMismatchWriter(f"it is not a symbol of enum {schema.name.full}"),
    )


def integers(values: pa.Array, bits: int, path: FieldPath | None = None) -> memoryview:
    import pyarrow as pa

    whole = _cast(values, pa.int32() if bits == 32 else pa.int64(), path or FieldPath())
    cells = view(whole.buffers()[1], "i" if bits == 32 else "q")
    return cells[whole.offset : whole.offset + len(whole)]


def is_same(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether types are equal, ignoring time zones and nullability of parts."""
    import pyarrow as pa

    if pa.types.is_timestamp(one) and pa.types.is_timestamp(other):
        return (one.tz is None) == (other.tz is None)
    return bool(one.id == other.id)


def is_decimal(logical: LogicalType | None) -> bool:
    return logical is not None and logical.name == "decimal" and logical.precision <= MAX_PRECISION


def _bytes(values: pa.Array) -> tuple[memoryview, memoryview]:
    import pyarrow as pa

    if pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type):
        values = values.cast(pa.binary())
    return offsets_of(values), view(values.buffers()[2], "B")


def _cells(values: pa.Array) -> memoryview:
    width = values.type.bit_width // 8
    cells = view(values.buffers()[1], "B")
    return cells[values.offset * width : (values.offset + len(values)) * width]


def _decimal(
    logical: LogicalType | None, size: int, values: pa.Array, path: FieldPath
) -> _encoder.AvroWriter:
    import pyarrow as pa

    assert logical is not None
    cast = _cast(values, pa.decimal128(logical.precision, logical.scale), path)
    return _encoder.AvroDecimalWriter(_cells(cast), size)


def _in_unit(values: pa.Array, logical: LogicalType | None, path: FieldPath) -> pa.Array:
    """Returns times in the unit of the schema, rounded down."""
    with _with_path(path):
        return _converted(values, logical)


def _converted(values: pa.Array, logical: LogicalType | None) -> pa.Array:
    import pyarrow as pa
    import pyarrow.compute as pc

    unit = timestamp_unit(logical)
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
        if unit == "nanos":
            return pc.multiply_checked(values, 1000)
        return _floor_divide(values, 1000) if unit == "millis" else values
    if pa.types.is_time(values.type):
        is_in_millis = logical is not None and logical.name == "time-millis"
        nanos = values.cast(pa.time64("ns")).cast(pa.int64())
        return _floor_divide(nanos, 1_000_000 if is_in_millis else 1000)
    if pa.types.is_date(values.type):
        return values.cast(pa.date32()).cast(pa.int32())
    return values


def _floor_divide(values: pa.Array, divisor: int) -> pa.Array:
    import pyarrow.compute as pc

    quotients = pc.divide(values, divisor)
    is_rounded_up = pc.less(values, pc.multiply(quotients, divisor))
    return pc.subtract(quotients, is_rounded_up.cast(quotients.type))


def _uuids(values: pa.Array, path: FieldPath) -> pa.Array:
    import pyarrow as pa

    with _with_path(path):
        return pa.array(
            [None if text is None else UUID(text).bytes for text in values.to_pylist()],
            pa.binary(),
        )


def _cast(values: pa.Array, arrow_type: pa.DataType, path: FieldPath) -> pa.Array:
    with _with_path(path):
        return (
            values
            if values.type == arrow_type
            else values.cast(arrow_type, safe=not _is_lossy(arrow_type))
        )


@contextmanager
def _with_path(path: FieldPath) -> Iterator[None]:
    """Adds the field to Arrow's error messages."""
    try:
        yield
    except ValueError as error:  # Arrow's errors are ValueErrors
        raise ValueError(f"{path} cannot be written: {error}.") from error


def _is_lossy(arrow_type: pa.DataType) -> bool:
    """Floats may be rounded; integers and decimals must fit."""
    import pyarrow as pa

    return bool(pa.types.is_floating(arrow_type))


def _is_integral(arrow_type: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(arrow_type) or pa.types.is_temporal(arrow_type))


def _is_number(arrow_type: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type))


def _is_bytes(arrow_type: pa.DataType) -> bool:
    import pyarrow as pa

    kinds = pa.types
    return bool(
        kinds.is_binary(arrow_type)
        or kinds.is_large_binary(arrow_type)
        or kinds.is_string(arrow_type)
        or kinds.is_large_string(arrow_type)
    )
