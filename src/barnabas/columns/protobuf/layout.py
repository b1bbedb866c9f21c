"""The columns of a message, as a tree built from its descriptor.

Google's wrappers and timestamps are plain values. A message within itself would be an infinite
type, so the inner one stays a column of bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from google.protobuf.descriptor import (
    Descriptor,
    EnumDescriptor,
    FieldDescriptor,
)

from barnabas.columns.protobuf.field_types import ColumnKind, WireType
from barnabas.schemas import SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

MAX_COLUMNS = 5000
"""A few messages that contain each other twice would otherwise not fit in memory."""
MAX_DEPTH = 60


@dataclass(slots=True, frozen=True)
class ProtobufFieldLayout:
    """The column of a field, or of the top-level message."""

    name: str
    number: int
    kind: ColumnKind
    wire: WireType
    arrow_type: pa.DataType
    """The type of one value, also if the field is repeated."""
    is_zigzag: bool = False
    inner_wire: WireType | None = None
    """The wire type of a wrapper's value; None if it is not a wrapper."""
    is_repeated: bool = False
    is_packed: bool = False
    is_map: bool = False
    is_nullable: bool = False
    is_implicit: bool = False
    """Zero is not written, and a field that is not written is zero."""
    is_required: bool = False
    is_message: bool = False
    """Whether the field is a message on the wire, also if its kind is another: parts are merged."""
    oneof: int = -1
    enum: EnumDescriptor | None = None
    children: tuple[ProtobufFieldLayout, ...] = ()
    oneof_count: int = 0

    @property
    def column_type(self) -> pa.DataType:
        import pyarrow as pa

        if self.is_map:
            key, value = self.children
            return pa.map_(key.column_type, value.column_type)
        return pa.list_(self.arrow_type) if self.is_repeated else self.arrow_type


def message_layout(message: Descriptor) -> ProtobufFieldLayout:
    """Raises SchemaError if the message has too many columns."""
    builder = _LayoutBuilder()
    return replace(
        builder.message(message, ()), name=str(message.name), is_nullable=True, is_message=True
    )


class _LayoutBuilder:
    def __init__(self) -> None:
        self._columns = 0

    def message(self, message: Descriptor, outer: tuple[str, ...]) -> ProtobufFieldLayout:
        import pyarrow as pa

        within = (*outer, message.full_name)
        if len(within) > MAX_DEPTH:
            raise SchemaError(
                f"Message {within[0]} is nested more than {MAX_DEPTH} levels deep: it cannot be"
                f" read as columns."
            )
        oneofs = {oneof.name: index for index, oneof in enumerate(message.oneofs)}
        children = tuple(self._field(field, within, oneofs) for field in _in_order(message))
        return ProtobufFieldLayout(
            name="",
            number=0,
            kind=ColumnKind.MESSAGE,
            wire=WireType.LEN,
            arrow_type=pa.struct([(child.name, child.column_type) for child in children]),
            children=children,
            oneof_count=len(oneofs),
        )

    def _field(
        self, field: FieldDescriptor, within: tuple[str, ...], oneofs: dict[str, int]
    ) -> ProtobufFieldLayout:
        self._columns += 1
        if self._columns > MAX_COLUMNS:
            raise SchemaError(
                f"Message {within[0]} has more than {MAX_COLUMNS} columns with those of its"
                f" fields: read it as bytes."
            )
        in_entry = _is_entry(field.containing_type)
        return replace(
            self._value(field, within),
            name=str(field.name),
            number=int(field.number),
            is_repeated=bool(field.is_repeated),
            is_packed=bool(field.is_packed),
            is_nullable=bool(field.has_presence) and not field.is_repeated and not in_entry,
            is_implicit=not field.has_presence and not field.is_repeated and not in_entry,
            is_required=bool(field.is_required),
            is_message=field.message_type is not None,
            oneof=oneofs[field.containing_oneof.name] if field.containing_oneof else -1,
        )

    def _value(self, field: FieldDescriptor, within: tuple[str, ...]) -> ProtobufFieldLayout:
        import pyarrow as pa

        if field.message_type is None:
            return _scalar(field)
        name = field.message_type.full_name
        wire = WireType.GROUP if field.type == FieldDescriptor.TYPE_GROUP else WireType.LEN
        if name == "google.protobuf.Timestamp":
            return ProtobufFieldLayout(
                "", 0, ColumnKind.TIMESTAMP, wire, pa.timestamp("us", tz="UTC")
            )
        if name in _WRAPPERS:
            inner = _scalar(field.message_type.fields_by_number[1])
            return replace(inner, wire=wire, inner_wire=inner.wire)
        if name in within:
            return ProtobufFieldLayout("", 0, ColumnKind.BYTES, wire, pa.binary())
        inner = self.message(field.message_type, within)
        return replace(inner, wire=wire, is_map=_is_entry(field.message_type))


def _in_order(message: Descriptor) -> list[FieldDescriptor]:
    """Returns the fields in the order of the file; of a map, the key before the value."""
    if _is_entry(message):
        return sorted(message.fields, key=lambda field: int(field.number))
    return list(message.fields)


def _is_entry(message: Descriptor) -> bool:
    return bool(message.GetOptions().map_entry)


def _scalar(field: FieldDescriptor) -> ProtobufFieldLayout:
    import pyarrow as pa

    kind, wire, type_name = _SCALARS[field.type]
    arrow_type = pa.decimal128(20, 0) if kind is ColumnKind.UINT64 else getattr(pa, type_name)()
    is_zigzag = field.type in (FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SINT64)
    return ProtobufFieldLayout(
        "", 0, kind, wire, arrow_type, is_zigzag=is_zigzag, enum=field.enum_type
    )


_SCALARS = {
    FieldDescriptor.TYPE_DOUBLE: (ColumnKind.INT64, WireType.FIXED64, "float64"),
    FieldDescriptor.TYPE_FLOAT: (ColumnKind.INT32, WireType.FIXED32, "float32"),
    FieldDescriptor.TYPE_INT64: (ColumnKind.INT64, WireType.VARINT, "int64"),
    FieldDescriptor.TYPE_UINT64: (ColumnKind.UINT64, WireType.VARINT, "decimal128"),
    FieldDescriptor.TYPE_INT32: (ColumnKind.INT32, WireType.VARINT, "int32"),
    FieldDescriptor.TYPE_FIXED64: (ColumnKind.UINT64, WireType.FIXED64, "decimal128"),
    FieldDescriptor.TYPE_FIXED32: (ColumnKind.UINT32, WireType.FIXED32, "int64"),
    FieldDescriptor.TYPE_BOOL: (ColumnKind.BOOL, WireType.VARINT, "bool_"),
    FieldDescriptor.TYPE_STRING: (ColumnKind.TEXT, WireType.LEN, "string"),
    FieldDescriptor.TYPE_BYTES: (ColumnKind.BYTES, WireType.LEN, "binary"),
    FieldDescriptor.TYPE_UINT32: (ColumnKind.UINT32, WireType.VARINT, "int64"),
    FieldDescriptor.TYPE_ENUM: (ColumnKind.ENUM, WireType.VARINT, "string"),
    FieldDescriptor.TYPE_SFIXED32: (ColumnKind.INT32, WireType.FIXED32, "int32"),
    FieldDescriptor.TYPE_SFIXED64: (ColumnKind.INT64, WireType.FIXED64, "int64"),
    FieldDescriptor.TYPE_SINT32: (ColumnKind.INT32, WireType.VARINT, "int32"),
    FieldDescriptor.TYPE_SINT64: (ColumnKind.INT64, WireType.VARINT, "int64"),
}
_WRAPPERS = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
