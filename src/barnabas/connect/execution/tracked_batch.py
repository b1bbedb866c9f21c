"""Batches in a pipeline, with the indices that their rows had in the batch that was read."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from barnabas.connect.converters.converter import RowError
from barnabas.connect.data.batch import ConnectBatch

if TYPE_CHECKING:
    import pyarrow as pa

_COLUMNS = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


@dataclass(slots=True, frozen=True)
class TrackedBatch:
    batch: ConnectBatch
    rows: pa.Array
    """int64, ascending: the original index of each row."""

    def filter(self, mask: pa.Array) -> Self:
        return replace(self, batch=self.batch.filter(mask), rows=self.rows.filter(mask))

    def take(self, indices: pa.Array) -> Self:
        return replace(self, batch=self.batch.take(indices), rows=self.rows.take(indices))

    def slice(self, start: int, length: int) -> Self:
        return replace(
            self, batch=self.batch.slice(start, length), rows=self.rows.slice(start, length)
        )

    def original_errors(self, errors: Sequence[RowError]) -> list[RowError]:
        """Returns errors of rows of this batch with the original indices."""
        return [RowError(self.rows[each.row].as_py(), each.error) for each in errors]


def row_numbers(start: int, end: int) -> pa.Array:
    import numpy as np
    import pyarrow as pa

    return pa.array(np.arange(start, end))


def without_rows(tracked: TrackedBatch, failed: Collection[int]) -> TrackedBatch:
    """Returns the rows whose original index is not among the failed ones."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not failed:
        return tracked
    is_failed = pc.is_in(tracked.rows, value_set=pa.array(sorted(failed), pa.int64()))
    return tracked.filter(pc.invert(is_failed))


def merged(parts: Sequence[TrackedBatch]) -> list[TrackedBatch]:
    """Returns rows of several batches in the order of their original indices."""
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = [part for part in parts if len(part.batch)]
    if len(parts) < 2:
        return list(parts)
    if _are_in_order(parts):
        return list(parts)
    if all(_is_alike(parts[0].batch, part.batch) for part in parts[1:]):
        rows = pa.concat_arrays([part.rows for part in parts])
        return [TrackedBatch(_concatenated(parts), rows).take(pc.array_sort_indices(rows))]
    return _interleaved(parts)


def _are_in_order(parts: Sequence[TrackedBatch]) -> bool:
    return all(
        before.rows[-1].as_py() < after.rows[0].as_py()
        for before, after in itertools.pairwise(parts)
    )


def _is_alike(one: ConnectBatch, other: ConnectBatch) -> bool:
    return (
        one.key_schema == other.key_schema
        and one.value_schema == other.value_schema
        and one.key.type == other.key.type
        and one.value.type == other.value.type
    )


def _concatenated(parts: Sequence[TrackedBatch]) -> ConnectBatch:
    import pyarrow as pa

    columns = {
        name: pa.concat_arrays([getattr(part.batch, name) for part in parts]) for name in _COLUMNS
    }
    return replace(parts[0].batch, **columns)


def _interleaved(parts: Sequence[TrackedBatch]) -> list[TrackedBatch]:
    """Cuts batches with different schemas into runs, so that their rows are in order."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = pa.concat_arrays([part.rows for part in parts])
    owners = pa.concat_arrays(
        [
            pa.repeat(pa.scalar(index, pa.int32()), len(part.rows))
            for index, part in enumerate(parts)
        ]
    )
    runs = pc.run_end_encode(owners.take(pc.array_sort_indices(rows)))
    positions = [0] * len(parts)
    result, begin = [], 0
    for owner, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        result.append(parts[owner].slice(positions[owner], end - begin))
        positions[owner] += end - begin
        begin = end
    return result
