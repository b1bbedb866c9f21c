"""Encodes columns as Protobuf payloads, with the compiled writer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from google.protobuf.descriptor import Descriptor

from barnabas.columns.protobuf import _encoder
from barnabas.columns.protobuf.field_types import ColumnKind
from barnabas.columns.protobuf.layout import ProtobufFieldLayout, message_layout
from barnabas.schemas import SchemaError
from barnabas.wire.records.buffers import view

if TYPE_CHECKING:
    import pyarrow as pa


class ProtobufEncoder:
    def __init__(self, message: Descriptor, arrow_type: pa.DataType, prefix: bytes) -> None:
        """Raises SchemaError if values of the type do not fit the message."""
        self._name = message.full_name
        self._prefix = prefix
        self._field = _match_field(message_layout(message), arrow_type, message.full_name)

    def encode(self, values: pa.Array) -> pa.BinaryArray:
        """Raises ValueError, with the field, if a value does not fit the schema."""
        import pyarrow as pa

        try:
            cast_values = values.cast(self._field.arrow_type)
        except pa.ArrowInvalid as error:
            raise ValueError(f"A value does not fit message {self._name}: {error}") from None
        _bind(self._field, cast_values)
        count = len(cast_values)
        offsets = bytearray(4 * count + 4)
        store, first = _encoder.ProtobufWriter().write(
            self._field.field_writer, count, self._prefix, memoryview(offsets).cast("i")
        )
        validity = None
        if cast_values.null_count:
            validity = cast_values.is_valid().buffers()[1]
        return pa.Array.from_buffers(
            pa.binary(),
            count,
            [validity, pa.py_buffer(offsets), pa.py_buffer(store).slice(first)],
        )


@dataclass(slots=True, frozen=True)
class _BoundField:
    field_writer: _encoder.ProtobufField
    layout: ProtobufFieldLayout
    arrow_type: pa.DataType
    """The type to cast the array to, which the compiled writer reads."""
    children: tuple[tuple[int, _BoundField], ...]
    """The fields of a message, with their indexes in its array."""


def _match_field(layout: ProtobufFieldLayout, arrow_type: pa.DataType, path: str) -> _BoundField:
    import pyarrow as pa

    types = pa.types
    if layout.is_map:
        if not types.is_map(arrow_type):
            raise SchemaError(f"Field {path} is a map, and the column is {arrow_type}.")
        key = _match_field(layout.children[0], arrow_type.key_type, f"{path}.key")
        # An entry without a value would be read as zero.
        value_layout = replace(layout.children[1], name=f"{layout.name}[]", is_required=True)
        value = _match_field(value_layout, arrow_type.item_type, f"{path}.value")
        return _field(layout, pa.map_(key.arrow_type, value.arrow_type), ((0, key), (1, value)))
    if layout.is_repeated:
        if not types.is_list(arrow_type):
            raise SchemaError(f"Field {path} is repeated, and the column is {arrow_type}.")
        child = _match_value(layout, arrow_type.value_type, path)
        return _field(layout, pa.list_(child.arrow_type), child.children)
    return _match_value(layout, arrow_type, path)


def _match_value(layout: ProtobufFieldLayout, arrow_type: pa.DataType, path: str) -> _BoundField:
    import pyarrow as pa

    if layout.kind is not ColumnKind.MESSAGE:
        try:
            pa.nulls(0, arrow_type).cast(layout.arrow_type)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise SchemaError(
                f"Field {path} is a {layout.arrow_type}, and the column is {arrow_type}."
            ) from None
        return _field(layout, layout.arrow_type, ())
    if not pa.types.is_struct(arrow_type):
        raise SchemaError(f"Field {path} is a message, and the column is {arrow_type}.")
    layouts = {child.name: child for child in layout.children}
    for field in arrow_type:
        if field.name not in layouts:
            raise SchemaError(
                f"Message {path} has no field {field.name!r}; it has {', '.join(layouts)}."
            )
    names = {field.name for field in arrow_type}
    required = [child.name for child in layout.children if child.is_required]
    if not names.issuperset(required):
        raise SchemaError(f"Message {path} requires {', '.join(required)}: add columns for them.")
    fields = [
        _match_field(layouts[field.name], field.type, f"{path}.{field.name}")
        for field in arrow_type
    ]
    struct = pa.struct([(child.layout.name, child.arrow_type) for child in fields])
    by_number = sorted(enumerate(fields), key=lambda entry: entry[1].layout.number)
    return _field(layout, struct, tuple(by_number))


def _field(
    layout: ProtobufFieldLayout,
    arrow_type: pa.DataType,
    children: tuple[tuple[int, _BoundField], ...],
) -> _BoundField:
    values = layout.enum.values if layout.enum else ()
    field_writer = _encoder.ProtobufField(
        layout.name,
        layout.number,
        layout.kind,
        layout.wire,
        inner_wire=-1 if layout.inner_wire is None else layout.inner_wire,
        is_zigzag=layout.is_zigzag,
        is_repeated=layout.is_repeated,
        is_packed=layout.is_packed,
        is_implicit=layout.is_implicit,
        is_required=layout.is_required,
        symbols={value.name.encode(): value.number for value in values},
        is_closed=layout.enum is not None and bool(layout.enum.is_closed),
        children=[child.field_writer for _, child in children],
    )
    return _BoundField(field_writer, layout, arrow_type, children)


def _bind(field: _BoundField, array: pa.Array) -> None:
    """Set the buffers of an array, and of its children."""
    if field.layout.is_repeated:
        validity, starts = array.buffers()[:2]
        bits = view(validity if array.null_count else None, "B")
        field.field_writer.bind_lists(array.offset, bits, _numbers(starts, "i"))
        if field.layout.is_map:
            none, ints, longs = _EMPTY["B"], _EMPTY["i"], _EMPTY["q"]
            field.field_writer.bind(0, none, none, ints, longs, none)
            for (_, child), values in zip(field.children, (array.keys, array.items), strict=True):
                _bind(child, values)
            return
        array = array.values
    _bind_values(field, array)


def _bind_values(field: _BoundField, array: pa.Array) -> None:
    buffers = array.buffers()
    validity = view(buffers[0] if array.null_count else None, "B")
    views = dict(_EMPTY)
    content = _EMPTY["B"]
    if field.layout.kind is ColumnKind.MESSAGE:
        for index, child in field.children:
            _bind(child, array.field(index))
    else:
        code = _CODES[field.layout.kind]
        views[code] = _numbers(buffers[1], code)
        if field.layout.kind in _TEXTS:
            content = view(buffers[2], "B")
    field.field_writer.bind(array.offset, validity, views["B"], views["i"], views["q"], content)


def _numbers(buffer: pa.Buffer | None, code: str) -> memoryview:
    if buffer is None or not buffer.size:
        return _EMPTY[code]
    data = memoryview(buffer).cast("B")
    size = _SIZES[code]
    return data[: len(data) // size * size].cast(code)  # type: ignore[call-overload, no-any-return]


_TEXTS = (ColumnKind.TEXT, ColumnKind.BYTES, ColumnKind.ENUM)
_CODES = {
    ColumnKind.INT32: "i",
    ColumnKind.INT64: "q",
    ColumnKind.UINT32: "q",
    ColumnKind.UINT64: "q",
    ColumnKind.BOOL: "B",
    ColumnKind.TEXT: "i",
    ColumnKind.BYTES: "i",
    ColumnKind.ENUM: "i",
    ColumnKind.TIMESTAMP: "q",
}
_SIZES = {"B": 1, "i": 4, "q": 8}
_EMPTY = {code: memoryview(b"").cast(code) for code in ("B", "i", "q")}
