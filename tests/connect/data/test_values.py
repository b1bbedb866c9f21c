"""Defaults, missing values, and values in another type."""

from datetime import date, time

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.connect.data.conform import conform
from barnabas.connect.data.decimals import decimal_of, decimals_from_bytes, decimals_to_bytes
from barnabas.connect.data.defaults import (
    filled_with_default,
    rows_with_missing_values,
    with_defaults,
)
from barnabas.connect.data.schema import ConnectSchema, Type, struct_schema
from barnabas.connect.data.times import (
    date_from_parts,
    parts_of_date,
    parts_of_time,
    time_from_parts,
)

INT = ConnectSchema(Type.INT32)


def test_defaults_are_filled_in_at_every_level() -> None:
    inner = struct_schema(
        {"a": ConnectSchema(Type.INT32, default=7), "b": ConnectSchema(Type.STRING, True)}
    )
    schema = struct_schema(
        {
            "inner": inner.as_optional(),
            "list": ConnectSchema(Type.ARRAY, default=[1, 2], value_schema=INT),
            "items": ConnectSchema(Type.ARRAY, value_schema=inner),
            "map": ConnectSchema(
                Type.MAP, key_schema=ConnectSchema(Type.STRING), value_schema=inner
            ),
        }
    )
    values = pa.array(
        [
            None,
            {
                "inner": {"a": None, "b": None},
                "list": None,
                "items": [{"a": None, "b": "x"}],
                "map": [("k", {"a": None, "b": None})],
            },
            {"inner": None, "list": [3], "items": [], "map": []},
        ],
        schema.arrow_type(),
    )
    for first in (0, 1):
        assert (
            with_defaults(values[first:], schema).to_pylist()
            == [
                None,
                {
                    "inner": {"a": 7, "b": None},
                    "list": [1, 2],
                    "items": [{"a": 7, "b": "x"}],
                    "map": [("k", {"a": 7, "b": None})],
                },
                {"inner": None, "list": [3], "items": [], "map": []},
            ][first:]
        )


def test_values_without_default_stay_as_they_are() -> None:
    values = pa.array([1, None], pa.int32())
    assert filled_with_default(values, INT) is values
    assert with_defaults(values, INT) is values


def test_missing_values_are_found_in_their_rows() -> None:
    schema = struct_schema(
        {
            "a": INT,
            "s": ConnectSchema(Type.STRUCT, True, fields=struct_schema({"b": INT}).fields),
            "l": ConnectSchema(Type.ARRAY, True, value_schema=struct_schema({"c": INT})),
            "m": ConnectSchema(
                Type.MAP, True, key_schema=ConnectSchema(Type.STRING), value_schema=INT
            ),
            "d": ConnectSchema(Type.INT32, default=1),
        }
    )
    good = {"a": 1, "s": {"b": 1}, "l": [{"c": 1}], "m": [("k", 1)], "d": 1}
    values = pa.array(
        [
            good,
            None,
            {**good, "a": None},
            {**good, "s": None, "l": None, "m": None, "d": None},
            {**good, "s": {"b": None}},
            {**good, "l": [{"c": 1}, {"c": None}]},
            {**good, "m": [("k", 1), ("l", None)]},
        ],
        schema.arrow_type(),
    )
    expected = {2: "a", 4: "s.b", 5: "l[].c", 6: "m[]"}
    assert rows_with_missing_values(values, schema) == expected
    assert rows_with_missing_values(values[1:], schema) == {
        row - 1: path for row, path in expected.items()
    }


def test_entries_of_maps_are_lists_of_structs_and_back() -> None:
    maps = pa.array([[(1, "a"), (2, None)], None, []], pa.map_(pa.int32(), pa.string()))
    entry = pa.struct([("key", pa.int64()), ("value", pa.string())])
    for first in (0, 1):
        lists = conform(maps[first:], pa.list_(entry))
        lists.validate(full=True)
        assert (
            lists.to_pylist()
            == [
                [{"key": 1, "value": "a"}, {"key": 2, "value": None}],
                None,
                [],
            ][first:]
        )
        assert conform(lists, maps.type) == maps[first:]


def test_structs_match_by_position() -> None:
    values = pa.array([{"a": 1, "b": [1]}, None])
    target = pa.struct([("x", pa.int8()), ("y", pa.list_(pa.int16()))])
    assert conform(values, target).to_pylist() == [{"x": 1, "y": [1]}, None]
    with pytest.raises(pa.ArrowInvalid):
        conform(pa.array([{"a": 300, "b": []}]), target)


@given(st.lists(st.none() | st.dates()))
def test_dates_have_parts(dates: list[date | None]) -> None:
    column = pa.array(dates, pa.date32())
    parts = parts_of_date(column)
    assert parts.to_pylist() == [
        None if day is None else {"year": day.year, "month": day.month, "day": day.day}
        for day in dates
    ]
    assert date_from_parts(parts) == column


@given(st.lists(st.none() | st.integers(0, 86_399_999)))
def test_times_have_parts(milliseconds: list[int | None]) -> None:
    column = pa.array(milliseconds, pa.int32()).cast(pa.time32("ms"))
    parts = parts_of_time(column)
    assert time_from_parts(parts) == column
    for part, value in zip(parts.to_pylist(), column.to_pylist(), strict=True):
        if value is not None:
            whole = time(part["hours"], part["minutes"], part["seconds"], part["nanos"] // 1000)
            assert whole == value


@given(st.lists(st.none() | st.integers(-(10**38) + 1, 10**38 - 1)), st.integers(0, 38))
def test_decimals_are_bytes_in_twos_complement(unscaled: list[int | None], scale: int) -> None:
    numbers = [None if each is None else decimal_of(each, scale) for each in unscaled]
    column = pa.array(numbers, pa.decimal128(38, scale))
    encoded = decimals_to_bytes(column)
    assert encoded.to_pylist() == [
        None if each is None else each.to_bytes(_size(each), "big", signed=True)
        for each in unscaled
    ]
    assert decimals_from_bytes(encoded, scale) == column


def _size(number: int) -> int:
    """Returns the bytes of a number and its sign, without needless ones."""
    return ((number if number >= 0 else ~number).bit_length() + 8) // 8


def test_decimals_of_too_many_digits_are_errors() -> None:
    for size in (17, 100):
        with pytest.raises(ValueError, match="too many digits"):
            decimals_from_bytes(pa.array([b"\x7f" * size]), 0)
