"""The JSON documents of a batch, and reading them into columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from barnabas.connect.converters import _json_reader
from barnabas.connect.converters.converter import Conversion, Converted, RowError
from barnabas.connect.converters.json_columns import (
    NOT_UTF8,
    inferred_array,
    read_error,
    typed_array,
)
from barnabas.connect.data.schema import ConnectSchema
from barnabas.connect.errors import DataError
from barnabas.wire.records.buffers import offsets_of, view

if TYPE_CHECKING:
    import pyarrow as pa

NO_FLAGS = memoryview(b"")
_MAX_BYTES = 2**31 - 1


class JsonDocuments:
    """The texts of a batch, and the rows that failed."""

    def __init__(self, payloads: pa.BinaryArray, header_bytes: int = 0) -> None:
        """Each payload has a header of `header_bytes` before its document."""
        import pyarrow as pa
        import pyarrow.compute as pc

        payloads = payloads.cast(pa.binary())
        self.count = len(payloads)
        offsets = offsets_of(payloads)
        self.content = view(payloads.buffers()[2], "B")
        self.starts, self.ends = offsets[: self.count], offsets[1 : self.count + 1]
        self.failures: list[tuple[Any, ...]] = []
        self._errors: list[RowError] = []
        self.skipped = _null_flags(payloads)
        if header_bytes:
            self.starts = _moved(self.starts, header_bytes)
            payloads = pc.binary_slice(payloads, header_bytes, _MAX_BYTES)
        for row in _rows_not_utf8(payloads):
            self.skipped[row] = 1
            self._errors.append(RowError(row, DataError(NOT_UTF8)))

    def part(
        self, rows: memoryview, starts: memoryview, ends: memoryview, is_in_envelope: memoryview
    ) -> JsonDocumentsPart:
        return JsonDocumentsPart(self, rows, starts, ends, is_in_envelope)

    def adopt(self, part: JsonDocumentsPart, rows: memoryview) -> None:
        """Takes over the errors of a part."""
        self._errors += [RowError(rows[each.row], each.error) for each in part.errors()]

    def fail_all(self, error: DataError) -> None:
        self._errors += [RowError(row, error) for row in range(self.count) if not self.skipped[row]]

    def errors(self) -> Sequence[RowError]:
        """Returns the errors in the order of their rows."""
        errors = list(self._errors)
        for row, code, position, path, type_name, found in self.failures:
            errors.append(RowError(row, read_error(code, position, path, type_name, found)))
        return sorted(errors, key=lambda each: each.row)


class JsonDocumentsPart(JsonDocuments):
    """Some of the rows of a batch."""

    def __init__(
        self,
        whole: JsonDocuments,
        rows: memoryview,
        starts: memoryview,
        ends: memoryview,
        is_in_envelope: memoryview,
    ) -> None:
        self.count = len(rows)
        self.content = whole.content
        self.starts, self.ends = _taken(starts, rows), _taken(ends, rows)
        self._is_in_envelope = memoryview(bytearray(is_in_envelope[row] for row in rows))
        self.failures = []
        self._errors = []
        self.skipped = memoryview(bytearray(self.count))

    def values(self) -> tuple[memoryview, memoryview, memoryview]:
        return self.starts, self.ends, self._is_in_envelope


def read_typed(
    documents: JsonDocuments,
    schema: ConnectSchema,
    column: _json_reader.JsonColumn,
    *,
    replaces_nulls: bool,
    starts: memoryview | None = None,
    ends: memoryview | None = None,
    is_in_envelope: memoryview = NO_FLAGS,
) -> pa.Array:
    """Reads documents with a schema into its column."""
    column.reset()
    _json_reader.read_rows(
        _json_reader.JsonReader(column),
        documents.content,
        documents.starts if starts is None else starts,
        documents.ends if ends is None else ends,
        documents.skipped,
        is_in_envelope,
        0,
        documents.count,
        documents.failures,
    )
    return typed_array(column, schema, documents.count, replaces_nulls=replaces_nulls)


def read_inferred(
    documents: JsonDocuments,
    starts: memoryview | None = None,
    ends: memoryview | None = None,
    is_in_envelope: memoryview = NO_FLAGS,
) -> Conversion:
    """Reads documents without a schema into as few runs as their types allow."""
    runs: list[Converted] = []
    first = 0
    while first < documents.count or not runs:
        column = _json_reader.inferred_column()
        stop = _json_reader.read_rows(
            _json_reader.JsonReader(column),
            documents.content,
            documents.starts if starts is None else starts,
            documents.ends if ends is None else ends,
            documents.skipped,
            is_in_envelope,
            first,
            documents.count,
            documents.failures,
        )
        runs.append(Converted(first, None, inferred_array(column, stop - first)))
        first = stop
    return Conversion(runs, documents.errors())


def _null_flags(payloads: pa.BinaryArray) -> memoryview:
    import pyarrow as pa

    if payloads.null_count == 0:
        return memoryview(bytearray(len(payloads)))
    flags = payloads.is_null().cast(pa.uint8())
    cells = view(flags.buffers()[1], "B")[flags.offset : flags.offset + len(flags)]
    return memoryview(bytearray(cells))


def _rows_not_utf8(payloads: pa.BinaryArray) -> list[int]:
    import pyarrow as pa

    try:
        payloads.cast(pa.string())
        return []
    except pa.ArrowInvalid:
        return [row for row, payload in enumerate(payloads.to_pylist()) if not _is_utf8(payload)]


def _is_utf8(payload: bytes | None) -> bool:
    try:
        (payload or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _taken(numbers: memoryview, rows: memoryview) -> memoryview:
    import pyarrow as pa

    column = pa.Array.from_buffers(pa.int32(), len(numbers), [None, pa.py_buffer(numbers)])
    indices = pa.Array.from_buffers(pa.int32(), len(rows), [None, pa.py_buffer(rows)])
    return view(column.take(indices).buffers()[1], "i")[: len(rows)]


def _moved(positions: memoryview, size: int) -> memoryview:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pa.Array.from_buffers(pa.int32(), len(positions), [None, pa.py_buffer(positions)])
    return view(pc.add(column, pa.scalar(size, pa.int32())).buffers()[1], "i")[: len(positions)]
