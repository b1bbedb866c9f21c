"""The nodes that write a column as values of an Avro schema.

What Arrow can do for a whole column is done before: numbers are cast, times get the schema's
unit, symbols their numbers. What remains for each value is to be written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.columns.avro import _encode, scalars
from barnabas.columns.avro.defaults import encode_default
from barnabas.columns.avro.scalars import Place
from barnabas.columns.avro.schemas import MAP_KEY
from barnabas.columns.avro.types import arrow_type
from barnabas.schemas import SchemaError
from barnabas.schemas.avro.model import (
    MISSING,
    AvroArray,
    AvroEnum,
    AvroField,
    AvroFixed,
    AvroMap,
    AvroPrimitive,
    AvroRecord,
    AvroType,
    AvroUnion,
)
from barnabas.schemas.framing import id_prefix
from barnabas.schemas.varints import write_varint
from barnabas.wire.records.buffers import offsets_of, view

if TYPE_CHECKING:
    import pyarrow as pa


class ProgramEncoder:
    """Writes rows as payloads, after the schema's id unless that is None; nulls have none."""

    def __init__(self, schema: AvroType, arrow_type: pa.DataType, schema_id: int | None) -> None:
        """SchemaError, naming the field, where the type has no place in the schema."""
        import pyarrow as pa

        self._shape = schema
        self._header = b"" if schema_id is None else id_prefix(schema_id)
        _present(schema, pa.array([], arrow_type), Place())

    def encode(self, values: pa.Array) -> pa.BinaryArray:
        import pyarrow as pa

        count = len(values)
        valid = values.is_valid() if values.null_count else None
        bits = None if valid is None else valid.buffers()[1]
        offsets = pa.allocate_buffer(4 * count + 4)
        content = _encode.run(
            _present(self._shape, values, Place()),
            view(bits, "B"),
            0 if valid is None else valid.offset,
            self._header,
            view(offsets, "i"),
            values.nbytes + count * (len(self._header) + 8),
        )
        if valid is not None and valid.offset:
            bits = pa.concat_arrays([valid]).buffers()[1]
        return pa.Array.from_buffers(
            pa.binary(), count, [bits, offsets, pa.py_buffer(content)], values.null_count
        )


def _node(schema: AvroType, values: pa.Array, place: Place) -> _encode.Node:
    """Of values that may be null, if the schema has it so."""
    import pyarrow as pa

    present = _present(schema, values, place)
    if values.null_count == 0 or schema.kind == "null":
        return present
    absent: _encode.Node = _encode.Unfit("it is null, and the schema has it always set")
    if isinstance(schema, AvroUnion):
        for index, member in enumerate(schema.branches):
            if member.kind == "null":
                absent = _encode.Prefixed(write_varint(index), _encode.Nothing())
    if pa.types.is_null(values.type):
        return absent
    return _encode.Nullable(view(values.buffers()[0], "B"), values.offset, present, absent)


def _present(schema: AvroType, values: pa.Array, place: Place) -> _encode.Node:
    """Of values that are not null; nulls are not asked for."""
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_null(values.type):
        return _encode.Nothing()
    match schema:
        case AvroUnion(branches):
            return _union(branches, values, place)
        case AvroRecord() if kinds.is_struct(values.type):
            return _record(schema, values, place)
        case AvroArray(items) if kinds.is_list(values.type) or kinds.is_large_list(values.type):
            lists = values.cast(pa.list_(values.type.value_field))
            return _encode.Items(offsets_of(lists), [_node(items, lists.values, place)])
        case AvroMap(inner) if kinds.is_map(values.type):
            return _encode.Items(
                offsets_of(values),
                [_node(MAP_KEY, values.keys, place), _node(inner, values.items, place)],
            )
        case AvroPrimitive():
            return scalars.primitive(schema, values, place)
        case AvroFixed():
            return scalars.fixed(schema, values, place)
        case AvroEnum():
            return scalars.enum(schema, values, place)
    raise place.mismatch(values.type, schema.kind)


def _record(record: AvroRecord, values: pa.StructArray, place: Place) -> _encode.Node:
    by_name = {field.name: index for index, field in enumerate(values.type)}
    nodes = []
    for field in record.fields:
        index = by_name.pop(field.name, None)
        inner = place.within(field.name)
        if index is None:
            nodes.append(_missing(field, inner))
        else:
            nodes.append(_node(field.type, values.field(index), inner))
    if by_name:
        raise SchemaError(
            f"{place.within(next(iter(by_name)))} is not in the schema: drop the column, or add a "
            f"field to the schema."
        )
    return _encode.Record(nodes, [field.name for field in record.fields])


def _missing(field: AvroField, place: Place) -> _encode.Node:
    """A field that there is no column for."""
    if field.default is not MISSING:
        return _encode.Prefixed(
            encode_default(field.type, field.default, place.path), _encode.Nothing()
        )
    if isinstance(field.type, AvroUnion):
        for index, member in enumerate(field.type.branches):
            if member.kind == "null":
                return _encode.Prefixed(write_varint(index), _encode.Nothing())
    raise SchemaError(f"{place} is in the schema, without a default, and there is no such column.")


def _union(members: tuple[AvroType, ...], values: pa.Array, place: Place) -> _encode.Node:
    """The members as fields of a struct, or the one member that takes such values."""
    import pyarrow as pa

    numbered = [(index, member) for index, member in enumerate(members) if member.kind != "null"]
    if pa.types.is_struct(values.type) and [field.name for field in values.type] == [
        f"member{place}" for place in range(len(numbered))
    ]:
        return _choice(numbered, values, place)
    numbered.sort(key=lambda each: not scalars.is_same(arrow_type(each[1]), values.type))
    for index, member in numbered:
        try:
            return _encode.Prefixed(write_varint(index), _present(member, values, place))
        except SchemaError:
            if len(numbered) == 1:
                raise
    raise place.mismatch(values.type, "union")


def _choice(
    numbered: list[tuple[int, AvroType]], values: pa.StructArray, place: Place
) -> _encode.Node:
    present: list[_encode.Int] = []
    nodes: list[_encode.Node] = []
    for field, (index, member) in enumerate(numbered):
        column = values.field(field)
        present.append(_encode.Int(scalars.integers(column.is_valid(), 32)))
        inner = _present(member, column, place.within(f"member{field}"))
        nodes.append(_encode.Prefixed(write_varint(index), inner))
    return _encode.Choice(present, nodes)
