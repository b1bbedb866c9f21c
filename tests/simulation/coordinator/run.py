"""A run from its seed: faults for some time, then recovery, then the final checks."""

import asyncio
from collections import Counter
from pathlib import Path

from tests.simulation.coordinator.checkers.hanging_transactions import HangingTransactions
from tests.simulation.coordinator.checkers.liveness import Liveness
from tests.simulation.coordinator.client_groups import (
    PROCESSORS,
    ClientGroup,
    CommitterClients,
    MemberClients,
    draw_group,
    draw_processors,
)
from tests.simulation.coordinator.clients.committer import Auditor
from tests.simulation.coordinator.clients.partition_work import Identity, fetch_offsets
from tests.simulation.coordinator.faults import Faults
from tests.simulation.coordinator.world import (
    INPUT,
    INPUT_PARTITIONS,
    TOPICS,
    CoordinatorWorld,
)
from tests.simulation.world.clock import SimulatedLoop
from tests.simulation.world.events import Violation
from tests.simulation.world.run import Outcome, seeded_folder

FAULTS_MS = 60_000
FAULT_EVERY_MS = (500, 1_500, 4_000)
CHANGE_EVERY_MS = (400, 1_000, 3_000)
"""The average is one of them, by the seed."""

READ_EVERY_MS = 500
"""How often the output is read, at least."""

RECOVERY_MS = 90_000
"""More than all timeouts together: sessions, rebalances, transactions."""


def run(seed: int, *, is_traced: bool = False) -> Outcome:
    loop = SimulatedLoop()
    asyncio.set_event_loop(loop)
    with seeded_folder(seed) as folder:
        simulation = Simulation(seed, folder, loop)
        world = simulation.world
        try:
            with world.events.logged_errors_are_violations(), world.node.observed():
                loop.run_until_complete(simulation.run())
        except Exception as failure:
            world.events.fail(failure)
        finally:
            simulation.close()
        work = Counter({"requests": world.network.count})
        return Outcome.of(
            seed,
            world.events,
            loop.elapsed_ms,
            work,
            responses=world.response_counts.counts,
            is_traced=is_traced,
        )


class Simulation:
    """A world, its clients and its faults."""

    def __init__(self, seed: int, folder: Path, loop: SimulatedLoop) -> None:
        self.world = CoordinatorWorld(seed, folder, loop)
        self._loop = loop
        self._faults = Faults(self.world)
        groups = [draw_group(self.world, name) for name in "ab"]
        committers = CommitterClients(self.world, "c")
        self._client_groups: list[ClientGroup] = [*groups, committers, *draw_processors(self.world)]
        audited = {clients.group_id: clients.partitions for clients in (*groups, committers)}
        self._auditor = Auditor(self.world, "auditor", audited)
        self._final_checkers = [
            Liveness(self.world, self._client_groups),
            HangingTransactions(self.world),
        ]

    async def run(self) -> None:
        running = asyncio.ensure_future(self._run())
        await asyncio.wait([running, self.world.events.failed], return_when=asyncio.FIRST_COMPLETED)
        if running.done() and running.exception() is not None:
            self.world.events.fail(running.exception())
        running.cancel()

    async def _run(self) -> None:
        for clients in self._client_groups:
            for _ in range(self.world.random.randint(1, 3)):
                clients.add_client()
        self._auditor.start()
        await self._inject_faults()
        await self._faults.stop()
        for clients in self._client_groups:
            clients.ensure_running()
        await self._await_recovery()
        await self._check_all()
        self._restart()
        await self._await_recovery()

    def _change(self) -> None:
        """A client starts or stops; sometimes a topic gets a partition."""
        random = self.world.random
        groups = [clients for clients in self._client_groups if isinstance(clients, MemberClients)]
        if random.random() < 0.03 and not any(clients.may_be_leaderless for clients in groups):
            self.world.add_partition(random.choice(sorted(TOPICS)))
        random.choice([*self._client_groups, *groups, *groups]).change()

    async def _inject_faults(self) -> None:
        random = self.world.random
        fault_every_ms = random.choice(FAULT_EVERY_MS)
        change_every_ms = random.choice(CHANGE_EVERY_MS)
        until_ms = self._loop.now_ms + FAULTS_MS
        next_fault_ms = next_change_ms = self._loop.now_ms
        while (now_ms := self._loop.now_ms) < until_ms:
            if now_ms >= next_fault_ms:
                self._faults.inject()
                next_fault_ms = now_ms + random.randint(100, 2 * fault_every_ms)
            if now_ms >= next_change_ms:
                self._change()
                next_change_ms = now_ms + random.randint(100, 2 * change_every_ms)
            next_ms = min(next_fault_ms, next_change_ms, now_ms + READ_EVERY_MS)
            await asyncio.sleep((next_ms - now_ms) / 1000)
            self._read_output()

    async def _await_recovery(self) -> None:
        """Waits until nothing is missing, which is a violation after `RECOVERY_MS`."""
        start_ms = self._loop.now_ms
        while missing := self._missing():
            if self._loop.now_ms > start_ms + RECOVERY_MS:
                violation = Violation(f"{RECOVERY_MS / 1000:.0f} s after the last fault: {missing}")
                self.world.events.fail(violation, "/".join(missing))
                return
            for clients in self._client_groups:
                clients.ensure_running()  # a client that was fenced has stopped
            await asyncio.sleep(0.5)
            self._read_output()

    def _missing(self) -> dict[str, list[str]]:
        """Returns what is missing, by checker."""
        missing = {type(checker).__name__: checker.missing() for checker in self._final_checkers}
        return {name: items for name, items in missing.items() if items}

    async def _check_all(self) -> None:
        """Checks the committed offsets and the output, without faults."""
        await self._auditor.fetch_all()
        inputs = [(INPUT, index) for index in range(INPUT_PARTITIONS)]
        offsets = await fetch_offsets(self._auditor, Identity(PROCESSORS), inputs)
        try:
            self.world.records.check_all({index: offsets[INPUT, index] for _, index in inputs})
        except Violation as violation:
            self.world.events.fail(violation, "Records")

    def _restart(self) -> None:
        """Restarts the broker without other faults."""
        self.world.node.kill(truncate=False)
        self.world.network.on_broker_killed()
        self.world.node.start()

    def _read_output(self) -> None:
        try:
            self.world.records.read_output()
        except Violation as violation:
            self.world.events.fail(violation, "Records")

    def close(self) -> None:
        """Stops everything, so that nothing is left for the next run."""
        for clients in self._client_groups:
            for client in clients.alive:
                client.crash()
        self._auditor.crash()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.set_exception_handler(lambda *_: None)
        if self.world.node.is_up:
            self.world.node.kill(truncate=False, while_writing=True)
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()
