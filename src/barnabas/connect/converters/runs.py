"""Puts rows that were converted by schema back into their order, as runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from barnabas.connect.converters.converter import Conversion, Converted, RowError

if TYPE_CHECKING:
    import pyarrow as pa


def nulls_run(count: int) -> Conversion:
    """Returns rows that are all null, which have no schema."""
    import pyarrow as pa

    return Conversion([Converted(0, None, pa.nulls(count))])


def rows_of_groups(groups: memoryview, group_count: int) -> Iterator[tuple[int, memoryview]]:
    """Yields the rows (int32) of each group. Rows of group -1 are in none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from barnabas.wire.records.buffers import view

    column = pa.Array.from_buffers(pa.int32(), len(groups), [None, pa.py_buffer(groups)])
    for group in range(group_count):
        rows = pc.indices_nonzero(pc.equal(column, group)).cast(pa.int32())
        yield group, view(rows.buffers()[1], "i")[: len(rows)]


def conversion_of(
    groups: memoryview,
    parts: Sequence[tuple[memoryview, Conversion]],
    errors: Sequence[RowError],
) -> Conversion:
    """Returns the rows of all groups in their order.

    `parts` has the rows of each group and what they were converted to. A row of group -1 is null
    or has failed: it is a null of the run before it, or of the first one.
    """
    if not parts:
        return Conversion(nulls_run(len(groups)).runs, errors)
    sources = [source for _, conversion in parts for source in conversion.runs]
    source_of_row, index_of_row = _sources(len(groups), parts)
    runs = []
    for start, stop, source in _contiguous(source_of_row):
        indices = index_of_row[start:stop]
        runs.append(Converted(start, sources[source].schema, _taken(sources[source], indices)))
    return Conversion(runs, errors)


def _sources(
    count: int, parts: Sequence[tuple[memoryview, Conversion]]
) -> tuple[list[int], list[int | None]]:
    """Returns for each row the number of its source, -1 without one, and its index there."""
    source_of_row = [-1] * count
    index_of_row: list[int | None] = [None] * count
    number = 0
    for rows, conversion in parts:
        for run in conversion.runs:
            for index in range(len(run.values)):
                row = rows[run.start + index]
                source_of_row[row] = number
                index_of_row[row] = index
            number += 1
    return source_of_row, index_of_row


def _contiguous(sources: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yields start, end and source of each run; rows without a source join a neighbor."""
    start = 0
    current = -1
    for row, source in enumerate(sources):
        if source in (-1, current):
            continue
        if current != -1:
            yield start, row, current
            start = row
        current = source
    if sources:
        yield start, len(sources), current


def _taken(source: Converted, indices: Sequence[int | None]) -> pa.Array:
    import pyarrow as pa

    first = indices[0]
    if first is not None and list(indices) == list(range(first, first + len(indices))):
        return source.values.slice(first, len(indices))
    return source.values.take(pa.array(indices, pa.int64()))
