"""Limits the work that a schema can cause: schemas are untrusted input."""

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.schemas import SchemaError

MAX_DEPTH = 200
"""Nested levels. No recursive walk over a schema reaches Python's recursion limit."""

MAX_STEPS = 50_000
"""Nodes that are visited, or pairs that are compared, in one walk: a few seconds at worst."""


class WalkBounds:
    """Counts the depth and the steps of one walk over a schema."""

    __slots__ = ("_depth", "_steps", "_task")

    def __init__(self, task: str) -> None:
        self._task = task
        self._depth = 0
        self._steps = 0

    @contextmanager
    def level(self) -> Iterator[None]:
        """Counts one nested level for the duration of the block."""
        self.step()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SchemaError(f"The schema nests more than {MAX_DEPTH} levels: cannot {self._task}")
        try:
            yield
        finally:
            self._depth -= 1

    def step(self, count: int = 1) -> None:
        self._steps += count
        if self._steps > MAX_STEPS:
            raise SchemaError(
                f"The schema takes more than {MAX_STEPS} steps to {self._task}: make it smaller"
            )
