"""A run from its seed: faults for some time, then recovery, then the final checks."""

import asyncio
import gc
from collections import Counter
from pathlib import Path

from tests.simulation.cluster.checkers.liveness import Liveness
from tests.simulation.cluster.checkers.quorum import CommittedMetadata, ElectionSafety, Images
from tests.simulation.cluster.checkers.records import (
    Acknowledgements,
    HighWatermark,
    PartitionLeaders,
    ReadRecords,
)
from tests.simulation.cluster.checkers.replicas import EqualLogs, InSyncReplicas, content_of
from tests.simulation.cluster.events import MetadataTrace
from tests.simulation.cluster.faults import Faults
from tests.simulation.cluster.world import ClusterWorld
from tests.simulation.world.disk import Killed
from tests.simulation.world.events import Violation
from tests.simulation.world.process import ProcessLoop
from tests.simulation.world.run import Outcome, seeded_folder

FIRST_TOPIC = "topic-a"

FAULTS_MS = (4_000, 9_000)
FAULT_EVERY_MS = (150, 400, 1_000)
"""The average is one of them, by the seed."""

CHECK_EVERY_MS = 100
RECOVERY_MS = 20_000
"""More than all timeouts together."""


def run(seed: int) -> Outcome:
    loop = ProcessLoop()
    asyncio.set_event_loop(loop)
    gc.disable()  # finalizers must not run at random moments
    gc.freeze()  # objects from before the run need not be traversed after it
    try:
        with seeded_folder(seed) as folder:
            return _run_in(seed, folder, loop)
    finally:
        loop.drop_tasks()
        asyncio.set_event_loop(None)
        loop.close()
        gc.enable()
        gc.collect()


def _run_in(seed: int, folder: Path, loop: ProcessLoop) -> Outcome:
    simulation = Simulation(seed, folder, loop)
    world = simulation.world
    try:
        with world.events.logged_errors_are_violations(), world.simulated():
            loop.run_until_complete(simulation.run())
    except Exception as failure:
        world.events.fail(failure)
    finally:
        for host in world.hosts.values():
            if host.node is not None:
                host.node.close_files()
    work = Counter({"frames": world.network.frames})
    return Outcome(seed, world.events, loop.elapsed_ms, work)


class Simulation:
    """A world, its checkers and its faults."""

    def __init__(self, seed: int, folder: Path, loop: ProcessLoop) -> None:
        world = self.world = ClusterWorld(seed, folder, loop)
        self._loop = loop
        self._faults = Faults(world)
        self._acknowledgements = Acknowledgements()
        self._read_records = ReadRecords()
        self._in_sync = InSyncReplicas(world.hosts, self._acknowledgements)
        self._equal_logs = EqualLogs(world.hosts)
        self._liveness = Liveness(world)
        world.events.checkers = [
            ElectionSafety(),
            CommittedMetadata(),
            PartitionLeaders(),
            self._acknowledgements,
            self._read_records,
            HighWatermark(),
        ]
        world.events.image_checkers = [MetadataTrace(world.events), Images(), self._in_sync]

    async def run(self) -> None:
        events = self.world.events
        running = asyncio.ensure_future(self._run())
        await asyncio.wait([running, events.failed], return_when=asyncio.FIRST_COMPLETED)
        if running.done() and (failure := running.exception()) is not None:
            events.fail(failure)
        running.cancel()

    async def _run(self) -> None:
        world = self.world
        for host in world.hosts.values():
            host.start()
        await world.clients_process.spawn(world.admin.create(FIRST_TOPIC, 2))
        admin = world.clients_process.spawn(world.admin.run())
        await self._inject_faults()
        world.events.note("world", "all faults end")
        self._faults.end()
        admin.cancel()
        for producer in world.producers:
            producer.is_finishing = True
        await self._await_recovery()
        await self._check_logs()

    async def _inject_faults(self) -> None:
        random = self.world.random
        every_ms = random.choice(FAULT_EVERY_MS)
        until_ms = self._loop.now_ms + random.randint(*FAULTS_MS)
        next_fault_ms = self._loop.now_ms + random.randint(0, 2 * every_ms)
        while (now_ms := self._loop.now_ms) < until_ms:
            self._add_clients()
            self._check_in_sync()
            if now_ms >= next_fault_ms:
                self._faults.inject()
                next_fault_ms = now_ms + random.randint(50, 2 * every_ms)
            next_ms = min(next_fault_ms, now_ms + CHECK_EVERY_MS)
            await asyncio.sleep(max(next_ms - now_ms, 1) / 1000)

    def _add_clients(self) -> None:
        """Every partition gets a producer and a reader."""
        produced = {producer.key for producer in self.world.producers}
        for topic in self.world.newest_image.topics:
            for index in topic.partitions:
                if (topic.topic_id, index) not in produced:
                    self.world.add_clients((topic.topic_id, index), topic.name)

    def _check_in_sync(self) -> None:
        events = self.world.events
        events.check(self._in_sync.check_all, self.world.newest_image)

    async def _await_recovery(self) -> None:
        """Waits until nothing is missing, which is a violation after `RECOVERY_MS`."""
        start_ms = self._loop.now_ms
        while missing := list(self._liveness.missing()):
            if self._loop.now_ms > start_ms + RECOVERY_MS:
                self.world.events.fail(Violation("; ".join(missing)), "Liveness")
            self._check_in_sync()
            await asyncio.sleep(CHECK_EVERY_MS / 1000)

    async def _check_logs(self) -> None:
        world = self.world
        image = world.newest_image
        self._check_in_sync()
        world.events.check(self._equal_logs.check_all, image)
        for topic in image.topics:
            for index, state in topic.partitions.items():
                partition = world.hosts[state.leader].partition(topic.topic_id, index)
                assert partition is not None
                log = content_of(partition, partition.high_watermark)
                name, key = f"{topic.name}-{index}", (topic.topic_id, index)
                world.events.check(self._acknowledgements.check_log, name, key, log)
                world.events.check(self._read_records.check_log, name, key, log)
        for task in self._loop.tasks:
            failure = task.exception() if task._log_traceback else None
            if failure is not None and not isinstance(failure, Killed):
                world.events.fail(failure)
