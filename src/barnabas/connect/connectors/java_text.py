"""Values as the text that Java's `toString` gives for them, computed on columns."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as types

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def java_text(values: pa.Array, *, has_schema: bool) -> pa.StringArray:
    """Returns the text of each value, and null for null.

    `has_schema` decides how objects are printed: a Struct as `Struct{a=1,b=2}`, a Map as
    `{a=1, b=2}`. Both leave out fields that are null. Bytes are printed as the text that they
    encode in UTF-8, since Java prints only the address of an array.
    """
    value_type = values.type
    if types.is_dictionary(value_type):
        return java_text(values.dictionary_decode(), has_schema=has_schema)
    if types.is_null(value_type) or types.is_string(value_type):
        return values.cast(pa.string())
    if types.is_boolean(value_type) or types.is_integer(value_type):
        return values.cast(pa.string())
    if types.is_binary(value_type) or types.is_large_binary(value_type):
        return _from_bytes(values)
    if types.is_struct(value_type):
        return _from_struct(values, has_schema=has_schema)
    if types.is_map(value_type):
        return _from_map(values, has_schema=has_schema)
    if types.is_list(value_type) or types.is_large_list(value_type):
        texts = java_text(values.flatten(), has_schema=has_schema)
        return _join_lists(values, pc.fill_null(texts, "null"), "[", "]")
    if types.is_float32(value_type):
        shortest = (float(str(value)) for value in values.to_numpy(zero_copy_only=False))
        texts = pa.array([java_float_text(value) for value in shortest], pa.string())
        return _null_where_null(values, texts)
    return pa.array([_primitive(value) for value in values.to_pylist()], pa.string())


def _from_bytes(values: pa.Array) -> pa.StringArray:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array(
            [None if each is None else each.decode(errors="replace") for each in values.to_pylist()]
        )


def _from_struct(values: pa.StructArray, *, has_schema: bool) -> pa.StringArray:
    separator = "," if has_schema else ", "
    fields = [
        _concatenate(
            f"{separator}{field.name}=",
            java_text(pc.struct_field(values, [index]), has_schema=has_schema),
        )
        for index, field in enumerate(values.type)
    ]
    if fields:
        joined = _concatenate(*(pc.fill_null(each, "") for each in fields))
        joined = pc.utf8_slice_codeunits(joined, len(separator))
    else:
        joined = pa.repeat(pa.scalar(""), len(values))
    text = _concatenate("Struct{" if has_schema else "{", joined, "}")
    return _null_where_null(values, text)


def _from_map(values: pa.MapArray, *, has_schema: bool) -> pa.StringArray:
    entries = pa.ListArray.from_arrays(
        values.offsets, pa.StructArray.from_arrays([values.keys, values.items], ["key", "value"])
    )
    flat = entries.flatten()
    keys = pc.fill_null(java_text(flat.field("key"), has_schema=has_schema), "null")
    items = pc.fill_null(java_text(flat.field("value"), has_schema=has_schema), "null")
    text = _join_lists(entries, _concatenate(keys, "=", items), "{", "}")
    return _null_where_null(values, text)


def _join_lists(
    lists: pa.Array, texts: pa.StringArray, opening: str, closing: str
) -> pa.StringArray:
    """Returns the texts of the elements of each list between brackets."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    ends = pc.cumulative_sum(lengths.cast(pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, texts), ", ")
    return _null_where_null(lists, _concatenate(opening, joined, closing))


def _concatenate(*parts: pa.Array | str) -> pa.StringArray:
    return pc.binary_join_element_wise(*parts, "")


def _null_where_null(values: pa.Array, texts: pa.StringArray) -> pa.StringArray:
    if not values.null_count:
        return texts
    return pc.if_else(values.is_valid(), texts, pa.scalar(None, pa.string()))


def _primitive(value: Any) -> str | None:
    match value:
        case None:
            return None
        case float():
            return java_float_text(value)
        case datetime.datetime():
            return _java_date_text(value)
        case datetime.date():
            return _java_date_text(datetime.datetime(value.year, value.month, value.day))
        case datetime.time():
            return _java_date_text(datetime.datetime.combine(datetime.date(1970, 1, 1), value))
    return str(value)


def java_float_text(value: float) -> str:
    """Returns the text of a double: `1.0`, `1.0E10`, `NaN`, `-Infinity`."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        text = repr(value)
        if "e" not in text:
            return text
    mantissa, _, exponent = f"{value!r}".partition("e")
    digits = mantissa.replace("-", "").replace(".", "")
    scale = int(exponent or 0) + len(mantissa.lstrip("-").partition(".")[0]) - 1
    leading = len(digits) - len(digits.lstrip("0"))
    digits = digits.lstrip("0").rstrip("0") or "0"
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{scale - leading}"


def _java_date_text(value: datetime.datetime) -> str:
    """Returns the text of a java.util.Date in a process whose time zone is UTC."""
    return (
        f"{_DAYS[value.weekday()]} {_MONTHS[value.month - 1]} {value.day:02d} "
        f"{value:%H:%M:%S} UTC {value.year:04d}"
    )
