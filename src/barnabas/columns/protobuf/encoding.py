"""Columns to payloads of a schema, through a compiled walk over Arrow's buffers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from google.protobuf.descriptor import Descriptor

from barnabas.columns.protobuf import _encoding
from barnabas.columns.protobuf.kinds import Kind
from barnabas.columns.protobuf.shapes import Shape, shape_of
from barnabas.schemas import SchemaError
from barnabas.wire.records.buffers import view

if TYPE_CHECKING:
    import pyarrow as pa


class ProtobufEncoder:
    def __init__(self, message: Descriptor, arrow_type: pa.DataType, prefix: bytes) -> None:
        """SchemaError where values of the type do not fit the message."""
        self._name = message.full_name
        self._prefix = prefix
        self._field = _fitted(shape_of(message), arrow_type, message.full_name)

    def encode(self, values: pa.Array) -> pa.BinaryArray:
        """ValueError, naming the field, where a value does not fit the schema."""
        import pyarrow as pa

        try:
            fitting = values.cast(self._field.arrow_type)
        except pa.ArrowInvalid as raised:
            raise ValueError(f"A value does not fit message {self._name}: {raised}") from None
        _bind(self._field, fitting)
        count = len(fitting)
        offsets = bytearray(4 * count + 4)
        store, first = _encoding.Writer().write(
            self._field.source, count, self._prefix, memoryview(offsets).cast("i")
        )
        validity = None
        if fitting.null_count:
            validity = fitting.is_valid().buffers()[1]
        return pa.Array.from_buffers(
            pa.binary(),
            count,
            [validity, pa.py_buffer(offsets), pa.py_buffer(store).slice(first)],
        )


@dataclass(slots=True, frozen=True)
class _Field:
    source: _encoding.Source
    shape: Shape
    arrow_type: pa.DataType
    """As its array is to be, so that the walk finds the numbers it knows."""
    children: tuple[tuple[int, _Field], ...]
    """Each with its place in the array of its message."""


def _fitted(shape: Shape, arrow_type: pa.DataType, path: str) -> _Field:
    import pyarrow as pa

    types = pa.types
    if shape.is_map:
        if not types.is_map(arrow_type):
            raise SchemaError(f"Field {path} is a map, and the column is {arrow_type}.")
        key = _fitted(shape.children[0], arrow_type.key_type, f"{path}.key")
        # Without a value an entry would be read as zero.
        given = replace(shape.children[1], name=f"{shape.name}[]", is_required=True)
        value = _fitted(given, arrow_type.item_type, f"{path}.value")
        return _field(shape, pa.map_(key.arrow_type, value.arrow_type), ((0, key), (1, value)))
    if shape.is_repeated:
        if not types.is_list(arrow_type):
            raise SchemaError(f"Field {path} is repeated, and the column is {arrow_type}.")
        one = _fitted_value(shape, arrow_type.value_type, path)
        return _field(shape, pa.list_(one.arrow_type), one.children)
    return _fitted_value(shape, arrow_type, path)


def _fitted_value(shape: Shape, arrow_type: pa.DataType, path: str) -> _Field:
    import pyarrow as pa

    if shape.kind is not Kind.MESSAGE:
        try:
            pa.nulls(0, arrow_type).cast(shape.arrow_type)
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            raise SchemaError(
                f"Field {path} is a {shape.arrow_type}, and the column is {arrow_type}."
            ) from None
        return _field(shape, shape.arrow_type, ())
    if not pa.types.is_struct(arrow_type):
        raise SchemaError(f"Field {path} is a message, and the column is {arrow_type}.")
    known = {child.name: child for child in shape.children}
    for field in arrow_type:
        if field.name not in known:
            raise SchemaError(
                f"Message {path} has no field {field.name!r}; it has {', '.join(known)}."
            )
    given = {field.name for field in arrow_type}
    lacking = [child.name for child in shape.children if child.is_required]
    if not given.issuperset(lacking):
        raise SchemaError(f"Message {path} requires {', '.join(lacking)}: give columns for them.")
    fields = [
        _fitted(known[field.name], field.type, f"{path}.{field.name}") for field in arrow_type
    ]
    struct = pa.struct([(one.shape.name, one.arrow_type) for one in fields])
    by_number = sorted(enumerate(fields), key=lambda placed: placed[1].shape.number)
    return _field(shape, struct, tuple(by_number))


def _field(
    shape: Shape, arrow_type: pa.DataType, children: tuple[tuple[int, _Field], ...]
) -> _Field:
    values = shape.enum.values if shape.enum else ()
    source = _encoding.Source(
        shape.name,
        shape.number,
        shape.kind,
        shape.wire,
        inner_wire=-1 if shape.inner_wire is None else shape.inner_wire,
        is_zigzag=shape.is_zigzag,
        is_repeated=shape.is_repeated,
        is_packed=shape.is_packed,
        is_implicit=shape.is_implicit,
        is_required=shape.is_required,
        symbols={value.name.encode(): value.number for value in values},
        is_closed=shape.enum is not None and bool(shape.enum.is_closed),
        children=[child.source for _, child in children],
    )
    return _Field(source, shape, arrow_type, children)


def _bind(field: _Field, array: pa.Array) -> None:
    """The array's buffers to the source, and those under it to its children."""
    if field.shape.is_repeated:
        validity, starts = array.buffers()[:2]
        bits = view(validity if array.null_count else None, "B")
        field.source.bind_lists(array.offset, bits, _numbers(starts, "i"))
        if field.shape.is_map:
            none, ints, longs = _NOTHING["B"], _NOTHING["i"], _NOTHING["q"]
            field.source.bind(0, none, none, ints, longs, none)
            for (_, child), values in zip(field.children, (array.keys, array.items), strict=True):
                _bind(child, values)
            return
        array = array.values
    _bind_values(field, array)


def _bind_values(field: _Field, array: pa.Array) -> None:
    buffers = array.buffers()
    validity = view(buffers[0] if array.null_count else None, "B")
    views = dict(_NOTHING)
    content = _NOTHING["B"]
    if field.shape.kind is Kind.MESSAGE:
        for place, child in field.children:
            _bind(child, array.field(place))
    else:
        code = _CODES[field.shape.kind]
        views[code] = _numbers(buffers[1], code)
        if field.shape.kind in _TEXTS:
            content = view(buffers[2], "B")
    field.source.bind(array.offset, validity, views["B"], views["i"], views["q"], content)


def _numbers(buffer: pa.Buffer | None, code: str) -> memoryview:
    if buffer is None or not buffer.size:
        return _NOTHING[code]
    seen = memoryview(buffer).cast("B")
    size = _SIZES[code]
    return seen[: len(seen) // size * size].cast(code)  # type: ignore[call-overload, no-any-return]


_TEXTS = (Kind.TEXT, Kind.BYTES, Kind.ENUM)
_CODES = {
    Kind.INT32: "i",
    Kind.INT64: "q",
    Kind.UINT32: "q",
    Kind.UINT64: "q",
    Kind.BOOL: "B",
    Kind.TEXT: "i",
    Kind.BYTES: "i",
    Kind.ENUM: "i",
    Kind.TIMESTAMP: "q",
}
_SIZES = {"B": 1, "i": 4, "q": 8}
_NOTHING = {code: memoryview(b"").cast(code) for code in ("B", "i", "q")}
