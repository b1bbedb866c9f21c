"""The columns that an Avro schema's values are decoded into, and the Arrow arrays of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.columns._bits import pack_bits
from barnabas.columns.avro import _decoder
from barnabas.columns.avro.schemas import MAP_KEY
from barnabas.columns.avro.types import arrow_type, without_null
from barnabas.schemas.avro.model import (
    AvroArray,
    AvroMap,
    AvroRecord,
    AvroType,
    AvroUnion,
)

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True, frozen=True)
class AvroColumn:
    """A column for values of a schema, with the columns of its parts."""

    schema: AvroType
    """The schema without null."""
    is_nullable: bool
    type: pa.DataType
    buffer: _decoder.AvroColumnBuffer
    children: tuple[AvroColumn, ...]
    """The fields of a record, the branches of a union, the items of an array, a map's key and
    value."""

    def array(self) -> pa.Array:
        """Returns the values that were appended to the buffer."""
        import pyarrow as pa

        length = self.buffer.size()
        if pa.types.is_null(self.type):
            return pa.nulls(length)
        valid, cells, content = self.buffer.buffers()
        validity = None
        if self.is_nullable and valid.find(0, 0, length) >= 0:
            validity = pa.py_buffer(pack_bits(valid, length))
        children = [child.array() for child in self.children]
        if pa.types.is_boolean(self.type):
            cells = pack_bits(cells, length)
        buffers = [validity, pa.py_buffer(cells)]
        if pa.types.is_struct(self.type):
            buffers = [validity]
        elif pa.types.is_map(self.type):
            entries = pa.struct([self.type.key_field, self.type.item_field])
            children = [pa.Array.from_buffers(entries, len(children[0]), [None], children=children)]
        elif not children:
            if pa.types.is_string(self.type) or pa.types.is_binary(self.type):
                buffers.append(pa.py_buffer(content))
            return pa.Array.from_buffers(self.type, length, buffers)
        return pa.Array.from_buffers(self.type, length, buffers, children=children)


class AvroColumnBuilder:
    """Builds the columns of a schema, and lists their buffers."""

    def __init__(self, schema: AvroType) -> None:
        self.buffers: list[_decoder.AvroColumnBuffer] = []
        """Those with the length of the root."""
        self.nested_buffers: list[_decoder.AvroColumnBuffer] = []
        """Those within lists, whose lengths depend on the payloads."""
        inner, _ = without_null(schema)
        self.root = self._column(inner, is_nullable=True, is_nested=False)

    def _column(self, schema: AvroType, *, is_nullable: bool, is_nested: bool) -> AvroColumn:
        arrow_type_ = arrow_type(schema)
        children = tuple(self._children(schema, is_nested))
        has_fields = isinstance(schema, AvroRecord | AvroUnion)
        has_offsets, width = _layout(arrow_type_)
        column = _decoder.AvroColumnBuffer(
            width,
            has_offsets,
            is_nullable,
            [child.buffer for child in children] if has_fields else [],
        )
        (self.nested_buffers if is_nested else self.buffers).append(column)
        return AvroColumn(schema, is_nullable, arrow_type_, column, children)

    def _children(self, schema: AvroType, is_nested: bool) -> list[AvroColumn]:
        match schema:
            case AvroRecord(fields=fields):
                return [self._nullable_column(field.type, is_nested) for field in fields]
            case AvroUnion(branches):
                return [
                    self._column(branch, is_nullable=True, is_nested=is_nested)
                    for branch in branches
                ]
            case AvroArray(items):
                return [self._nullable_column(items, is_nested=True)]
            case AvroMap(values):
                return [
                    self._column(MAP_KEY, is_nullable=False, is_nested=True),
                    self._nullable_column(values, is_nested=True),
                ]
        return []

    def _nullable_column(self, schema: AvroType, is_nested: bool) -> AvroColumn:
        inner, is_nullable = without_null(schema)
        return self._column(inner, is_nullable=is_nullable, is_nested=is_nested)


def _layout(arrow_type_: pa.DataType) -> tuple[bool, int]:
    """Returns whether the cells are offsets, and the bytes of a cell."""
    import pyarrow as pa

    types = pa.types
    if types.is_struct(arrow_type_) or types.is_null(arrow_type_):
        return False, 0
    if types.is_boolean(arrow_type_):
        return False, 1
    if types.is_nested(arrow_type_) or types.is_string(arrow_type_) or types.is_binary(arrow_type_):
        return True, 4
    return False, arrow_type_.bit_width // 8
