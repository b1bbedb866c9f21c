"""The periodic tasks of a node."""

import asyncio
from collections.abc import Callable

from barnabas.node.errors import FatalErrors
from barnabas.replication import Partitions

FAST_INTERVAL_S = 0.1
SLOW_INTERVAL_S = 0.5

Task = Callable[[int], None]
"""Called with the current time in ms."""


class PeriodicTasks:
    """Runs tasks while the node runs: at fixed intervals, or at the interval a task returns."""

    def __init__(self, fatal: FatalErrors, clock: Callable[[], int]) -> None:
        self._fatal = fatal
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._handles: dict[object, asyncio.TimerHandle] = {}

    def every_100_ms(self, task: Task) -> None:
        self._repeat(task, FAST_INTERVAL_S)

    def every_500_ms(self, task: Task) -> None:
        self._repeat(task, SLOW_INTERVAL_S)

    def maintain_partitions(self, partitions: Partitions) -> None:
        """Maintains the partitions in slices, until every log directory has failed."""
        pause_ms = partitions.run_maintenance(self._clock())
        if not partitions.log_dirs.online():
            self._fatal.report("Every log directory has failed; see the log for the reasons.")
            return
        self._later(partitions, pause_ms / 1000, lambda: self.maintain_partitions(partitions))

    def stop(self) -> None:
        for handle in self._handles.values():
            handle.cancel()

    def _repeat(self, task: Task, interval_s: float) -> None:
        task(self._clock())
        self._later(task, interval_s, lambda: self._repeat(task, interval_s))

    def _later(self, key: object, delay_s: float, then: Callable[[], None]) -> None:
        self._handles[key] = self._loop.call_later(delay_s, then)
