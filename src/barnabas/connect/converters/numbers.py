"""Converters of Kafka's serializers of booleans and numbers: big-endian, of an exact length."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.converters.converter import (
    Conversion,
    Converted,
    ConvertedBytes,
    Converter,
    RowError,
)
from barnabas.connect.data.schema import ConnectSchema, Type, java_type_name
from barnabas.connect.errors import DataError
from barnabas.wire.records.buffers import offsets_of, view

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True, frozen=True)
class _Layout:
    """How numbers of a type are written."""

    type: Type
    name: str
    """The name in Kafka's error messages."""
    width: int
    array_code: str
    """The code of the type in the module `array`, which swaps bytes."""


class NumberConverter(Converter):
    """The common part: subclasses have a layout."""

    layout: ClassVar[_Layout]

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None:
        self._schema = ConnectSchema(self.layout.type, is_optional=True)

    def to_connect(self, topic: str, payloads: pa.BinaryArray) -> Conversion:
        import pyarrow as pa
        import pyarrow.compute as pc

        layout = self.layout
        has_size = pc.equal(pc.binary_length(payloads), layout.width)
        errors = [
            RowError(row, self._wrong_size())
            for row in pc.indices_nonzero(pc.invert(has_size)).to_pylist()
        ]
        is_partial = bool(errors) or payloads.null_count > 0
        if is_partial:
            has_size = has_size.fill_null(False)
            payloads = pc.if_else(has_size, payloads, pa.scalar(bytes(layout.width), pa.binary()))
        arrow_type = self._schema.arrow_type()
        numbers = pa.py_buffer(_swapped(content_of(payloads), layout))
        values = pa.Array.from_buffers(arrow_type, len(payloads), [None, numbers])
        if is_partial:
            values = pc.if_else(has_size, values, pa.scalar(None, arrow_type))
        return Conversion([Converted(0, self._schema, values)], errors)

    def from_connect(
        self, topic: str, schema: ConnectSchema | None, values: pa.Array
    ) -> ConvertedBytes:
        import pyarrow as pa

        layout, arrow_type = self.layout, self._schema.arrow_type()
        if values.null_count == len(values):
            return ConvertedBytes(pa.nulls(len(values), pa.binary()))
        if values.type != arrow_type:
            raise DataError(
                f"Failed to serialize to {layout.name} (was {java_type_name(values.type)}): "
                f"cast the values to {layout.type} before."
            )
        filled = values.fill_null(0) if values.null_count else values
        first, size = filled.offset * layout.width, len(filled) * layout.width
        cells = memoryview(filled.buffers()[1]).cast("B")[first : first + size]
        swapped = pa.py_buffer(_swapped(cells, layout))
        payloads = pa.Array.from_buffers(pa.binary(layout.width), len(values), [None, swapped])
        return ConvertedBytes(with_nulls_of(values, payloads.cast(pa.binary())))

    def _wrong_size(self) -> DataError:
        serde = f"{self.layout.name.capitalize()}Deserializer"
        return DataError(
            f"Failed to deserialize {self.layout.name}: Size of data received by {serde} is not "
            f"{self.layout.width}"
        )


class ShortConverter(NumberConverter):
    layout = _Layout(Type.INT16, "short", 2, "h")


class IntegerConverter(NumberConverter):
    layout = _Layout(Type.INT32, "integer", 4, "i")


class LongConverter(NumberConverter):
    layout = _Layout(Type.INT64, "long", 8, "q")


class FloatConverter(NumberConverter):
    layout = _Layout(Type.FLOAT32, "float", 4, "i")


class DoubleConverter(NumberConverter):
    layout = _Layout(Type.FLOAT64, "double", 8, "q")


class BooleanConverter(Converter):
    """A byte that is 0 or 1."""

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef()

    def configure(self, settings: Mapping[str, str], *, is_key: bool) -> None:
        self._schema = ConnectSchema(Type.BOOLEAN, is_optional=True)

    def to_connect(self, topic: str, payloads: pa.BinaryArray) -> Conversion:
        import pyarrow as pa
        import pyarrow.compute as pc

        is_true = pc.equal(payloads, pa.scalar(b"\1", pa.binary()))
        is_false = pc.equal(payloads, pa.scalar(b"\0", pa.binary()))
        is_valid = pc.or_(is_true, is_false)
        bad_rows = pc.indices_nonzero(pc.invert(is_valid)).to_pylist()
        errors = [RowError(row, _not_boolean(payloads[row].as_py())) for row in bad_rows]
        values = pc.if_else(is_valid, is_true, None) if errors else is_true
        return Conversion([Converted(0, self._schema, values)], errors)

    def from_connect(
        self, topic: str, schema: ConnectSchema | None, values: pa.Array
    ) -> ConvertedBytes:
        import pyarrow as pa
        import pyarrow.compute as pc

        if schema is not None and schema.type != Type.BOOLEAN:
            raise DataError(f"Invalid schema type for BooleanConverter: {schema.type.name}")
        if values.null_count == len(values):
            return ConvertedBytes(pa.nulls(len(values), pa.binary()))
        if not pa.types.is_boolean(values.type):
            raise DataError(
                f"BooleanConverter is not compatible with objects of type "
                f"{java_type_name(values.type)}"
            )
        true, false = pa.scalar(b"\1", pa.binary()), pa.scalar(b"\0", pa.binary())
        return ConvertedBytes(pc.if_else(values, true, false))


def content_of(payloads: pa.BinaryArray) -> memoryview:
    """Returns the bytes of all payloads, one after the other."""
    offsets = offsets_of(payloads)
    return view(payloads.buffers()[2], "B")[offsets[0] : offsets[len(payloads)]]


def with_nulls_of(values: pa.Array, payloads: pa.Array) -> pa.Array:
    """Returns the payloads, null where the values are."""
    import pyarrow.compute as pc

    return pc.if_else(values.is_valid(), payloads, None) if values.null_count else payloads


def _swapped(cells: memoryview, layout: _Layout) -> array[int]:
    """Returns the numbers in the other byte order."""
    numbers = array(layout.array_code)
    numbers.frombytes(cells)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


def _not_boolean(payload: bytes) -> DataError:
    if len(payload) != 1:
        reason = "Size of data received by BooleanDeserializer is not 1"
    else:
        reason = f"Unexpected byte received by BooleanDeserializer: {payload[0]}"
    return DataError(f"Failed to deserialize boolean: {reason}")
