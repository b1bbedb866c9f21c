"""When faults happen in a run, and which: drawn from the seed."""

import asyncio
from typing import TYPE_CHECKING

from tests.simulation.cluster.faults import Faults
from tests.simulation.cluster.random_faults import RandomFaults
from tests.simulation.cluster.scenarios import Scenarios

if TYPE_CHECKING:
    from tests.simulation.cluster.world import ClusterWorld

FAULT_EVERY_MS = (150, 400, 1_000)
"""The average is one of them, by the seed."""
SCENARIO_SHARE = 0.6
"""How many runs have a scenario."""
RANDOM_SHARE = 0.1
"""How many of the faults of such a run are random."""


class FaultPlan:
    """Random faults, or one scenario again and again with few random faults."""

    def __init__(self, world: "ClusterWorld") -> None:
        self._world = world
        self._random = world.random
        self._faults = Faults(world)
        self._random_faults = RandomFaults(self._faults, world.random)
        scenario = Scenarios(world, self._faults).draw()
        self._scenario = scenario if self._random.random() < SCENARIO_SHARE else None
        self._running: asyncio.Task[None] | None = None
        self._every_ms = self._random.choice(FAULT_EVERY_MS)
        self._next_ms = world.loop.now_ms + self._random.randint(0, 2 * self._every_ms)

    @property
    def next_ms(self) -> int:
        return self._next_ms

    def inject(self) -> None:
        """Injects the faults that are due."""
        now_ms = self._world.loop.now_ms
        if now_ms < self._next_ms:
            return
        self._next_ms = now_ms + self._random.randint(50, 2 * self._every_ms)
        if self._scenario is None or self._random.random() < RANDOM_SHARE:
            self._random_faults.inject()
        elif self._running is None or self._running.done():
            self._running = self._world.loop.create_task(self._scenario())

    def end(self) -> None:
        """Ends all faults, and starts the hosts that are down."""
        if self._running is not None:
            self._running.cancel()
        self._faults.end()
