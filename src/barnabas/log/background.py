"""Blocking disk work, away from the loop that owns the logs."""

from collections.abc import Callable
from typing import Protocol


class BackgroundExecutor(Protocol):
    """A few threads. Work is begun in order and may end in any."""

    def run(self, work: Callable[[], object], done: Callable[[BaseException | None], None]) -> None:
        """Do `work` in a thread, then call `done` on the loop, with what was raised if anything."""
