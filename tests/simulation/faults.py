"""What goes wrong, at random moments: the node, its replicas, the network."""

import asyncio

from tests.simulation.events import WritesRefused
from tests.simulation.network import FINE, Weather
from tests.simulation.world import OUTPUT, World

from barnabas.coordinator.topics import GROUPS_TOPIC, TRANSACTIONS_TOPIC

TROUBLED_TOPICS = (GROUPS_TOPIC, TRANSACTIONS_TOPIC, OUTPUT)


class Faults:
    """Each fault begins and ends by itself; `stop` ends them all."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._node = world.node
        self._random = world.random
        self._under_way: dict[asyncio.Task[None], None] = {}
        self._held: dict[tuple[str, int], None] = {}
        self._away: dict[tuple[str, int], None] = {}
        self._refusing: dict[str, None] = {}
        self._node.died = self._died_in_mid_write

    def strike(self) -> None:
        """One more."""
        kinds = {
            self._kill: 2,
            self._kill_in_mid_write: 3,
            self._hold_back: 8,
            self._refuse: 1,
            self._change_leader: 3,
            self._storm: 4,
        }
        kind = self._random.choices(list(kinds), list(kinds.values()))[0]
        task = self._world.loop.create_task(kind())
        self._under_way[task] = None
        task.add_done_callback(self._over)

    async def stop(self) -> None:
        """All is well from now on."""
        for task in list(self._under_way):
            task.cancel()
        self._node.dies_after_appends = None
        self._world.network.weather = FINE
        if not self._node.is_up:
            self._node.start()
        for topic in list(self._refusing):
            self._accept(topic)
        for place in list(self._away):
            self._lead_again(place)
        for place in list(self._held):
            self._let_go(place)
        self._world.events.note("faults", "are over")

    # The node

    async def _kill(self) -> None:
        if self._node.is_up:
            self._node.kill(cut=self._random.random() < 0.4)
            self._world.network.node_died()
            await self._come_back()

    async def _kill_in_mid_write(self) -> None:
        """The next append but a few is the last."""
        self._node.dies_after_appends = self._random.randint(1, 12)

    def _died_in_mid_write(self) -> None:
        self._node.kill(cut=self._random.random() < 0.4, in_mid_write=True)
        self._world.network.node_died()
        task = self._world.loop.create_task(self._come_back())
        self._under_way[task] = None
        task.add_done_callback(self._over)

    async def _come_back(self) -> None:
        await self._sleep(self._random.choice([10, 100, 1_000, 4_000]))
        self._node.start()

    # Replicas

    async def _hold_back(self) -> None:
        """Nothing is committed for a while, or only little by little."""
        place = self._some_partition()
        if place in self._held:
            return
        self._held[place] = None
        self._world.events.note("faults", f"nothing is committed in {place}")
        self._node.hold_back(*place)
        for _ in range(self._random.randint(1, 6)):
            await self._sleep(self._random.choice([20, 200, 1_500]))
            ends = self._node.ends.get(place, [])
            if ends and self._random.random() < 0.5:
                self._node.catch_up(*place, self._random.choice(ends[-5:]))
        self._let_go(place)

    def _let_go(self, place: tuple[str, int]) -> None:
        del self._held[place]
        self._world.events.note("faults", f"all is committed in {place}")
        self._node.let_go(*place)

    async def _change_leader(self) -> None:
        """A partition is led elsewhere for a while."""
        place = self._some_partition()
        if place in self._away or not self._node.is_up:
            return
        self._away[place] = None
        self._node.resign(*place, cut=self._random.random() < 0.4)
        await self._sleep(self._random.choice([10, 200, 2_000]))
        self._lead_again(place)

    def _lead_again(self, place: tuple[str, int]) -> None:
        del self._away[place]
        self._node.lead_again(*place)

    async def _refuse(self) -> None:
        """Too few replicas are in sync: nothing can be appended."""
        topic = self._random.choice(TROUBLED_TOPICS)
        if topic in self._refusing:
            return
        self._refusing[topic] = None
        self._world.events.tell(WritesRefused(topic))
        self._node.follow(self._world.metadata.configure(topic, "min.insync.replicas", "2"))
        await self._sleep(self._random.choice([50, 500, 3_000]))
        self._accept(topic)

    def _accept(self, topic: str) -> None:
        del self._refusing[topic]
        self._node.follow(self._world.metadata.configure(topic, "min.insync.replicas", "1"))

    # The network

    async def _storm(self) -> None:
        random = self._random
        self._world.network.weather = Weather(
            lost=random.choice([0.02, 0.1, 0.3]),
            slow=random.choice([0.1, 0.5]),
            slow_ms=random.choice([100, 1_000, 4_000]),
        )
        self._world.events.note("faults", f"storm: {self._world.network.weather}")
        await self._sleep(random.randint(500, 6_000))
        self._world.network.weather = FINE

    def _some_partition(self) -> tuple[str, int]:
        return self._random.choice(TROUBLED_TOPICS), self._random.randrange(2)

    async def _sleep(self, delay_ms: int) -> None:
        await asyncio.sleep(delay_ms / 1000)

    def _over(self, task: "asyncio.Task[None]") -> None:
        self._under_way.pop(task, None)
        if not task.cancelled() and task.exception() is not None:
            self._world.events.fail(task.exception())
