"""A run from its seed: trouble for a while, then quiet, then the reckoning."""

import asyncio
import logging
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random
from unittest.mock import patch

from tests.simulation import crowds as drawing
from tests.simulation.checkers.hanging import Hanging
from tests.simulation.checkers.liveness import Liveness
from tests.simulation.clients.committer import Auditor
from tests.simulation.clients.work import Identity, fetch_offsets
from tests.simulation.clock import START_MS, SimulatedLoop
from tests.simulation.crowds import PROCESSORS, Crowd, GroupCrowd
from tests.simulation.events import Violation
from tests.simulation.faults import Faults
from tests.simulation.world import (
    INPUT,
    INPUT_PARTITIONS,
    TOPICS,
    ErrorsAreViolations,
    World,
)

TROUBLE_MS = 60_000
FAULT_EVERY_MS = (500, 1_500, 4_000)
CHANGE_EVERY_MS = (400, 1_000, 3_000)
"""On average; one of them, as the seed has it."""

READ_EVERY_MS = 500
"""How often the output is read, at least."""

MEMORY = Path("/dev/shm")
"""Where files are in memory, on machines that have such a place."""

QUIET_MS = 90_000
"""More than all timeouts together: sessions, rebalances, transactions, and some to spare."""


@dataclass(slots=True, frozen=True)
class Outcome:
    """How a run went."""

    seed: int
    failure: BaseException | None
    events: int
    requests: int
    digest: int
    simulated_ms: int
    quiet_after_ms: int
    counts: Counter[str]
    trace: list[str]


def run(seed: int) -> Outcome:
    """Exactly the same for the same seed, if PYTHONHASHSEED is the same."""
    loop = SimulatedLoop()
    asyncio.set_event_loop(loop)
    within = MEMORY if MEMORY.is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="barnabas-simulation-", dir=within) as folder,
        patch("os.urandom", Random(seed).randbytes),
    ):
        simulation = Simulation(seed, Path(folder), loop)
        complaints = ErrorsAreViolations(simulation.world.events)
        logger = logging.getLogger("barnabas")
        propagates, logger.propagate = logger.propagate, False
        logger.addHandler(complaints)
        try:
            with simulation.world.node.watched():
                loop.run_until_complete(simulation.live())
        except Exception as failure:
            simulation.world.events.fail(failure)
        finally:
            logger.removeHandler(complaints)
            logger.propagate = propagates
            simulation.close()
        return simulation.outcome()


class Simulation:
    """A world and what is done to it."""

    def __init__(self, seed: int, folder: Path, loop: SimulatedLoop) -> None:
        self.world = World(seed, folder, loop)
        self._loop = loop
        self._faults = Faults(self.world)
        groups = [drawing.draw_group(self.world, name) for name in "ab"]
        committers = drawing.CommitterCrowd(self.world, "c")
        self._crowds: list[Crowd] = [*groups, committers, *drawing.draw_processors(self.world)]
        watched = {each.group_id: each.partitions for each in (*groups, committers)}
        self._auditor = Auditor(self.world, "auditor", watched)
        self._in_the_end = [Liveness(self.world, self._crowds), Hanging(self.world)]
        self._quiet_after_ms = -1

    async def live(self) -> None:
        living = asyncio.ensure_future(self._live())
        await asyncio.wait([living, self.world.events.over], return_when=asyncio.FIRST_COMPLETED)
        if living.done() and living.exception() is not None:
            self.world.events.fail(living.exception())
        living.cancel()

    async def _live(self) -> None:
        for crowd in self._crowds:
            for _ in range(self.world.random.randint(1, 3)):
                crowd.come()
        self._auditor.start()
        await self._trouble()
        await self._faults.stop()
        for crowd in self._crowds:
            crowd.settle()
        await self._quiet()
        await self._reckon()
        self._restart()
        await self._quiet()

    def _change(self) -> None:
        """Somebody comes or goes; now and then there is more to consume."""
        random = self.world.random
        groups = [each for each in self._crowds if isinstance(each, GroupCrowd)]
        if random.random() < 0.03 and not any(each.may_be_unled for each in groups):
            self.world.grow(random.choice(sorted(TOPICS)))
        random.choice([*self._crowds, *groups, *groups]).change()

    async def _trouble(self) -> None:
        random = self.world.random
        fault_every_ms = random.choice(FAULT_EVERY_MS)
        change_every_ms = random.choice(CHANGE_EVERY_MS)
        until_ms = self._loop.now_ms + TROUBLE_MS
        next_fault_ms = next_change_ms = self._loop.now_ms
        while (now_ms := self._loop.now_ms) < until_ms:
            if now_ms >= next_fault_ms:
                self._faults.strike()
                next_fault_ms = now_ms + random.randint(100, 2 * fault_every_ms)
            if now_ms >= next_change_ms:
                self._change()
                next_change_ms = now_ms + random.randint(100, 2 * change_every_ms)
            next_ms = min(next_fault_ms, next_change_ms, now_ms + READ_EVERY_MS)
            await asyncio.sleep((next_ms - now_ms) / 1000)
            self._read_on()

    async def _quiet(self) -> None:
        """Wait until everything is as it should be; it must be within bounds."""
        began_ms = self._loop.now_ms
        while missing := self._missing():
            if self._loop.now_ms > began_ms + QUIET_MS:
                violation = Violation(f"{QUIET_MS / 1000:.0f} s after the last fault: {missing}")
                self.world.events.fail(violation, "/".join(missing))
                return
            for crowd in self._crowds:
                crowd.settle()  # whoever is fenced stops, and is started again
            await asyncio.sleep(0.5)
            self._read_on()
        self._quiet_after_ms = max(self._quiet_after_ms, self._loop.now_ms - began_ms)

    def _missing(self) -> dict[str, list[str]]:
        """By checker what is not as it should be."""
        found = {type(each).__name__: each.missing() for each in self._in_the_end}
        return {name: missing for name, missing in found.items() if missing}

    async def _reckon(self) -> None:
        """Nothing goes wrong any more: what was promised can be asked for."""
        await self._auditor.look()
        inputs = [(INPUT, index) for index in range(INPUT_PARTITIONS)]
        found = await fetch_offsets(self._auditor, Identity(PROCESSORS), inputs)
        try:
            self.world.records.check_all({index: found[INPUT, index] for _, index in inputs})
        except Violation as violation:
            self.world.events.fail(violation, "Records")

    def _restart(self) -> None:
        """Once more, now that all is quiet."""
        self.world.node.kill(cut=False)
        self.world.network.node_died()
        self.world.node.start()

    def _read_on(self) -> None:
        try:
            self.world.records.read_on()
        except Violation as violation:
            self.world.events.fail(violation, "Records")

    def close(self) -> None:
        """Let everybody go, so that nothing is left for the next run."""
        for crowd in self._crowds:
            for client in crowd.alive:
                client.crash()
        self._auditor.crash()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.set_exception_handler(lambda *_: None)
        if self.world.node.is_up:
            self.world.node.kill(cut=False, in_mid_write=True)
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def outcome(self) -> Outcome:
        events = self.world.events
        return Outcome(
            self.world.seed,
            events.failure,
            events.count,
            self.world.network.count,
            events.digest,
            self._loop.now_ms - START_MS,
            self._quiet_after_ms,
            self.world.tally.counts,
            [f"{(at_ms - START_MS) / 1000:9.3f} {event}" for at_ms, event in events.trace]
            if events.failure is not None
            else [],
        )
