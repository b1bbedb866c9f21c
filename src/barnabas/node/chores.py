"""What a node does by itself, between requests."""

import asyncio
from collections.abc import Callable

from barnabas.node.errors import Fatal
from barnabas.replication import Partitions

OFTEN_S = 0.1
NOW_AND_THEN_S = 0.5

Chore = Callable[[int], None]
"""Given the time."""


class Chores:
    """Calls others as long as the node runs: at fixed times, or when they ask to be called."""

    def __init__(self, fatal: Fatal, clock: Callable[[], int]) -> None:
        self._fatal = fatal
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._handles: dict[object, asyncio.TimerHandle] = {}

    def often(self, chore: Chore) -> None:
        """Ten times a second."""
        self._repeat(chore, OFTEN_S)

    def now_and_then(self, chore: Chore) -> None:
        self._repeat(chore, NOW_AND_THEN_S)

    def keep_house(self, partitions: Partitions) -> None:
        """Housekeeping of the partitions in slices, until no disk is left to keep."""
        pause_ms = partitions.housekeeping(self._clock())
        if not partitions.disks.working():
            self._fatal.declare("Every log directory has failed; see the log for the reasons.")
            return
        self._later(partitions, pause_ms / 1000, lambda: self.keep_house(partitions))

    def stop(self) -> None:
        for handle in self._handles.values():
            handle.cancel()

    def _repeat(self, chore: Chore, interval_s: float) -> None:
        chore(self._clock())
        self._later(chore, interval_s, lambda: self._repeat(chore, interval_s))

    def _later(self, key: object, delay_s: float, then: Callable[[], None]) -> None:
        self._handles[key] = self._loop.call_later(delay_s, then)
