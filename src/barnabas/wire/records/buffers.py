"""Arrow's buffers as the numbers that loops over them take."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def view(buffer: pa.Buffer | None, kind: str) -> memoryview:
    """The buffer as a sequence of C's numbers, by their code in `struct`."""
    return memoryview(b"" if buffer is None else buffer).cast("B").cast(kind)  # type: ignore[call-overload, no-any-return]


def offsets_of(values: pa.Array) -> memoryview:
    """Of lists, text and bytes: where each begins, and the last one ends."""
    if len(values) == 0:  # then Arrow may leave out the one offset that there is
        return memoryview(bytes(4)).cast("i")
    cells = view(values.buffers()[1], "i")
    return cells[values.offset : values.offset + len(values) + 1]
