"""Background tasks: blocking disk work away from the loop that owns the logs."""

from collections.abc import Callable
from typing import Protocol


class BackgroundExecutor(Protocol):
    """A few threads. Work starts in order and may end in any order."""

    def run(self, work: Callable[[], object], done: Callable[[BaseException | None], None]) -> None:
        """Runs `work` in a thread, then calls `done` on the loop with the exception, or None."""
