"""Decodes JSON: whole columns by Arrow's reader, and one by one if it rejects them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from barnabas.columns import DecodedColumn
from barnabas.columns.json_text import _documents
from barnabas.columns.json_text.converters import DocumentMismatchError, converter
from barnabas.columns.json_text.types import JsonKind, arrow_type
from barnabas.schemas.framing import ID_PREFIX_BYTES
from barnabas.wire.records.buffers import view

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_ONE_BY_ONE = 16
"""This many documents are read one by one if Arrow rejects some of them."""


class JsonDocumentDecoder:
    """Reads documents one by one."""

    def __init__(self, type_: JsonKind, *, framed: bool) -> None:
        self._convert = converter(type_)
        self._header_bytes = ID_PREFIX_BYTES if framed else 0
        self.arrow_type = arrow_type(type_)

    def decode(self, payloads: pa.BinaryArray) -> DecodedColumn:
        import pyarrow as pa

        values: list[Any] = []
        reasons: list[str | None] = []
        for payload in payloads.to_pylist():
            reason = value = None
            if payload is not None:
                try:
                    document = json.loads(payload[self._header_bytes :])
                    value = None if document is None else self._convert(document)
                except DocumentMismatchError as error:
                    reason = f"The document does not fit its schema: {error}."
                except (ValueError, RecursionError) as error:
                    reason = f"The payload is not JSON: {error}."
            values.append(value)
            reasons.append(reason)
        return DecodedColumn(
            pa.array(values, self.arrow_type),
            pa.array(reasons, pa.string()) if any(reasons) else None,
        )


class JsonObjectDecoder:
    """Reads all documents with Arrow; halves a column that it rejects, until few are left."""

    def __init__(self, type_: JsonKind, *, framed: bool) -> None:
        self._header_bytes = ID_PREFIX_BYTES if framed else 0
        self._one_by_one = JsonDocumentDecoder(type_, framed=framed)
        self.arrow_type = self._one_by_one.arrow_type

    def decode(self, payloads: pa.BinaryArray) -> DecodedColumn:
        import pyarrow as pa

        parts = self._parts(payloads)
        if len(parts) == 1:
            return parts[0]
        reasons = None
        if any(part.reasons is not None for part in parts):
            reasons = pa.concat_arrays(
                [
                    pa.nulls(len(part.values), pa.string())
                    if part.reasons is None
                    else part.reasons
                    for part in parts
                ]
            )
        return DecodedColumn(pa.concat_arrays([part.values for part in parts]), reasons)

    def _parts(self, payloads: pa.BinaryArray) -> list[DecodedColumn]:
        import pyarrow as pa

        try:
            return [DecodedColumn(self._read(payloads), None)]
        except (pa.ArrowInvalid, _NotObjectsError):
            if len(payloads) <= _MAX_ONE_BY_ONE:
                return [self._one_by_one.decode(payloads)]
        middle = len(payloads) // 2
        return [*self._parts(payloads[:middle]), *self._parts(payloads[middle:])]

    def _read(self, payloads: pa.BinaryArray) -> pa.Array:
        import pyarrow as pa
        import pyarrow.json as arrow_json

        count = len(payloads)
        if payloads.null_count == count:
            return pa.nulls(count, self.arrow_type)
        validity, offsets, content = payloads.buffers()
        lines = _documents.join_objects(
            view(offsets, "i"),
            view(validity if payloads.null_count else None, "B"),
            view(content, "B"),
            payloads.offset,
            count,
            self._header_bytes,
        )
        if lines is None:
            raise _NotObjectsError
        text = pa.py_buffer(lines)
        _check_utf8(text)
        table = arrow_json.read_json(
            pa.BufferReader(text),
            arrow_json.ReadOptions(use_threads=False, block_size=text.size + 1),
            arrow_json.ParseOptions(
                explicit_schema=pa.schema(list(self.arrow_type)),
                newlines_in_values=True,
                unexpected_field_behavior="ignore",
            ),
        )
        if table.num_rows != count:
            raise _NotObjectsError
        columns = [_single_array(table.column(field.name), field.type) for field in self.arrow_type]
        mask = payloads.is_null() if payloads.null_count else None
        return pa.StructArray.from_arrays(columns, fields=list(self.arrow_type), mask=mask)


class _NotObjectsError(Exception):
    """Not every payload is one object, so rows could not be separated."""


def _check_utf8(text: pa.Buffer) -> None:
    """Raises ArrowInvalid if the text is not UTF-8, which Arrow's JSON reader does not check."""
    import pyarrow as pa

    ends = pa.py_buffer(memoryview(bytearray(8)).cast("B"))
    view(ends, "i")[1] = text.size
    pa.Array.from_buffers(pa.string(), 1, [None, ends, text]).validate(full=True)


def _single_array(column: pa.ChunkedArray, type_: pa.DataType) -> pa.Array:
    whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return whole if whole.type == type_ else whole.cast(type_)
