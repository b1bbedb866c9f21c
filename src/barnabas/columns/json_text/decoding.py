"""Decoders of JSON: whole columns by Arrow's reader, and one by one what that refuses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from barnabas.columns import Decoded
from barnabas.columns.json_text import _text
from barnabas.columns.json_text.fitting import UnfitError, fitting
from barnabas.columns.json_text.kinds import Kind, arrow_type
from barnabas.schemas.framing import HEADER_BYTES
from barnabas.wire.records.buffers import view

if TYPE_CHECKING:
    import pyarrow as pa

_FEW = 16
"""So many documents are read one by one when Arrow refuses some of them."""


class DocumentDecoder:
    """Reads each document on its own."""

    def __init__(self, kind: Kind, *, framed: bool) -> None:
        self._fit = fitting(kind)
        self._header_bytes = HEADER_BYTES if framed else 0
        self.arrow_type = arrow_type(kind)

    def decode(self, payloads: pa.BinaryArray) -> Decoded:
        import pyarrow as pa

        values: list[Any] = []
        reasons: list[str | None] = []
        for payload in payloads.to_pylist():
            reason = value = None
            if payload is not None:
                try:
                    document = json.loads(payload[self._header_bytes :])
                    value = None if document is None else self._fit(document)
                except UnfitError as error:
                    reason = f"The document does not fit its schema: {error}."
                except (ValueError, RecursionError) as error:
                    reason = f"The payload is not JSON: {error}."
            values.append(value)
            reasons.append(reason)
        return Decoded(
            pa.array(values, self.arrow_type),
            pa.array(reasons, pa.string()) if any(reasons) else None,
        )


class ObjectDecoder:
    """Has Arrow read all at once; halves what it refuses, until few are left to be read alone."""

    def __init__(self, kind: Kind, *, framed: bool) -> None:
        self._header_bytes = HEADER_BYTES if framed else 0
        self._alone = DocumentDecoder(kind, framed=framed)
        self.arrow_type = self._alone.arrow_type

    def decode(self, payloads: pa.BinaryArray) -> Decoded:
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
        return Decoded(pa.concat_arrays([part.values for part in parts]), reasons)

    def _parts(self, payloads: pa.BinaryArray) -> list[Decoded]:
        import pyarrow as pa

        try:
            return [Decoded(self._read(payloads), None)]
        except (pa.ArrowInvalid, _NotObjectsError):
            if len(payloads) <= _FEW:
                return [self._alone.decode(payloads)]
        middle = len(payloads) // 2
        return [*self._parts(payloads[:middle]), *self._parts(payloads[middle:])]

    def _read(self, payloads: pa.BinaryArray) -> pa.Array:
        import pyarrow as pa
        import pyarrow.json as arrow_json

        count = len(payloads)
        if payloads.null_count == count:
            return pa.nulls(count, self.arrow_type)
        validity, offsets, content = payloads.buffers()
        lines = _text.join_objects(
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
        columns = [_whole(table.column(field.name), field.type) for field in self.arrow_type]
        mask = payloads.is_null() if payloads.null_count else None
        return pa.StructArray.from_arrays(columns, fields=list(self.arrow_type), mask=mask)


class _NotObjectsError(Exception):
    """Not every payload is one object, so rows could not be told apart."""


def _check_utf8(text: pa.Buffer) -> None:
    """ArrowInvalid where it is not: Arrow's JSON reader does not look."""
    import pyarrow as pa

    ends = pa.py_buffer(memoryview(bytearray(8)).cast("B"))
    view(ends, "i")[1] = text.size
    pa.Array.from_buffers(pa.string(), 1, [None, ends, text]).validate(full=True)


def _whole(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    whole = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return whole if whole.type == kind else whole.cast(kind)
