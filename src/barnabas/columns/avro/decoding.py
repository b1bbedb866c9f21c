"""The decoder of Avro: a program for a pair of schemas, and the arrays it fills."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.columns import Decoded
from barnabas.columns.avro import _decode
from barnabas.columns.avro.building import Builder
from barnabas.columns.avro.resolution import program
from barnabas.schemas.avro.model import (
    AvroType,
)
from barnabas.schemas.framing import ID_PREFIX_BYTES
from barnabas.wire.records.buffers import view

if TYPE_CHECKING:
    import pyarrow as pa


class ProgramDecoder:
    """Reads what one schema wrote into columns of another, without an object per record."""

    def __init__(self, written: AvroType, wanted: AvroType, *, framed: bool) -> None:
        builder = Builder(wanted)
        self._header_bytes = ID_PREFIX_BYTES if framed else 0
        self._root = builder.root
        self._program = program(written, builder)

    @property
    def arrow_type(self) -> pa.DataType:
        return self._root.type

    def decode(self, payloads: pa.BinaryArray) -> Decoded:
        validity, offsets, content = payloads.buffers()
        faults = self._program.run(
            view(offsets, "i"),
            view(validity if payloads.null_count else None, "B"),
            view(content, "B"),
            payloads.offset,
            len(payloads),
            self._header_bytes,
        )
        values = self._root.array()
        if not faults:
            return Decoded(values, None)
        reasons = {row: _reason(fault, path) for row, fault, path in faults}
        return Decoded(values, _reasons(reasons, len(payloads)))


def _reason(fault: int, path: list[str]) -> str:
    where = f" in field {'.'.join(reversed(path))!r}" if path else ""
    return f"The payload is not Avro of its schema{where}: {_decode.FAULTS[fault]}."


def _reasons(by_row: dict[int, str], count: int) -> pa.StringArray:
    import pyarrow as pa

    return pa.array([by_row.get(row) for row in range(count)], pa.string())
