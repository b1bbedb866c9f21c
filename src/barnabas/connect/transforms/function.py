"""A function of a user as a transform.

    def without_tests(batch: ConnectBatch) -> ConnectBatch:
        return batch.filter(pc.invert(pc.starts_with(batch.topic, "test-")))

    transforms.clean.type=acme.transforms:without_tests

It gets the records of one schema, and returns a batch or a list of batches. Rows may be left out
with `filter`, `take` and `slice`. A batch that is built in another way must have as many rows as
the function got. To report rows that failed, return `Transformed`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Self

from barnabas.connect.config_def import ConfigDef
from barnabas.connect.data.batch import ConnectBatch
from barnabas.connect.errors import ConnectError
from barnabas.connect.transforms.columns import row_numbers
from barnabas.connect.transforms.transform import Transform, Transformed

if TYPE_CHECKING:
    import pyarrow as pa

TransformFunction = Callable[[ConnectBatch], ConnectBatch | Sequence[ConnectBatch] | Transformed]


def transform_of(function: TransformFunction) -> type[Transform]:
    """Returns a class whose transforms call the function."""

    class FunctionTransform(Transform):
        @classmethod
        def config_def(cls) -> ConfigDef:
            return ConfigDef()

        def apply(self, batch: ConnectBatch) -> Transformed:
            return _applied(function, batch)

    name = getattr(function, "__name__", type(function).__name__)
    FunctionTransform.__name__ = FunctionTransform.__qualname__ = name
    return FunctionTransform


def _applied(function: TransformFunction, batch: ConnectBatch) -> Transformed:
    columns = {each.name: getattr(batch, each.name) for each in fields(ConnectBatch)}
    numbered = _NumberedBatch(**columns, rows=row_numbers(len(batch)))
    result = function(numbered)
    if isinstance(result, Transformed):
        return result
    batches: Sequence[Any] = [result] if isinstance(result, ConnectBatch) else result
    return Transformed([_with_rows(each, function, numbered) for each in batches])


def _with_rows(
    batch: Any, function: TransformFunction, original: _NumberedBatch
) -> tuple[ConnectBatch, pa.Array]:
    name = getattr(function, "__qualname__", repr(function))
    if not isinstance(batch, ConnectBatch):
        raise ConnectError(
            f"The transform {name} returned {type(batch).__name__} instead of ConnectBatch"
        )
    if isinstance(batch, _NumberedBatch) and len(batch.rows) == len(batch):
        return batch, batch.rows
    if len(batch) == len(original):
        return batch, original.rows
    raise ConnectError(
        f"The transform {name} returned {len(batch)} of {len(original)} rows. Leave out rows with "
        "filter, take or slice of the batch, so that it is known which ones remain."
    )


@dataclass(slots=True, frozen=True)
class _NumberedBatch(ConnectBatch):
    """A batch whose rows keep their numbers when some are left out."""

    rows: pa.Array

    def _map(self, method: str, *arguments: object) -> Self:
        mapped = ConnectBatch._map(self, method, *arguments)
        return replace(mapped, rows=getattr(self.rows, method)(*arguments))
