"""A run from its seed: faults for some time, then recovery, then the final checks."""

import asyncio
import gc
from collections import Counter
from itertools import count
from pathlib import Path

from tests.simulation.cluster.checkers.compaction import Compaction
from tests.simulation.cluster.checkers.liveness import Liveness
from tests.simulation.cluster.checkers.quorum import (
    CommittedMetadata,
    DurableMetadata,
    ElectionSafety,
    Images,
)
from tests.simulation.cluster.checkers.records import (
    Acknowledgements,
    HighWatermark,
    PartitionLeaders,
    ReadRecords,
)
from tests.simulation.cluster.checkers.replicas import EqualLogs, InSyncReplicas, content_of
from tests.simulation.cluster.events import MetadataTrace
from tests.simulation.cluster.fault_plan import FaultPlan
from tests.simulation.cluster.layout import COMPACTED_TOPIC, INTERNAL_TOPICS
from tests.simulation.cluster.world import ClusterWorld
from tests.simulation.world.disk import Killed
from tests.simulation.world.events import Violation
from tests.simulation.world.process import ProcessLoop
from tests.simulation.world.run import Outcome, seeded_folder

from barnabas.replication import Partition

FIRST_TOPIC = "topic-a"
FIRST_TOPIC_CONFIGS: tuple[dict[str, str], ...] = ({}, {}, {"internal.segment.bytes": "2000"})

FAULTS_MS = (2_500, 6_000)
CHECK_EVERY_MS = 100
RECOVERY_MS = 20_000
"""More than all timeouts together."""

CLEANING_MS = 1_000
"""Some rounds of the cleaner."""

RUNS_PER_COLLECTION = 8
"""A run leaves some megabytes of garbage, and a collection takes as long as a tenth of a run."""

_runs = count()


def run(seed: int, *, is_traced: bool = False) -> Outcome:
    gc.disable()  # finalizers must not run at random moments
    try:
        return _run(seed, is_traced=is_traced)
    finally:
        gc.enable()
        number = next(_runs)
        if number % RUNS_PER_COLLECTION == 0:
            gc.collect()
        if number == 0:
            gc.freeze()  # the modules need not be traversed again


def _run(seed: int, *, is_traced: bool) -> Outcome:
    loop = ProcessLoop()
    asyncio.set_event_loop(loop)
    try:
        with seeded_folder(seed) as folder:
            return _run_in(seed, folder, loop, is_traced=is_traced)
    finally:
        loop.drop_tasks()
        asyncio.set_event_loop(None)
        loop.close()


def _run_in(seed: int, folder: Path, loop: ProcessLoop, *, is_traced: bool) -> Outcome:
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
    return Outcome.of(seed, world.events, loop.elapsed_ms, work, is_traced=is_traced)


class Simulation:
    """A world, its checkers and its faults."""

    def __init__(self, seed: int, folder: Path, loop: ProcessLoop) -> None:
        world = self.world = ClusterWorld(seed, folder, loop)
        self._loop = loop
        self._faults = FaultPlan(world)
        self._acknowledgements = Acknowledgements()
        self._read_records = ReadRecords()
        self._in_sync = InSyncReplicas(
            world.hosts, lambda: world.newest_image, self._acknowledgements
        )
        self._equal_logs = EqualLogs(world.hosts)
        self._compaction = Compaction(
            world.hosts,
            world.compacted_topic.delete_retention_ms if world.compacted_topic is not None else 0,
        )
        self._liveness = Liveness(world)
        world.events.checkers = [
            ElectionSafety(),
            CommittedMetadata(),
            DurableMetadata([world.hosts[voter] for voter in world.layout.controllers]),
            PartitionLeaders(),
            self._acknowledgements,
            self._read_records,
            HighWatermark(),
            self._in_sync,
            self._compaction,
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
        await world.clients_process.spawn(self._create_topics())
        admin = world.clients_process.spawn(world.admin.run())
        await self._inject_faults()
        world.events.note("world", "all faults end")
        self._faults.end()
        admin.cancel()
        for producer in world.producers:
            producer.is_finishing = True
        await self._await_recovery()
        await self._await_cleaning()
        await self._check_logs()

    async def _create_topics(self) -> None:
        admin, compacted = self.world.admin, self.world.compacted_topic
        await admin.create(FIRST_TOPIC, 2, self.world.random.choice(FIRST_TOPIC_CONFIGS))
        if compacted is not None:
            await admin.create(COMPACTED_TOPIC, 1, compacted.configs)

    async def _inject_faults(self) -> None:
        until_ms = self._loop.now_ms + self.world.random.randint(*FAULTS_MS)
        while (now_ms := self._loop.now_ms) < until_ms:
            self._add_clients()
            self._check_in_sync()
            self._faults.inject()
            next_ms = min(self._faults.next_ms, now_ms + CHECK_EVERY_MS)
            await asyncio.sleep(max(next_ms - now_ms, 1) / 1000)

    def _add_clients(self) -> None:
        """Every partition gets producers and a reader."""
        read = {reader.key for reader in self.world.readers}
        for topic in self.world.newest_image.topics:
            for index in topic.partitions:
                if (topic.topic_id, index) not in read and topic.name not in INTERNAL_TOPICS:
                    self.world.add_clients((topic.topic_id, index), topic.name)

    def _check_in_sync(self) -> None:
        self.world.events.check(self._in_sync.check_all)

    async def _await_recovery(self) -> None:
        """Waits until nothing is missing, which is a violation after `RECOVERY_MS`."""
        start_ms = self._loop.now_ms
        while missing := list(self._liveness.missing()):
            if self._loop.now_ms > start_ms + RECOVERY_MS:
                self.world.events.fail(Violation("; ".join(missing)), "Liveness")
            self._check_in_sync()
            await asyncio.sleep(CHECK_EVERY_MS / 1000)

    async def _await_cleaning(self) -> None:
        """Gives the cleaners time to remove the last tombstones, if these expire soon."""
        compacted = self.world.compacted_topic
        if compacted is not None and compacted.delete_retention_ms < CLEANING_MS:
            await asyncio.sleep(CLEANING_MS / 1000)

    async def _check_logs(self) -> None:
        world = self.world
        self._check_in_sync()
        for topic in world.newest_image.topics:
            for index, state in topic.partitions.items():
                partition = world.hosts[state.leader].partition(topic.topic_id, index)
                assert partition is not None
                if topic.name == COMPACTED_TOPIC:
                    self._check_compacted_log(partition)
                else:
                    self._check_log(partition)
        for task in self._loop.tasks:
            failure = task.exception() if task._log_traceback else None
            if failure is not None and not isinstance(failure, Killed):
                world.events.fail(failure)

    def _check_log(self, leader: Partition) -> None:
        events, key = self.world.events, (leader.topic_id, leader.index)
        events.check(self._equal_logs.check, key)
        if leader.topic in INTERNAL_TOPICS:
            return
        log = content_of(leader, leader.high_watermark)
        name = f"{leader.topic}-{leader.index}"
        events.check(self._acknowledgements.check_log, name, key, log)
        events.check(self._read_records.check_log, name, key, log)

    def _check_compacted_log(self, leader: Partition) -> None:
        events, key = self.world.events, (leader.topic_id, leader.index)
        events.check(self._compaction.check_clients, key, leader)
        for host in self.world.hosts.values():
            events.check(self._compaction.check_replica, host, key, self._loop.now_ms)
