"""Values are cast as Java casts them."""

import math
import struct
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from barnabas.connect.data.schema import ConnectSchema, Type, decimal_schema
from barnabas.connect.transforms.columns import Failures
from barnabas.connect.transforms.value_casts import cast_values

BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
EXACT = Context(prec=60)
INTEGERS = st.sampled_from(list(BITS))


def cast(values: list[Any], schema: ConnectSchema, target: Type) -> tuple[list[Any], list[int]]:
    failures = Failures(len(values))
    result = cast_values(pa.array(values, schema.arrow_type()), schema, target, failures)
    assert result.type == ConnectSchema(target).arrow_type()
    return result.to_pylist(), sorted(failures.errors)


def wrapped(number: int, bits: int) -> int:
    return (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def java_integer(number: float, bits: int) -> int:
    """Java casts a real to 32 or 64 bits, to the nearest if it is outside, and then wraps it."""
    if math.isnan(number):
        return 0
    limit = 1 << (63 if bits == 64 else 31)
    whole = limit if number == math.inf else -limit if number == -math.inf else int(number)
    return wrapped(max(-limit, min(limit - 1, whole)), bits)


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)), INTEGERS)
def test_integers_wrap(values: list[int | None], target: Type) -> None:
    expected = [None if each is None else wrapped(each, BITS[target]) for each in values]
    assert cast(values, ConnectSchema(Type.INT64), target) == (expected, [])


@given(st.lists(st.none() | st.floats()), INTEGERS)
def test_reals_are_cut_off(values: list[float | None], target: Type) -> None:
    expected = [None if each is None else java_integer(each, BITS[target]) for each in values]
    assert cast(values, ConnectSchema(Type.FLOAT64), target) == (expected, [])


@given(st.lists(st.none() | st.integers(-(10**37), 10**37)), INTEGERS)
def test_decimals_are_cut_off_and_wrap(unscaled: list[int | None], target: Type) -> None:
    values = [None if each is None else Decimal(each).scaleb(-5, EXACT) for each in unscaled]
    expected = [
        None
        if each is None
        else wrapped(abs(each) // 10**5 * (1 if each > 0 else -1), BITS[target])
        for each in unscaled
    ]
    assert cast(values, decimal_schema(5), target) == (expected, [])


@given(st.lists(st.integers(-(10**37), 10**37)))
def test_decimals_become_the_nearest_reals(unscaled: list[int]) -> None:
    values = [Decimal(each).scaleb(-5, EXACT) for each in unscaled]
    assert cast(values, decimal_schema(5), Type.FLOAT64) == ([float(each) for each in values], [])


@given(st.lists(st.floats(allow_nan=False)))
def test_texts_become_the_nearest_reals(values: list[float]) -> None:
    texts = [repr(each).replace("inf", "Infinity") for each in values]
    assert cast(texts, ConnectSchema(Type.STRING), Type.FLOAT64) == (values, [])


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False)))
def test_texts_become_the_nearest_floats(values: list[float]) -> None:
    texts = [f"{each!r}f" for each in values]
    result, failed = cast(texts, ConnectSchema(Type.STRING), Type.FLOAT32)
    assert not failed
    assert [struct.pack("f", each) for each in result] == [
        struct.pack("f", each) for each in values
    ]


@given(st.lists(st.integers(-200, 200).map(str) | st.sampled_from(("", "x", "+7", " 1", "1.0"))))
def test_texts_that_are_no_integers_fail_alone(texts: list[str]) -> None:
    result, failed = cast(texts, ConnectSchema(Type.STRING), Type.INT8)
    valid = ["+7", *map(str, range(-128, 128))]
    assert failed == [row for row, text in enumerate(texts) if text not in valid]
    assert result == [int(text) if text in valid else None for text in texts]


@given(st.lists(st.none() | st.floats()))
def test_reals_whose_integer_part_is_zero_are_false(values: list[float | None]) -> None:
    expected = [None if each is None else java_integer(each, 64) != 0 for each in values]
    assert cast(values, ConnectSchema(Type.FLOAT64), Type.BOOLEAN) == (expected, [])


@given(st.lists(st.none() | st.binary()))
def test_bytes_become_base64(values: list[bytes | None]) -> None:
    from base64 import b64encode

    expected = [None if each is None else b64encode(each).decode() for each in values]
    assert cast(values, ConnectSchema(Type.BYTES), Type.STRING) == (expected, [])
