"""Nodes that write columns of values without parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from barnabas.columns.avro import _encode
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
class Place:
    """Where in a row a value is, for messages."""

    path: str = ""

    def within(self, name: str) -> Place:
        return Place(f"{self.path}.{name}" if self.path else name)

    def mismatch(self, kind: pa.DataType, wanted: str) -> SchemaError:
        return SchemaError(f"{self} has type {kind}, and the schema wants {wanted}.")

    def __str__(self) -> str:
        return f"Field {self.path!r}" if self.path else "The value"


def primitive(schema: AvroPrimitive, values: pa.Array, place: Place) -> _encode.Node:
    import pyarrow as pa

    kinds, kind = pa.types, values.type
    match schema.kind:
        case "boolean" if kinds.is_boolean(kind):
            return _encode.Boolean(view(values.buffers()[1], "B"), values.offset)
        case "int" if _is_whole(kind):
            return _encode.Int(integers(_in_unit(values, schema.logical_type, place), 32, place))
        case "long" if _is_whole(kind):
            return _encode.Long64(integers(_in_unit(values, schema.logical_type, place), 64, place))
        case "float" if _is_number(kind):
            return _encode.Floating(_cells(_cast(values, pa.float32(), place)), 4)
        case "double" if _is_number(kind):
            return _encode.Floating(_cells(_cast(values, pa.float64(), place)), 8)
        case "bytes" if kinds.is_decimal(kind) and is_decimal(schema.logical_type):
            return _decimal(schema.logical_type, -1, values, place)
        case "bytes" if _is_bytes(kind):
            return _encode.Bytes(*_bytes(values))
        case "string" if kinds.is_string(kind) or kinds.is_large_string(kind):
            return _encode.Bytes(*_bytes(values))
        case "null" if values.null_count == len(values):
            return _encode.Nothing()
    raise place.mismatch(kind, schema.logical_type.name if schema.logical_type else schema.kind)


def fixed(schema: AvroFixed, values: pa.Array, place: Place) -> _encode.Node:
    import pyarrow as pa

    kind = values.type
    if pa.types.is_decimal(kind) and is_decimal(schema.logical_type):
        return _decimal(schema.logical_type, schema.size, values, place)
    is_uuid = schema.logical_type is not None and schema.logical_type.name == "uuid"
    if is_uuid and schema.size == UUID_BYTES and pa.types.is_string(kind):
        values = _uuids(values, place)
    elif not pa.types.is_binary(kind):
        raise place.mismatch(kind, f"fixed {schema.name.full}")
    return _encode.FixedBytes(*_bytes(values), schema.size)


def enum(schema: AvroEnum, values: pa.Array, place: Place) -> _encode.Node:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(values.type):
        raise place.mismatch(values.type, f"enum {schema.name.full}")
    numbers = pc.index_in(values, value_set=pa.array(schema.symbols, pa.string()))
    known = _encode.Int(integers(numbers, 32, place))
    if numbers.null_count == values.null_count:
        return known
    return _encode.Nullable(
        view(numbers.buffers()[0], "B"),
        numbers.offset,
        known,
        _encode.Unfit(f"it is no symbol of enum {schema.name.full}"),
    )


def integers(values: pa.Array, bits: int, place: Place | None = None) -> memoryview:
    import pyarrow as pa

    whole = _cast(values, pa.int32() if bits == 32 else pa.int64(), place or Place())
    cells = view(whole.buffers()[1], "i" if bits == 32 else "q")
    return cells[whole.offset : whole.offset + len(whole)]


def is_same(one: pa.DataType, other: pa.DataType) -> bool:
    """Whatever time zone, and whatever may be null within."""
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
    logical: LogicalType | None, size: int, values: pa.Array, place: Place
) -> _encode.Node:
    import pyarrow as pa

    assert logical is not None
    cast = _cast(values, pa.decimal128(logical.precision, logical.scale), place)
    return _encode.Decimal(_cells(cast), size)


def _in_unit(values: pa.Array, logical: LogicalType | None, place: Place) -> pa.Array:
    """Times in the unit of the schema, rounded down."""
    with _naming(place):
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


def _uuids(values: pa.Array, place: Place) -> pa.Array:
    import pyarrow as pa

    with _naming(place):
        return pa.array(
            [None if text is None else UUID(text).bytes for text in values.to_pylist()],
            pa.binary(),
        )


def _cast(values: pa.Array, kind: pa.DataType, place: Place) -> pa.Array:
    with _naming(place):
        return values if values.type == kind else values.cast(kind, safe=not _loses(kind))


@contextmanager
def _naming(place: Place) -> Iterator[None]:
    """What Arrow says of a value is said with the field."""
    try:
        yield
    except ValueError as error:  # Arrow's are
        raise ValueError(f"{place} cannot be written: {error}.") from error


def _loses(kind: pa.DataType) -> bool:
    """Floats may be rounded; whole numbers and decimals must fit."""
    import pyarrow as pa

    return bool(pa.types.is_floating(kind))


def _is_whole(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind))


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    import pyarrow as pa

    kinds = pa.types
    return bool(
        kinds.is_binary(kind)
        or kinds.is_large_binary(kind)
        or kinds.is_string(kind)
        or kinds.is_large_string(kind)
    )
