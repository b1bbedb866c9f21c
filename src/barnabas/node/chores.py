"""What a node does by itself, between requests."""

import asyncio
from collections.abc import Callable

from barnabas.controller import Controller
from barnabas.node.errors import Fatal
from barnabas.replication import Partitions

MAINTENANCE_INTERVAL_S = 0.5


class Chores:
    """Housekeeping of the partitions in slices, and upkeep of the metadata log."""

    def __init__(
        self,
        partitions: Partitions,
        controller: Controller,
        clock: Callable[[], int],
        fatal: Fatal,
    ) -> None:
        self._partitions = partitions
        self._controller = controller
        self._clock = clock
        self._fatal = fatal
        self._loop = asyncio.get_running_loop()
        self._handles: dict[str, asyncio.TimerHandle] = {}

    def begin(self) -> None:
        self._keep_house()
        self._maintain()

    def stop(self) -> None:
        for handle in self._handles.values():
            handle.cancel()

    def _keep_house(self) -> None:
        pause_ms = self._partitions.housekeeping(self._clock())
        if not self._partitions.disks.working():
            self._fatal.declare("Every log directory has failed; see the log for the reasons.")
            return
        self._handles["house"] = self._loop.call_later(pause_ms / 1000, self._keep_house)

    def _maintain(self) -> None:
        self._controller.maintain(self._clock())
        self._handles["metadata"] = self._loop.call_later(MAINTENANCE_INTERVAL_S, self._maintain)
