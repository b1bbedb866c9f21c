"""Faults at random moments: of the broker, of replicas, of the network."""

import asyncio

from tests.simulation.coordinator.events import UnderMinIsr
from tests.simulation.coordinator.world import OUTPUT, CoordinatorWorld

from barnabas.coordinator.records import GROUPS_TOPIC, TRANSACTIONS_TOPIC

FAULTY_TOPICS = (GROUPS_TOPIC, TRANSACTIONS_TOPIC, OUTPUT)


class Faults:
    """Every fault begins and ends by itself; `stop` ends them all."""

    def __init__(self, world: CoordinatorWorld) -> None:
        self._world = world
        self._node = world.node
        self._random = world.random
        self._active: dict[asyncio.Task[None], None] = {}
        self._unreplicated: dict[tuple[str, int], None] = {}
        self._led_elsewhere: dict[tuple[str, int], None] = {}
        self._under_min_isr: dict[str, None] = {}
        self._node.on_killed = self._on_killed_while_writing

    def inject(self) -> None:
        """Begins a fault."""
        kinds = {
            self._kill: 2,
            self._kill_while_writing: 3,
            self._stop_replication: 8,
            self._shrink_isr: 1,
            self._change_leader: 3,
            self._slow_network: 4,
        }
        kind = self._random.choices(list(kinds), list(kinds.values()))[0]
        task = self._world.loop.create_task(kind())
        self._active[task] = None
        task.add_done_callback(self._on_end)

    async def stop(self) -> None:
        """Ends all faults."""
        for task in list(self._active):
            task.cancel()
        self._node.appends_left = None
        self._restore_network()
        if not self._node.is_up:
            self._node.start()
        for topic in list(self._under_min_isr):
            self._grow_isr(topic)
        for topic_partition in list(self._led_elsewhere):
            self._become_leader(topic_partition)
        for topic_partition in list(self._unreplicated):
            self._resume_replication(topic_partition)
        self._world.events.note("faults", "end")

    # The broker

    async def _kill(self) -> None:
        if self._node.is_up:
            self._node.kill(truncate=self._random.random() < 0.4)
            self._world.network.on_broker_killed()
            await self._restart()

    async def _kill_while_writing(self) -> None:
        """Kills the broker right after one of the next appends."""
        self._node.appends_left = self._random.randint(1, 12)

    def _on_killed_while_writing(self) -> None:
        self._node.kill(truncate=self._random.random() < 0.4, while_writing=True)
        self._world.network.on_broker_killed()
        task = self._world.loop.create_task(self._restart())
        self._active[task] = None
        task.add_done_callback(self._on_end)

    async def _restart(self) -> None:
        await self._sleep(self._random.choice([10, 100, 1_000, 4_000]))
        self._node.start()

    # Replicas

    async def _stop_replication(self) -> None:
        """No record is committed for a while, or only a few at a time."""
        topic_partition = self._pick_partition()
        if topic_partition in self._unreplicated:
            return
        self._unreplicated[topic_partition] = None
        self._world.events.note("faults", f"no record is committed in {topic_partition}")
        self._node.stop_replication(*topic_partition)
        for _ in range(self._random.randint(1, 6)):
            await self._sleep(self._random.choice([20, 200, 1_500]))
            ends = self._node.ends.get(topic_partition, [])
            if ends and self._random.random() < 0.5:
                self._node.replicate_to(*topic_partition, self._random.choice(ends[-5:]))
        self._resume_replication(topic_partition)

    def _resume_replication(self, topic_partition: tuple[str, int]) -> None:
        del self._unreplicated[topic_partition]
        self._world.events.note("faults", f"all records are committed in {topic_partition}")
        self._node.resume_replication(*topic_partition)

    async def _change_leader(self) -> None:
        """Another broker leads a partition for a while."""
        topic_partition = self._pick_partition()
        if topic_partition in self._led_elsewhere or not self._node.is_up:
            return
        self._led_elsewhere[topic_partition] = None
        self._node.resign(*topic_partition, truncate=self._random.random() < 0.4)
        await self._sleep(self._random.choice([10, 200, 2_000]))
        self._become_leader(topic_partition)

    def _become_leader(self, topic_partition: tuple[str, int]) -> None:
        del self._led_elsewhere[topic_partition]
        self._node.become_leader(*topic_partition)

    async def _shrink_isr(self) -> None:
        """A topic is under min ISR: no record can be appended."""
        topic = self._random.choice(FAULTY_TOPICS)
        if topic in self._under_min_isr:
            return
        self._under_min_isr[topic] = None
        self._world.events.record(UnderMinIsr(topic))
        self._node.apply_metadata(self._world.metadata.configure(topic, "min.insync.replicas", "2"))
        await self._sleep(self._random.choice([50, 500, 3_000]))
        self._grow_isr(topic)

    def _grow_isr(self, topic: str) -> None:
        del self._under_min_isr[topic]
        self._node.apply_metadata(self._world.metadata.configure(topic, "min.insync.replicas", "1"))

    # The network

    async def _slow_network(self) -> None:
        random, network = self._random, self._world.network
        network.loss = random.choice([0.02, 0.1, 0.3])
        network.latency.slow_chance = random.choice([0.1, 0.5])
        network.latency.slow_ms = random.choice([100, 1_000, 4_000])
        self._world.events.note("faults", f"slow network: {network.loss} lost, {network.latency}")
        await self._sleep(random.randint(500, 6_000))
        self._restore_network()

    def _restore_network(self) -> None:
        network = self._world.network
        network.loss = network.latency.slow_chance = 0.0

    def _pick_partition(self) -> tuple[str, int]:
        return self._random.choice(FAULTY_TOPICS), self._random.randrange(2)

    async def _sleep(self, delay_ms: int) -> None:
        await asyncio.sleep(delay_ms / 1000)

    def _on_end(self, task: "asyncio.Task[None]") -> None:
        self._active.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            self._world.events.fail(task.exception())
