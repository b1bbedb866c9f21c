"""Decodes Avro payloads with a program for a pair of schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.columns import DecodedColumn
from barnabas.columns.avro import _decoder
from barnabas.columns.avro.column_builder import AvroColumnBuilder
from barnabas.columns.avro.resolution import resolve_program
from barnabas.schemas.avro.model import (
    AvroType,
)
from barnabas.schemas.framing import ID_PREFIX_BYTES
from barnabas.wire.records.buffers import view

if TYPE_CHECKING:
    import pyarrow as pa


class AvroDecoder:
    """Reads payloads of a writer's schema into columns of a reader's schema."""

    def __init__(self, writer_schema: AvroType, reader_schema: AvroType, *, framed: bool) -> None:
        builder = AvroColumnBuilder(reader_schema)
        self._header_bytes = ID_PREFIX_BYTES if framed else 0
        self._root = builder.root
        self._program = resolve_program(writer_schema, builder)

    @property
    def arrow_type(self) -> pa.DataType:
        return self._root.type

    def decode(self, payloads: pa.BinaryArray) -> DecodedColumn:
        validity, offsets, content = payloads.buffers()
        errors = self._program.run(
            view(offsets, "i"),
            view(validity if payloads.null_count else None, "B"),
            view(content, "B"),
            payloads.offset,
            len(payloads),
            self._header_bytes,
        )
        values = self._root.array()
        if not errors:
            return DecodedColumn(values, None)
        reasons = {row: _reason(error, path) for row, error, path in errors}
        return DecodedColumn(values, _reasons(reasons, len(payloads)))


def _reason(error: int, path: list[str]) -> str:
    where = f" in field {'.'.join(reversed(path))!r}" if path else ""
    return f"The payload is not Avro of its schema{where}: {_decoder.ERROR_MESSAGES[error]}."


def _reasons(by_row: dict[int, str], count: int) -> pa.StringArray:
    import pyarrow as pa

    return pa.array([by_row.get(row) for row in range(count)], pa.string())
