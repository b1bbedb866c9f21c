"""One transform of a pipeline, with its predicate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from barnabas.connect.converters.converter import RowError
from barnabas.connect.errors import ConnectError, RetriableError
from barnabas.connect.execution.record_errors import RecordErrors, Stage
from barnabas.connect.execution.settings import TransformSettings
from barnabas.connect.execution.tracked_batch import TrackedBatch
from barnabas.connect.plugins import find_predicate, find_transform
from barnabas.connect.transforms.transform import Transformed

if TYPE_CHECKING:
    import pyarrow as pa


class TransformStep:
    """Applies the transform to the records that the predicate accepts; the others pass."""

    def __init__(self, settings: TransformSettings) -> None:
        self._class_name = settings.transform.class_name
        self._transform = find_transform(self._class_name)()
        self._transform.configure(settings.transform.settings)
        self._predicate = None
        self._is_negated = settings.is_negated
        if settings.predicate is not None:
            self._predicate = find_predicate(settings.predicate.class_name)()
            self._predicate.configure(settings.predicate.settings)

    def apply(
        self,
        tracked: TrackedBatch,
        errors: RecordErrors,
        originals: Callable[[Sequence[int]], pa.RecordBatch],
    ) -> list[TrackedBatch]:
        """Returns batches whose rows are not in order across them if a predicate divides them."""
        import pyarrow.compute as pc

        mask = self._mask(tracked)
        if mask is None:
            return self._transformed(tracked, errors, originals)
        matches = pc.sum(mask).as_py() or 0
        if matches == 0:
            return [tracked]
        if matches == len(mask):
            return self._transformed(tracked, errors, originals)
        applied = self._transformed(tracked.filter(mask), errors, originals)
        return [*applied, tracked.filter(pc.invert(mask))]

    def _mask(self, tracked: TrackedBatch) -> pa.Array | None:
        import pyarrow.compute as pc

        if self._predicate is None:
            return None
        mask = self._predicate.test(tracked.batch)
        return pc.invert(mask) if self._is_negated else mask

    def _transformed(
        self,
        tracked: TrackedBatch,
        errors: RecordErrors,
        originals: Callable[[Sequence[int]], pa.RecordBatch],
    ) -> list[TrackedBatch]:
        try:
            transformed: Transformed = errors.retry(lambda: self._transform.apply(tracked.batch))
        except RetriableError:
            raise
        except Exception as error:
            return self._isolated(tracked, error, errors, originals)
        self._report(tracked, transformed.errors, errors, originals)
        return [
            TrackedBatch(batch, tracked.rows.take(indices))
            for batch, indices in transformed.batches
        ]

    def _isolated(
        self,
        tracked: TrackedBatch,
        error: Exception,
        errors: RecordErrors,
        originals: Callable[[Sequence[int]], pa.RecordBatch],
    ) -> list[TrackedBatch]:
        """The transform has failed on the batch as a whole.

        A transform that does not report rows may have failed because of one: halves are tried.
        """
        count = len(tracked.batch)
        is_about_all = isinstance(error, ConnectError) or not errors.settings.is_tolerant
        if count == 1 or is_about_all:
            failed = [RowError(row, error) for row in range(count)]
            self._report(tracked, failed, errors, originals)
            return []
        half = count // 2
        return [
            *self._transformed(tracked.slice(0, half), errors, originals),
            *self._transformed(tracked.slice(half, count - half), errors, originals),
        ]

    def _report(
        self,
        tracked: TrackedBatch,
        failed: Sequence[RowError],
        errors: RecordErrors,
        originals: Callable[[Sequence[int]], pa.RecordBatch],
    ) -> None:
        rows = tracked.original_errors(failed)
        errors.on_errors(Stage.TRANSFORMATION, self._class_name, rows, originals)
