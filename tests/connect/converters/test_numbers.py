"""Kafka's serializers of numbers."""

import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.connect.converters.conversions import configured, errors, values

from barnabas.connect.converters.numbers import (
    BooleanConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    NumberConverter,
    ShortConverter,
)
from barnabas.connect.errors import DataError

FORMATS: dict[type[NumberConverter], tuple[str, pa.DataType]] = {
    ShortConverter: (">h", pa.int16()),
    IntegerConverter: (">i", pa.int32()),
    LongConverter: (">q", pa.int64()),
    FloatConverter: (">f", pa.float32()),
    DoubleConverter: (">d", pa.float64()),
}
NAMES = ["short", "integer", "long", "float", "double"]


@pytest.mark.parametrize("converter_class", FORMATS)
@given(data=st.data())
def test_numbers_are_big_endian(converter_class: type[NumberConverter], data: Any) -> None:
    code, arrow_type = FORMATS[converter_class]
    bits = struct.calcsize(code) * 8
    if pa.types.is_integer(arrow_type):
        one = st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    else:
        one = st.floats(width=32 if bits == 32 else 64, allow_nan=False)  # type: ignore[assignment]
    numbers = pa.array(data.draw(st.lists(st.none() | one)), arrow_type)
    skipped = data.draw(st.integers(0, 3))
    numbers = numbers[skipped:]
    converter = configured(converter_class)
    written = converter.from_connect("topic", None, numbers)
    assert written.payloads.to_pylist() == [
        None if number is None else struct.pack(code, number) for number in numbers.to_pylist()
    ]
    read = converter.to_connect("topic", written.payloads)
    assert not read.errors
    assert values(read) == numbers.to_pylist()


@pytest.mark.parametrize(("converter_class", "name"), list(zip(FORMATS, NAMES, strict=True)))
def test_payloads_of_another_size_are_errors(
    converter_class: type[NumberConverter], name: str
) -> None:
    size = struct.calcsize(FORMATS[converter_class][0])
    payloads = pa.array([bytes(size), b"", None, bytes(size + 1)], pa.binary())
    read = configured(converter_class).to_connect("topic", payloads)
    message = (
        f"Failed to deserialize {name}: Size of data received by {name.capitalize()}Deserializer "
        f"is not {size}"
    )
    assert errors(read) == {1: message, 3: message}
    assert values(read) == [0, None, None, None]


def test_a_number_of_another_type_is_an_error() -> None:
    with pytest.raises(DataError, match=r"serialize to integer \(was class java.lang.Long\)"):
        configured(IntegerConverter).from_connect("topic", None, pa.array([1], pa.int64()))


def test_booleans_are_a_byte() -> None:
    converter = configured(BooleanConverter)
    flags = [True, None, False]
    written = converter.from_connect("topic", None, pa.array(flags))
    assert written.payloads.to_pylist() == [b"\1", None, b"\0"]
    assert values(converter.to_connect("topic", written.payloads)) == flags


def test_bytes_that_are_no_booleans_are_errors() -> None:
    read = configured(BooleanConverter).to_connect("topic", pa.array([b"\2", b"", b"\1"]))
    assert errors(read) == {
        0: "Failed to deserialize boolean: Unexpected byte received by BooleanDeserializer: 2",
        1: "Failed to deserialize boolean: Size of data received by BooleanDeserializer is not 1",
    }
    assert values(read) == [None, None, True]
