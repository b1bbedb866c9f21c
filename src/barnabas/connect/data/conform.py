"""Brings values into another Arrow type that represents the same data.

Schema languages have types of their own for the same values: other units of time, names of fields
and widths of numbers, and lists of entries instead of maps. Parts match by position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.connect.data.times import (
    date_from_parts,
    is_date_parts,
    is_time_parts,
    parts_of_date,
    parts_of_time,
    time_from_parts,
)

if TYPE_CHECKING:
    import pyarrow as pa


def conform(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Returns the values in the target type. Raises ArrowInvalid if one does not fit."""
    import pyarrow as pa

    is_type, source = pa.types, values.type
    if source == target:
        return values
    if is_type.is_dictionary(source):
        return conform(values.dictionary_decode(), target)
    if is_type.is_struct(target) and is_type.is_struct(source):
        children = [
            conform(values.field(index), field.type) for index, field in enumerate(target.fields)
        ]
        mask = values.is_null() if values.null_count else None
        if not children:
            return values
        return pa.StructArray.from_arrays(children, fields=target.fields, mask=mask)
    if is_type.is_map(target):
        return _map(values, target)
    if is_type.is_list(target):
        return _list(values, target)
    if is_type.is_struct(source):
        return _from_parts(values, target)
    if is_type.is_struct(target):
        return _to_parts(values, target)
    is_safe = not (is_type.is_temporal(source) or is_type.is_floating(target))
    return values.cast(target, safe=is_safe)


def _list(values: pa.Array, target: pa.ListType) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_map(values.type):  # a list of entries
        entries = pa.StructArray.from_arrays([values.keys, values.items], ["key", "value"])
        return with_items(values, target, conform(entries, target.value_type))
    if not pa.types.is_list(values.type):
        values = values.cast(pa.list_(values.type.value_field))
    return with_items(values, target, conform(values.values, target.value_type))


def _map(values: pa.Array, target: pa.MapType) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_map(values.type):
        keys, items = values.keys, values.items
    else:
        keys, items = values.values.field(0), values.values.field(1)
    entries = pa.StructArray.from_arrays(
        [conform(keys, target.key_type), conform(items, target.item_type)],
        fields=[target.key_field, target.item_field],
    )
    return with_items(values, target, entries)


def with_items(values: pa.Array, target: pa.DataType, items: pa.Array) -> pa.Array:
    """Returns lists with the same offsets and other items."""
    import pyarrow as pa

    validity, offsets = values.buffers()[:2]
    return pa.Array.from_buffers(
        target,
        len(values),
        [validity, offsets],
        values.null_count,
        values.offset,
        children=[items],
    )


def _from_parts(values: pa.StructArray, target: pa.DataType) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_date32(target) and is_date_parts(values.type):
        return date_from_parts(values)
    if pa.types.is_time(target) and is_time_parts(values.type):
        return time_from_parts(values)
    return values.cast(target)


def _to_parts(values: pa.Array, target: pa.StructType) -> pa.Array:
    import pyarrow as pa

    if pa.types.is_date32(values.type) and is_date_parts(target):
        return conform(parts_of_date(values), target)
    if pa.types.is_time(values.type) and is_time_parts(target):
        return conform(parts_of_time(values), target)
    return values.cast(target)
