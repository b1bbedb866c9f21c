"""Brings columns of Protobuf's messages into the types of Connect's schemas, and back.

The fields of a oneof are one struct, dates and times are logical types, and so are decimals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor

from barnabas.connect.converters.protobuf_mapping import UNION_PREFIX, ProtobufMapping, parts_of
from barnabas.connect.data.conform import conform, with_items
from barnabas.connect.data.decimals import decimal_of, decimals_from_bytes, decimals_to_bytes
from barnabas.connect.data.schema import DATE, DECIMAL, TIME, ConnectSchema, Type
from barnabas.connect.data.times import parts_of_date, parts_of_time

if TYPE_CHECKING:
    import pyarrow as pa


def from_messages(
    values: pa.StructArray, message: Descriptor, schema: ConnectSchema, mapping: ProtobufMapping
) -> pa.StructArray:
    """Raises ValueError if a value does not fit the schema."""
    children = []
    parts = parts_of(message, flattens_unions=mapping.flattens_unions)
    for (_, part), field in zip(parts, schema.fields, strict=True):
        if isinstance(part, OneofDescriptor):
            children.append(_from_oneof(values, part, field.schema, mapping))
        else:
            column = values.field(str(part.name))
            children.append(_from_field(column, part, field.schema, mapping))
    return _struct(values, schema, children)


def _from_oneof(
    values: pa.StructArray, oneof: OneofDescriptor, schema: ConnectSchema, mapping: ProtobufMapping
) -> pa.StructArray:
    import pyarrow as pa
    import pyarrow.compute as pc

    children = [
        _from_field(values.field(str(part.name)), part, field.schema, mapping)
        for part, field in zip(oneof.fields, schema.fields, strict=True)
    ]
    is_absent = children[0].is_null()
    for child in children[1:]:
        is_absent = pc.and_(is_absent, child.is_null())
    return pa.StructArray.from_arrays(children, fields=schema.arrow_type().fields, mask=is_absent)


def _from_field(
    column: pa.Array, field: FieldDescriptor, schema: ConnectSchema, mapping: ProtobufMapping
) -> pa.Array:
    import pyarrow as pa

    target = schema.arrow_type()
    if schema.type is Type.MAP:
        assert schema.value_schema is not None
        value = field.message_type.fields_by_name["value"]
        entries = pa.StructArray.from_arrays(
            [
                conform(column.keys, target.key_type),
                _from_value(column.items, value, schema.value_schema, mapping),
            ],
            fields=[target.key_field, target.item_field],
        )
        return with_items(column, target, entries)
    if field.is_repeated:
        assert schema.value_schema is not None
        items = _from_value(column.values, field, schema.value_schema, mapping)
        return with_items(column, target, items)
    return _from_value(column, field, schema, mapping)


def _from_value(
    column: pa.Array, field: FieldDescriptor, schema: ConnectSchema, mapping: ProtobufMapping
) -> pa.Array:
    if schema.type is Type.STRUCT:
        return from_messages(column, field.message_type, schema, mapping)
    if schema.name == DECIMAL:
        return _decimals(column, schema)
    return conform(column, schema.arrow_type())


def _decimals(column: pa.StructArray, schema: ConnectSchema) -> pa.Array:
    """Values nearly always have the scale of the schema."""
    import pyarrow as pa
    import pyarrow.compute as pc

    target = schema.arrow_type()
    unscaled, scales = column.field("value"), column.field("scale")
    is_other = pc.not_equal(scales, target.scale)
    if column.null_count:
        is_other = pc.and_(is_other, column.is_valid())
        unscaled = pc.if_else(column.is_valid(), unscaled, None)
    if not pc.any(is_other, min_count=0).as_py():
        return decimals_from_bytes(unscaled, target.scale).cast(target)
    numbers = [
        None
        if value is None
        else decimal_of(int.from_bytes(value["value"], "big", signed=True), value["scale"])
        for value in column.to_pylist()
    ]
    return pa.array(numbers, target)


def to_messages(
    values: pa.StructArray, schema: ConnectSchema, mapping: ProtobufMapping
) -> pa.StructArray:
    """Returns structs with the fields of the message. Raises ValueError if a value does not fit."""
    import pyarrow as pa

    names: list[str] = []
    children: list[pa.Array] = []
    for index, field in enumerate(schema.fields):
        column = values.field(index)
        if (field.schema.name or "").startswith(UNION_PREFIX):
            for part, child in zip(field.schema.fields, column.flatten(), strict=True):
                names.append(mapping.field_name(part.name))
                children.append(_to_field(child, part.schema, mapping))
        else:
            names.append(mapping.field_name(field.name))
            children.append(_to_field(column, field.schema, mapping))
    mask = values.is_null() if values.null_count else None
    if not children:
        return values
    return pa.StructArray.from_arrays(children, names, mask=mask)


def _to_field(column: pa.Array, schema: ConnectSchema, mapping: ProtobufMapping) -> pa.Array:
    import pyarrow as pa

    if schema.type is Type.MAP:
        assert schema.value_schema is not None
        items = _to_field(column.items, schema.value_schema, mapping)
        target = pa.map_(column.keys.type, items.type)
        fields = [target.key_field, target.item_field]
        entries = pa.StructArray.from_arrays([column.keys, items], fields=fields)
        return with_items(column, target, entries)
    if schema.type is Type.ARRAY:
        assert schema.value_schema is not None
        items = _to_field(column.values, schema.value_schema, mapping)
        return with_items(column, pa.list_(items.type), items)
    if schema.type is Type.STRUCT:
        return to_messages(column, schema, mapping)
    match schema.name:
        case name if name == DECIMAL:
            return _decimal_messages(column)
        case name if name == DATE:
            return parts_of_date(column)
        case name if name == TIME:
            return parts_of_time(column)
    return column


def _decimal_messages(column: pa.Array) -> pa.StructArray:
    import pyarrow as pa

    count = len(column)
    parts = [
        decimals_to_bytes(column),
        pa.repeat(pa.scalar(column.type.precision, pa.int64()), count),
        pa.repeat(pa.scalar(column.type.scale, pa.int32()), count),
    ]
    mask = column.is_null() if column.null_count else None
    return pa.StructArray.from_arrays(parts, ["value", "precision", "scale"], mask=mask)


def _struct(
    values: pa.StructArray, schema: ConnectSchema, children: list[pa.Array]
) -> pa.StructArray:
    import pyarrow as pa

    if not children:
        return values.cast(schema.arrow_type())
    mask = values.is_null() if values.null_count else None
    return pa.StructArray.from_arrays(children, fields=schema.arrow_type().fields, mask=mask)
