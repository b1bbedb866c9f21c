"""Payloads of one schema to the columns of another, through a compiled walk over their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from barnabas.columns import Decoded
from barnabas.columns.protobuf import _decoding
from barnabas.columns.protobuf.shapes import Shape, shape_of
from barnabas.schemas import SchemaError
from barnabas.schemas.framing import (
    HEADER_BYTES,
    FramingError,
    index_encodings,
    message_indexes,
    read_indexes,
)
from barnabas.schemas.protobuf import ProtobufSchema
from barnabas.wire.records.buffers import view

if TYPE_CHECKING:
    import pyarrow as pa


class ProtobufDecoder:
    """Fields are known by their numbers, so the schema that is wanted reads whatever was written.

    The one it was written with says only which message the indexes before it mean.
    """

    def __init__(self, wanted: Descriptor, written: ProtobufSchema | None) -> None:
        """`written` is None where payloads are not framed."""
        self._shape = shape_of(wanted)
        self._wanted = wanted
        self._written = written
        self._class = GetMessageClass(wanted)
        self._columns = _columns(self._shape)
        self._reader = _decoding.Reader(self._columns.column)
        self._prefixes = None if written is None else _prefixes(wanted, written)

    @property
    def arrow_type(self) -> pa.DataType:
        return self._shape.arrow_type

    def decode(self, payloads: pa.BinaryArray) -> Decoded:
        validity, offsets, content = payloads.buffers()
        self._columns.column.clear()
        faults = self._reader.read(
            view(offsets, "i"),
            view(content, "B"),
            view(validity if payloads.null_count else None, "B"),
            payloads.offset,
            len(payloads),
            0 if self._written is None else HEADER_BYTES,
            self._prefixes,
            self._rewritten,
        )
        return Decoded(_array(self._columns), self._reasons(payloads, faults))

    def _rewritten(self, payload: bytes) -> bytes | None:
        """The same message, written plainly; None where it is none."""
        try:
            message = self._class.FromString(payload)
        except DecodeError:
            return None
        message.DiscardUnknownFields()
        return bytes(message.SerializePartialToString())

    def _reasons(
        self, payloads: pa.BinaryArray, faults: Sequence[tuple[int, int, str]]
    ) -> pa.StringArray | None:
        if not faults:
            return None
        import pyarrow as pa

        reasons: list[str | None] = [None] * len(payloads)
        for row, code, field in faults:
            if code == _decoding.OTHER_MESSAGE:
                reasons[row] = self._why_other(payloads[row].as_py())
            else:
                where = f" in field {field}" if field else ""
                reasons[row] = f"The payload is no {self._wanted.full_name}: {_WHY[code]}{where}."
        return pa.array(reasons, pa.string())

    def _why_other(self, payload: bytes) -> str:
        assert self._written is not None
        try:
            indexes, _ = read_indexes(payload, HEADER_BYTES)
            name = self._written.message_at(indexes).full_name
        except FramingError:
            return "The payload is cut short: it does not say which message it is."
        except SchemaError as raised:
            return str(raised)
        return (
            f"The payload is a {name}, and {self._wanted.full_name} is read: say which message"
            f" to read, or read it from where it is."
        )


_WHY = {
    _decoding.CUT_SHORT: "it is cut short",
    _decoding.BAD_TAG: "it has a tag that means nothing",
    _decoding.BAD_TEXT: "there is text that is not UTF-8",
    _decoding.BAD_TIMESTAMP: "there is a time outside the years 1 to 9999",
    _decoding.TOO_DEEP: "it is nested too deep",
    _decoding.ODD: "the protobuf library cannot read it",
    _decoding.BAD_VARINT: "it has a number of more than ten bytes",
}


def _prefixes(wanted: Descriptor, written: ProtobufSchema) -> tuple[bytes, ...]:
    """What stands before payloads of the message; nothing where the writer's file has none such.

    It is known by its name without the package, which may have changed.
    """
    local = wanted.full_name.removeprefix(f"{wanted.file.package}.")
    own = f"{written.own.package}.{local}" if written.own.package else local
    try:
        message = written.message(own)
    except SchemaError:
        return ()
    is_own = message.file.name == written.descriptor.name
    return index_encodings(message_indexes(message)) if is_own else ()


@dataclass(slots=True, frozen=True)
class _Columns:
    shape: Shape
    column: _decoding.Column
    children: tuple[_Columns, ...]


def _columns(shape: Shape) -> _Columns:
    children = tuple(_columns(child) for child in shape.children)
    symbols: dict[int, bytes] = {}
    for value in shape.enum.values if shape.enum else ():
        symbols.setdefault(value.number, value.name.encode())
    column = _decoding.Column(
        shape.name,
        shape.number,
        shape.kind,
        shape.wire,
        is_zigzag=shape.is_zigzag,
        inner_wire=-1 if shape.inner_wire is None else shape.inner_wire,
        is_repeated=shape.is_repeated,
        is_map=shape.is_map,
        is_nullable=shape.is_nullable,
        is_merged=shape.is_message,
        oneof=shape.oneof,
        symbols=symbols,
        is_closed=shape.enum is not None and bool(shape.enum.is_closed),
        default=next(iter(symbols), 0),
        children=[child.column for child in children],
        oneof_count=shape.oneof_count,
    )
    return _Columns(shape, column, children)


def _array(columns: _Columns) -> pa.Array:
    import pyarrow as pa

    shape = columns.shape
    count, valid, values, content, list_count, starts = columns.column.taken()
    validity = None if valid is None else pa.py_buffer(valid)
    array_type = shape.arrow_type
    if pa.types.is_struct(array_type):
        children = [_array(child) for child in columns.children]
        array = pa.Array.from_buffers(array_type, count, [validity], children=children)
    elif pa.types.is_string(array_type) or pa.types.is_binary(array_type):
        buffers = [validity, pa.py_buffer(values), pa.py_buffer(content)]
        array = pa.Array.from_buffers(array_type, count, buffers)
    else:
        array = pa.Array.from_buffers(array_type, count, [validity, pa.py_buffer(values)])
    if not shape.is_repeated:
        return array
    if shape.is_map:
        entry = shape.column_type
        array = pa.StructArray.from_arrays(
            [array.field(0), array.field(1)], fields=[entry.key_field, entry.item_field]
        )
    return pa.Array.from_buffers(
        shape.column_type, list_count, [None, pa.py_buffer(starts)], children=[array]
    )
