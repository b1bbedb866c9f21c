"""Decodes Protobuf payloads to columns, with the compiled reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError
from google.protobuf.message_factory import GetMessageClass

from barnabas.columns import DecodedColumn
from barnabas.columns.protobuf import _decoder
from barnabas.columns.protobuf.layout import ProtobufFieldLayout, message_layout
from barnabas.schemas import SchemaError
from barnabas.schemas.framing import (
    ID_PREFIX_BYTES,
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
    """Fields have numbers, so the reader's schema reads payloads of any writer's schema.

    The writer's schema only says which message the indexes before a payload mean.
    """

    def __init__(self, message_type: Descriptor, writer_schema: ProtobufSchema | None) -> None:
        """`writer_schema` is None if payloads are not framed."""
        self._layout = message_layout(message_type)
        self._message = message_type
        self._writer_schema = writer_schema
        self._class = GetMessageClass(message_type)
        self._columns = _build_columns(self._layout)
        self._reader = _decoder.ProtobufReader(self._columns.column)
        self._prefixes = None if writer_schema is None else _prefixes(message_type, writer_schema)

    @property
    def arrow_type(self) -> pa.DataType:
        return self._layout.arrow_type

    def decode(self, payloads: pa.BinaryArray) -> DecodedColumn:
        validity, offsets, content = payloads.buffers()
        self._columns.column.clear()
        errors = self._reader.read(
            view(offsets, "i"),
            view(content, "B"),
            view(validity if payloads.null_count else None, "B"),
            payloads.offset,
            len(payloads),
            0 if self._writer_schema is None else ID_PREFIX_BYTES,
            self._prefixes,
            self._canonical,
        )
        return DecodedColumn(_array(self._columns), self._reasons(payloads, errors))

    def _canonical(self, payload: bytes) -> bytes | None:
        """Returns the message in canonical form; None if the payload is invalid."""
        try:
            message = self._class.FromString(payload)
        except DecodeError:
            return None
        message.DiscardUnknownFields()
        return bytes(message.SerializePartialToString())

    def _reasons(
        self, payloads: pa.BinaryArray, errors: Sequence[tuple[int, int, str]]
    ) -> pa.StringArray | None:
        if not errors:
            return None
        import pyarrow as pa

        reasons: list[str | None] = [None] * len(payloads)
        for row, code, field in errors:
            if code == _decoder.OTHER_MESSAGE:
                reasons[row] = self._other_message_reason(payloads[row].as_py())
            else:
                where = f" in field {field}" if field else ""
                reasons[row] = (
                    f"The payload is not a {self._message.full_name}: {_REASONS[code]}{where}."
                )
        return pa.array(reasons, pa.string())

    def _other_message_reason(self, payload: bytes) -> str:
        assert self._writer_schema is not None
        try:
            indexes, _ = read_indexes(payload, ID_PREFIX_BYTES)
            name = self._writer_schema.message_at(indexes).full_name
        except FramingError:
            return "The payload is truncated: it does not say which message it is."
        except SchemaError as error:
            return str(error)
        return f"The payload is a {name}, not a {self._message.full_name}: set the message to read."


_REASONS = {
    _decoder.TRUNCATED: "it is truncated",
    _decoder.BAD_TAG: "it has an invalid tag",
    _decoder.BAD_TEXT: "text is not UTF-8",
    _decoder.BAD_TIMESTAMP: "a time is outside the years 1 to 9999",
    _decoder.TOO_DEEP: "it is nested too deeply",
    _decoder.NOT_CANONICAL: "the protobuf library cannot read it",
    _decoder.BAD_VARINT: "it has a number of more than ten bytes",
}


def _prefixes(message_type: Descriptor, writer_schema: ProtobufSchema) -> tuple[bytes, ...]:
    """Returns the indexes of the message in the writer's schema; empty if it has no such message.

    Messages match by name without the package, which may have changed.
    """
    local_name = message_type.full_name.removeprefix(f"{message_type.file.package}.")
    full_name = f"{writer_schema.package}.{local_name}" if writer_schema.package else local_name
    try:
        message = writer_schema.message(full_name)
    except SchemaError:
        return ()
    is_own = message.file.name == writer_schema.descriptor.name
    return index_encodings(message_indexes(message)) if is_own else ()


@dataclass(slots=True, frozen=True)
class _Columns:
    layout: ProtobufFieldLayout
    column: _decoder.ProtobufColumnBuffer
    children: tuple[_Columns, ...]


def _build_columns(layout: ProtobufFieldLayout) -> _Columns:
    children = tuple(_build_columns(child) for child in layout.children)
    symbols: dict[int, bytes] = {}
    for value in layout.enum.values if layout.enum else ():
        symbols.setdefault(value.number, value.name.encode())
    column = _decoder.ProtobufColumnBuffer(
        layout.name,
        layout.number,
        layout.kind,
        layout.wire,
        is_zigzag=layout.is_zigzag,
        inner_wire=-1 if layout.inner_wire is None else layout.inner_wire,
        is_repeated=layout.is_repeated,
        is_map=layout.is_map,
        is_nullable=layout.is_nullable,
        is_merged=layout.is_message,
        oneof=layout.oneof,
        symbols=symbols,
        is_closed=layout.enum is not None and bool(layout.enum.is_closed),
        default=next(iter(symbols), 0),
        children=[child.column for child in children],
        oneof_count=layout.oneof_count,
    )
    return _Columns(layout, column, children)


def _array(columns: _Columns) -> pa.Array:
    import pyarrow as pa

    layout = columns.layout
    count, valid, values, content, list_count, starts = columns.column.finish()
    validity = None if valid is None else pa.py_buffer(valid)
    array_type = layout.arrow_type
    if pa.types.is_struct(array_type):
        children = [_array(child) for child in columns.children]
        array = pa.Array.from_buffers(array_type, count, [validity], children=children)
    elif pa.types.is_string(array_type) or pa.types.is_binary(array_type):
        buffers = [validity, pa.py_buffer(values), pa.py_buffer(content)]
        array = pa.Array.from_buffers(array_type, count, buffers)
    else:
        array = pa.Array.from_buffers(array_type, count, [validity, pa.py_buffer(values)])
    if not layout.is_repeated:
        return array
    if layout.is_map:
        entry = layout.column_type
        array = pa.StructArray.from_arrays(
            [array.field(0), array.field(1)], fields=[entry.key_field, entry.item_field]
        )
    return pa.Array.from_buffers(
        layout.column_type, list_count, [None, pa.py_buffer(starts)], children=[array]
    )
