"""Decoders of Avro: by a compiled program, and through fastavro for what that cannot read."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from barnabas.registry.columns import Decoded
from barnabas.registry.columns.avro import _decode
from barnabas.registry.columns.avro.building import Builder
from barnabas.registry.columns.avro.resolution import program
from barnabas.registry.columns.avro.shapes import Shape
from barnabas.registry.columns.language import SchemaSource
from barnabas.registry.framing import HEADER_BYTES
from barnabas.wire.records.buffers import view

if TYPE_CHECKING:
    import pyarrow as pa


class ProgramDecoder:
    """Reads what one schema wrote into columns of another, without an object per record."""

    def __init__(self, written: Shape, wanted: Shape, *, framed: bool) -> None:
        builder = Builder(wanted)
        self._header_bytes = HEADER_BYTES if framed else 0
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


class RewritingDecoder:
    """Has fastavro read each record and write it again with the wanted schema, for a program.

    Schemas with types that contain themselves are beyond programs.
    """

    def __init__(
        self, written: SchemaSource, wanted: SchemaSource, inner: ProgramDecoder, framed: bool
    ) -> None:
        self._written = _parsed(written)
        self._wanted = _parsed(wanted)
        self._inner = inner
        self._header_bytes = HEADER_BYTES if framed else 0

    @property
    def arrow_type(self) -> pa.DataType:
        return self._inner.arrow_type

    def decode(self, payloads: pa.BinaryArray) -> Decoded:
        import pyarrow as pa

        rewritten: list[bytes | None] = []
        reasons: dict[int, str] = {}
        for row, payload in enumerate(payloads.to_pylist()):
            try:
                rewritten.append(None if payload is None else self._rewritten(payload))
            except Exception as error:  # whatever foreign bytes make fastavro raise
                rewritten.append(None)
                reasons[row] = f"The payload cannot be read: {type(error).__name__} {error}"
        decoded = self._inner.decode(pa.array(rewritten, pa.binary()))
        if decoded.reasons is not None:
            found = enumerate(decoded.reasons.to_pylist())
            reasons |= {row: reason for row, reason in found if reason is not None}
        return Decoded(decoded.values, _reasons(reasons, len(payloads)) if reasons else None)

    def _rewritten(self, payload: bytes) -> bytes:
        import fastavro

        source, target = io.BytesIO(payload), io.BytesIO()
        source.seek(self._header_bytes)
        value: Any = fastavro.schemaless_reader(source, self._written, self._wanted)
        fastavro.schemaless_writer(target, self._wanted, value)
        return target.getvalue()


def _parsed(schema: SchemaSource) -> Any:
    import fastavro

    named: dict[str, Any] = {}
    for text in schema.references.values():  # each after those it refers to
        fastavro.parse_schema(json.loads(text), named_schemas=named)
    return fastavro.parse_schema(json.loads(schema.text), named_schemas=named)


def _reason(fault: int, path: list[str]) -> str:
    where = f" in field {'.'.join(reversed(path))!r}" if path else ""
    return f"The payload is not Avro of its schema{where}: {_decode.FAULTS[fault]}."


def _reasons(by_row: dict[int, str], count: int) -> pa.StringArray:
    import pyarrow as pa

    return pa.array([by_row.get(row) for row in range(count)], pa.string())
