"""Typed views of Arrow's buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def view(buffer: pa.Buffer | None, kind: str) -> memoryview:
    """Returns the buffer as a sequence of numbers, by their code in `struct`."""
    return memoryview(b"" if buffer is None else buffer).cast("B").cast(kind)  # type: ignore[call-overload, no-any-return]


def offsets_of(values: pa.Array) -> memoryview:
    """Returns the offsets of lists, text or bytes: where each starts, and the last one ends."""
    if len(values) == 0:  # then Arrow may omit the only offset
        return memoryview(bytes(4)).cast("i")
    cells = view(values.buffers()[1], "i")
    return cells[values.offset : values.offset + len(values) + 1]
