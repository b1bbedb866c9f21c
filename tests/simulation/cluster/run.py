"""A run from its seed: trouble for a while, then quiet, then the reckoning."""

import asyncio
import gc
import logging
import tempfile
from dataclasses import dataclass
from pathlib import Path
from random import Random
from unittest.mock import patch

from tests.simulation.clock import START_MS
from tests.simulation.cluster.checkers.liveness import Liveness
from tests.simulation.cluster.checkers.quorum import CommittedMetadata, ElectionSafety, Images
from tests.simulation.cluster.checkers.records import (
    Acknowledgements,
    HighWatermark,
    PartitionLeaders,
    WhatWasRead,
)
from tests.simulation.cluster.checkers.replicas import EqualLogs, InSync, content_of
from tests.simulation.cluster.chronicle import Chronicle
from tests.simulation.cluster.disks import Killed
from tests.simulation.cluster.faults import Faults
from tests.simulation.cluster.processes import ProcessLoop
from tests.simulation.cluster.world import World
from tests.simulation.events import Violation
from tests.simulation.world import ErrorsAreViolations

MEMORY = Path("/dev/shm")
"""Where files are in memory, on machines that have such a place."""

FIRST_TOPIC = "topic-a"


@dataclass(slots=True, frozen=True)
class Outcome:
    """How a run went."""

    seed: int
    failure: BaseException | None
    events: int
    frames: int
    digest: int
    simulated_ms: int
    trace: list[str]


TROUBLE_MS = (4_000, 9_000)
FAULT_EVERY_MS = (150, 400, 1_000)
"""On average; one of them, as the seed has it."""

LOOK_EVERY_MS = 100
QUIET_MS = 20_000
"""More than all timeouts together, and some to spare."""


def run(seed: int) -> Outcome:
    """Exactly the same for the same seed, if PYTHONHASHSEED is the same."""
    loop = ProcessLoop()
    asyncio.set_event_loop(loop)
    within = MEMORY if MEMORY.is_dir() else None
    gc.disable()  # nobody's end may depend on when Python looks for garbage
    gc.freeze()  # and what was there before need not be looked through after it
    try:
        with (
            tempfile.TemporaryDirectory(prefix="barnabas-cluster-", dir=within) as folder,
            patch("os.urandom", Random(seed).randbytes),
        ):
            return _run_in(seed, Path(folder), loop)
    finally:
        loop.bury()
        asyncio.set_event_loop(None)
        loop.close()
        gc.enable()
        gc.collect()


def _run_in(seed: int, folder: Path, loop: ProcessLoop) -> Outcome:
    simulation = Simulation(seed, folder, loop)
    world = simulation.world
    complaints = ErrorsAreViolations(world.events)
    logger = logging.getLogger("barnabas")
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(complaints)
    try:
        with world.simulated():
            loop.run_until_complete(simulation.live())
    except Exception as failure:
        world.events.fail(failure)
    finally:
        logger.removeHandler(complaints)
        logger.propagate = propagates
        for host in world.hosts.values():
            if host.node is not None:
                host.node.let_go()
    return Outcome(
        seed,
        world.events.failure,
        world.events.count,
        world.network.frames,
        world.events.digest,
        loop.now_ms - START_MS,
        [f"{(at_ms - START_MS) / 1000:9.3f} {event}" for at_ms, event in world.events.trace],
    )


class Simulation:
    """A world and what is done to it."""

    def __init__(self, seed: int, folder: Path, loop: ProcessLoop) -> None:
        world = self.world = World(seed, folder, loop)
        self._loop = loop
        self._faults = Faults(world)
        self._acknowledgements = Acknowledgements()
        self._read = WhatWasRead()
        self._in_sync = InSync(world.hosts, self._acknowledgements)
        self._equal_logs = EqualLogs(world.hosts)
        self._liveness = Liveness(world)
        world.events.checkers = [
            ElectionSafety(),
            CommittedMetadata(),
            PartitionLeaders(),
            self._acknowledgements,
            self._read,
            HighWatermark(),
        ]
        world.events.onlookers = [Chronicle(world.events), Images(), self._in_sync]

    async def live(self) -> None:
        events = self.world.events
        living = asyncio.ensure_future(self._live())
        await asyncio.wait([living, events.over], return_when=asyncio.FIRST_COMPLETED)
        if living.done() and (failure := living.exception()) is not None:
            events.fail(failure)
        living.cancel()

    async def _live(self) -> None:
        world = self.world
        for host in world.hosts.values():
            host.start()
        await world.clients_process.spawn(world.admin.create(FIRST_TOPIC, 2))
        administering = world.clients_process.spawn(world.admin.run())
        await self._trouble()
        world.events.note("world", "all trouble ends")
        self._faults.end()
        administering.cancel()
        for producer in world.producers:
            producer.is_finishing = True
        await self._quiet()
        await self._reckon()

    async def _trouble(self) -> None:
        random = self.world.random
        every_ms = random.choice(FAULT_EVERY_MS)
        until_ms = self._loop.now_ms + random.randint(*TROUBLE_MS)
        next_fault_ms = self._loop.now_ms + random.randint(0, 2 * every_ms)
        while (now_ms := self._loop.now_ms) < until_ms:
            self._let_in_clients()
            self._look_around()
            if now_ms >= next_fault_ms:
                self._faults.strike()
                next_fault_ms = now_ms + random.randint(50, 2 * every_ms)
            next_ms = min(next_fault_ms, now_ms + LOOK_EVERY_MS)
            await asyncio.sleep(max(next_ms - now_ms, 1) / 1000)

    def _let_in_clients(self) -> None:
        """Whatever partition there is has somebody who writes and somebody who reads."""
        busy = {producer.key for producer in self.world.producers}
        for topic in self.world.newest_image.topics:
            for index in topic.partitions:
                if (topic.topic_id, index) not in busy:
                    self.world.join((topic.topic_id, index), topic.name)

    def _look_around(self) -> None:
        events = self.world.events
        events.checked(self._in_sync.look_around, self.world.newest_image)

    async def _quiet(self) -> None:
        """Wait until everything is as it should be; it must be within bounds."""
        began_ms = self._loop.now_ms
        while missing := list(self._liveness.missing()):
            if self._loop.now_ms > began_ms + QUIET_MS:
                self.world.events.fail(Violation("; ".join(missing)), "Liveness")
            self._look_around()
            await asyncio.sleep(LOOK_EVERY_MS / 1000)

    async def _reckon(self) -> None:
        world = self.world
        image = world.newest_image
        self._look_around()
        world.events.checked(self._equal_logs.look_around, image)
        for topic in image.topics:
            for index, state in topic.partitions.items():
                partition = world.hosts[state.leader].partition(topic.topic_id, index)
                assert partition is not None
                log = content_of(partition, partition.high_watermark)
                name, key = f"{topic.name}-{index}", (topic.topic_id, index)
                world.events.checked(self._acknowledgements.reckon, name, key, log)
                world.events.checked(self._read.reckon, name, key, log)
        for task in self._loop.tasks:
            failure = task.exception() if task._log_traceback else None
            if failure is not None and not isinstance(failure, Killed):
                world.events.fail(failure)
