"""Encodes columns as Avro payloads.

Arrow converts whole columns first: it casts numbers, converts times to the schema's unit, and
symbols to their numbers. The compiled writers then only write each value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.columns.avro import _encoder, scalars
from barnabas.columns.avro.defaults import encode_default
from barnabas.columns.avro.scalars import FieldPath
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
from barnabas.schemas.framing import id_prefix, write_varint
from barnabas.wire.records.buffers import offsets_of, view

if TYPE_CHECKING:
    import pyarrow as pa


class AvroEncoder:
    """Writes rows as payloads, after the schema id unless that is None; a null has no payload."""

    def __init__(self, schema: AvroType, arrow_type: pa.DataType, schema_id: int | None) -> None:
        """Raises SchemaError, with the field, if the schema cannot represent the type."""
        import pyarrow as pa

        self._schema = schema
        self._header = b"" if schema_id is None else id_prefix(schema_id)
        _present_writer(schema, pa.array([], arrow_type), FieldPath())

    def encode(self, values: pa.Array) -> pa.BinaryArray:
        import pyarrow as pa

        count = len(values)
        valid = values.is_valid() if values.null_count else None
        bits = None if valid is None else valid.buffers()[1]
        offsets = pa.allocate_buffer(4 * count + 4)
        content = _encoder.write_payloads(
            _present_writer(self._schema, values, FieldPath()),
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


def _writer(schema: AvroType, values: pa.Array, path: FieldPath) -> _encoder.AvroWriter:
    """Returns a writer of values that may be null."""
    import pyarrow as pa

    present = _present_writer(schema, values, path)
    if values.null_count == 0 or schema.kind == "null":
        return present
    absent: _encoder.AvroWriter = _encoder.AvroMismatchWriter(
        "it is null, and the schema does not allow null"
    )
    if isinstance(schema, AvroUnion):
        for index, branch in enumerate(schema.branches):
            if branch.kind == "null":
                absent = _encoder.AvroPrefixedWriter(write_varint(index), _encoder.AvroNullWriter())
    if pa.types.is_null(values.type):
        return absent
    return _encoder.AvroNullableWriter(
        view(values.buffers()[0], "B"), values.offset, present, absent
    )


def _present_writer(schema: AvroType, values: pa.Array, path: FieldPath) -> _encoder.AvroWriter:
    """Returns a writer of values that are not null; it is not called for nulls."""
    import pyarrow as pa

    kinds = pa.types
    if kinds.is_null(values.type):
        return _encoder.AvroNullWriter()
    match schema:
        case AvroUnion(branches):
            return _union(branches, values, path)
        case AvroRecord() if kinds.is_struct(values.type):
            return _record(schema, values, path)
        case AvroArray(items) if kinds.is_list(values.type) or kinds.is_large_list(values.type):
            lists = values.cast(pa.list_(values.type.value_field))
            return _encoder.AvroArrayWriter(offsets_of(lists), [_writer(items, lists.values, path)])
        case AvroMap(inner) if kinds.is_map(values.type):
            return _encoder.AvroArrayWriter(
                offsets_of(values),
                [_writer(MAP_KEY, values.keys, path), _writer(inner, values.items, path)],
            )
        case AvroPrimitive():
            return scalars.primitive(schema, values, path)
        case AvroFixed():
            return scalars.fixed(schema, values, path)
        case AvroEnum():
            return scalars.enum(schema, values, path)
    raise path.mismatch(values.type, schema.kind)


def _record(record: AvroRecord, values: pa.StructArray, path: FieldPath) -> _encoder.AvroWriter:
    by_name = {field.name: index for index, field in enumerate(values.type)}
    writers = []
    for field in record.fields:
        index = by_name.pop(field.name, None)
        inner = path.within(field.name)
        if index is None:
            writers.append(_missing(field, inner))
        else:
            writers.append(_writer(field.type, values.field(index), inner))
    if by_name:
        raise SchemaError(
            f"{path.within(next(iter(by_name)))} is not in the schema: drop the column, or add a "
            f"field to the schema."
        )
    return _encoder.AvroRecordWriter(writers, [field.name for field in record.fields])


def _missing(field: AvroField, path: FieldPath) -> _encoder.AvroWriter:
    """Returns a writer for a field without a column."""
    if field.default is not MISSING:
        return _encoder.AvroPrefixedWriter(
            encode_default(field.type, field.default, path.path), _encoder.AvroNullWriter()
        )
    if isinstance(field.type, AvroUnion):
        for index, branch in enumerate(field.type.branches):
            if branch.kind == "null":
                return _encoder.AvroPrefixedWriter(write_varint(index), _encoder.AvroNullWriter())
    raise SchemaError(f"{path} is in the schema without a default, but there is no such column.")


def _union(
    branches: tuple[AvroType, ...], values: pa.Array, path: FieldPath
) -> _encoder.AvroWriter:
    """Returns a writer of a struct with a field for each branch, or of the matching branch."""
    import pyarrow as pa

    numbered = [(index, branch) for index, branch in enumerate(branches) if branch.kind != "null"]
    if pa.types.is_struct(values.type) and [field.name for field in values.type] == [
        f"member{index}" for index in range(len(numbered))
    ]:
        return _choice(numbered, values, path)
    numbered.sort(key=lambda entry: not scalars.is_same(arrow_type(entry[1]), values.type))
    for index, branch in numbered:
        try:
            return _encoder.AvroPrefixedWriter(
                write_varint(index), _present_writer(branch, values, path)
            )
        except SchemaError:
            if len(numbered) == 1:
                raise
    raise path.mismatch(values.type, "union")


def _choice(
    numbered: list[tuple[int, AvroType]], values: pa.StructArray, path: FieldPath
) -> _encoder.AvroWriter:
    present: list[_encoder.AvroIntWriter] = []
    writers: list[_encoder.AvroWriter] = []
    for field, (index, branch) in enumerate(numbered):
        column = values.field(field)
        present.append(_encoder.AvroIntWriter(scalars.integers(column.is_valid(), 32)))
        inner = _present_writer(branch, column, path.within(f"member{field}"))
        writers.append(_encoder.AvroPrefixedWriter(write_varint(index), inner))
    return _encoder.AvroUnionWriter(present, writers)
