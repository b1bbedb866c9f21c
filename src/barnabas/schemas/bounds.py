"""How much work a schema may ask for: a stranger's must neither nest nor multiply freely."""

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.schemas import SchemaError

MAX_DEPTH = 200
"""Levels one inside the other; small enough that no walk over a schema meets Python's own limit."""

MAX_STEPS = 50_000
"""Nodes visited (or pairs of them compared) in one walk; some seconds of work at the very worst."""


class WalkBounds:
    """Counts the depth and the steps of one walk over a schema."""

    __slots__ = ("_depth", "_steps", "_task")

    def __init__(self, task: str) -> None:
        self._task = task
        self._depth = 0
        self._steps = 0

    @contextmanager
    def level(self) -> Iterator[None]:
        """One level further down, for as long as the block lasts."""
        self.step()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SchemaError(f"The schema nests more than {MAX_DEPTH} levels: cannot {self._task}")
        try:
            yield
        finally:
            self._depth -= 1

    def step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise SchemaError(
                f"The schema takes more than {MAX_STEPS} steps to {self._task}: make it smaller"
            )
