"""Values are printed as Java prints them."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from barnabas.connect.connectors.java_text import java_float_text, java_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (0.1, "0.1"),
        (123456.789, "123456.789"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (-1e10, "-1.0E10"),
        (1e22, "1.0E22"),
        (1.5e300, "1.5E300"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (1e-10, "1.0E-10"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles(value: float, text: str) -> None:
    assert java_float_text(value) == text


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array([1, None]), ["1", None]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array(["a", None]), ["a", None]),
        (pa.array([b"a", b"\xff"]), ["a", "\ufffd"]),
        (pa.array([0.1, None], pa.float32()), ["0.1", None]),
        (pa.array([Decimal("1.50"), Decimal("0.00")]), ["1.50", "0.00"]),
        (pa.array([datetime.date(2024, 2, 29)]), ["Thu Feb 29 00:00:00 UTC 2024"]),
        (pa.array([[1, None], None, []]), ["[1, null]", None, "[]"]),
        (
            pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "y"}, None]),
            ["{a=1, b=x}", "{b=y}", None],
        ),
        (
            pa.array([[("a", 1), ("b", None)], []], pa.map_(pa.string(), pa.int32())),
            ["{a=1, b=null}", "{}"],
        ),
        (pa.array([[{"a": [1]}], []]), ["[{a=[1]}]", "[]"]),
    ],
)
def test_values_without_a_schema(values: pa.Array, texts: list[str | None]) -> None:
    assert java_text(values, has_schema=False).to_pylist() == texts
    for start in range(len(values)):
        assert java_text(values[start:], has_schema=False).to_pylist() == texts[start:]


def test_structs_have_their_name() -> None:
    values = pa.array([{"a": 1, "b": {"c": None, "d": 2.0}}])
    assert java_text(values, has_schema=True).to_pylist() == ["Struct{a=1,b=Struct{d=2.0}}"]
