"""The columns that a schema's values are decoded into, and the Arrow arrays they become."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.columns._bits import pack_bits
from barnabas.columns.avro import _decode
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
class Slot:
    """Where values of a shape go."""

    schema: AvroType
    """Without the null beside it."""
    is_nullable: bool
    type: pa.DataType
    column: _decode.Column
    children: tuple[Slot, ...]
    """Of a record its fields, of a union its members, of an array its items; a map's two."""

    def array(self) -> pa.Array:
        """What the column has got since it was begun."""
        import pyarrow as pa

        length = self.column.size()
        if pa.types.is_null(self.type):
            return pa.nulls(length)
        valid, cells, content = self.column.buffers()
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


class Builder:
    """Makes the slots of a schema, and remembers their columns."""

    def __init__(self, schema: AvroType) -> None:
        self.columns: list[_decode.Column] = []
        """As long as the column of the root."""
        self.nested: list[_decode.Column] = []
        """Within lists, so that their lengths follow from what was read."""
        inner, _ = without_null(schema)
        self.root = self._slot(inner, is_nullable=True, is_nested=False)

    def _slot(self, schema: AvroType, *, is_nullable: bool, is_nested: bool) -> Slot:
        kind = arrow_type(schema)
        children = tuple(self._children(schema, is_nested))
        has_fields = isinstance(schema, AvroRecord | AvroUnion)
        has_offsets, width = _layout(kind)
        column = _decode.Column(
            width,
            has_offsets,
            is_nullable,
            [child.column for child in children] if has_fields else [],
        )
        (self.nested if is_nested else self.columns).append(column)
        return Slot(schema, is_nullable, kind, column, children)

    def _children(self, schema: AvroType, is_nested: bool) -> list[Slot]:
        match schema:
            case AvroRecord(fields=fields):
                return [self._nullable_slot(field.type, is_nested) for field in fields]
            case AvroUnion(branches):
                return [
                    self._slot(branch, is_nullable=True, is_nested=is_nested) for branch in branches
                ]
            case AvroArray(items):
                return [self._nullable_slot(items, is_nested=True)]
            case AvroMap(values):
                return [
                    self._slot(MAP_KEY, is_nullable=False, is_nested=True),
                    self._nullable_slot(values, is_nested=True),
                ]
        return []

    def _nullable_slot(self, schema: AvroType, is_nested: bool) -> Slot:
        inner, is_nullable = without_null(schema)
        return self._slot(inner, is_nullable=is_nullable, is_nested=is_nested)


def _layout(kind: pa.DataType) -> tuple[bool, int]:
    """Whether the cells are offsets; how many bytes one takes."""
    import pyarrow as pa

    is_kind = pa.types
    if is_kind.is_struct(kind) or is_kind.is_null(kind):
        return False, 0
    if is_kind.is_boolean(kind):
        return False, 1
    if is_kind.is_nested(kind) or is_kind.is_string(kind) or is_kind.is_binary(kind):
        return True, 4
    return False, kind.bit_width // 8
