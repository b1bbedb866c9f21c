"""Sequences of faults that random faults hardly ever make, each for a promise that needs it.

A scenario chooses a partition or a controller, and waits at every step for what the next one needs.
Its times are random, and random faults may interfere: most of its runs are variations.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.simulation.cluster.clients.admin import Admin
from tests.simulation.cluster.faults import (
    ALTER_PARTITION,
    METADATA_FETCH,
    REPLICA_FETCH,
    Faults,
)
from tests.simulation.cluster.host import Host

from barnabas.log.segments.log_files import SWAP
from barnabas.metadata.states import PartitionRegistration

if TYPE_CHECKING:
    from tests.simulation.cluster.world import ClusterWorld

Scenario = Callable[[], Awaitable[None]]

NO_LEADER = -1
POLL_S = 0.005
PATIENCE_MS = 2_500
"""How long a step may take; then the scenario is abandoned. Longer than a broker's session."""


@dataclass(slots=True, frozen=True)
class _Target:
    """A partition with all its replicas in sync, and the hosts of its replicas."""

    topic: str
    topic_id: bytes
    index: int
    leader: Host
    followers: list[Host]
    """In the order in which they are elected."""


class Scenarios:
    """The scenarios of a run."""

    def __init__(self, world: "ClusterWorld", faults: Faults) -> None:
        self._world = world
        self._faults = faults
        self._random = world.random
        self._operator = Admin(world, "operator")

    def draw(self) -> Scenario:
        scenarios: list[Scenario] = [
            self.fail_leader_of_uneven_replicas,
            self.delay_isr_change,
            self.delay_metadata_of_leader,
            self.elect_unaware_leader_again,
            self.lose_commit,
            self.disturb_new_controllers,
        ]
        if self._world.compacted_topic is not None:
            scenarios += [self.fail_while_cleaning] * 4
        return self._random.choice(scenarios)

    # Replication

    async def fail_leader_of_uneven_replicas(self) -> None:
        """One follower has records that the next leader does not have, and must truncate them."""
        target = self._draw_target()
        if target is None:
            return
        next_leader = target.followers[0]
        is_usual = self._random.random() < 0.8
        behind = next_leader if is_usual else self._random.choice(target.followers)
        links = [(target.leader.name, behind.name)]
        self._faults.cut(links)
        await self._sleep(20, 500)
        recover = self._fail(target.leader)
        await self._sleep(0, 60)
        self._faults.heal(links)
        await self._until(lambda: self._has_another_leader(target))
        await self._sleep(0, 800)
        recover()

    async def delay_isr_change(self) -> None:
        """An ISR change of a leader arrives when it is no longer true."""
        target = self._draw_target()
        if target is None or self._is_controller(target.leader):
            return
        follower = self._random.choice(target.followers)
        if self._is_controller(follower) or not self._faults.kill(follower):
            return
        self._faults.hold(target.leader, ALTER_PARTITION)
        await self._until(lambda: not self._is_in_sync(target, follower))
        self._faults.start(follower)
        if await self._until(lambda: self._faults.is_holding(target.leader, ALTER_PARTITION)):
            self._faults.hold(follower, REPLICA_FETCH)
            await self._random.choice(
                (self._replace_follower, self._move_leader_away, self._outwait_follower)
            )(target, follower)
        await self._sleep(0, 200)
        self._faults.release(target.leader, ALTER_PARTITION)
        await self._sleep(50, 300)
        self._faults.release(follower, REPLICA_FETCH)

    async def _replace_follower(self, _: _Target, follower: Host) -> None:
        """The follower loses its power and its records, and registers again."""
        await self._sleep(0, 50)
        if self._faults.lose_power(follower):
            await self._sleep(20, 200)
            self._faults.start(follower)
            await self._until_registered(follower)

    async def _move_leader_away(self, target: _Target, follower: Host) -> None:
        other = next(host for host in target.followers if host is not follower)
        await self._elect(target, other)
        await self._sleep(50, 600)

    async def _outwait_follower(self, target: _Target, _: Host) -> None:
        """The leader gets newer metadata, and then does not wait for the follower any more."""
        await self._elect(target, target.leader)
        await self._sleep(1_000, 1_800)

    async def delay_metadata_of_leader(self) -> None:
        """A leader is replaced and elected again, and has not heard of either."""
        target = self._draw_target()
        if target is None or self._is_controller(target.leader):
            return
        leader, (other, follower) = target.leader, target.followers[:2]
        if self._is_controller(follower) or not self._faults.kill(follower):
            return
        await self._until(lambda: not self._is_in_sync(target, follower))
        await self._sleep(0, 100)
        self._faults.hold(leader, METADATA_FETCH)
        self._faults.start(follower)
        await self._elect(target, other)
        if await self._until(lambda: self._is_in_sync(target, follower)):
            self._faults.hold(follower, REPLICA_FETCH)
            await self._elect(target, leader)
            await self._sleep(100, 500)
        self._faults.release(leader, METADATA_FETCH)
        await self._sleep(50, 200)
        self._faults.release(follower, REPLICA_FETCH)

    async def elect_unaware_leader_again(self) -> None:
        """A leader is replaced and elected again, and has not heard that followers truncated."""
        target = self._draw_target()
        if target is None or self._is_controller(target.leader):
            return
        leader, (other, follower) = target.leader, target.followers[:2]
        self._faults.hold(other, REPLICA_FETCH)
        await self._sleep(50, 400)
        self._faults.hold(leader, METADATA_FETCH)
        await self._elect(target, other)
        if await self._until(lambda: self._has_another_leader(target)):
            await self._sleep(20, 150)
            self._faults.hold(follower, REPLICA_FETCH)
            await self._elect(target, leader)
        self._faults.release(other, REPLICA_FETCH)
        self._faults.release(leader, METADATA_FETCH)
        await self._sleep(50, 400)
        self._faults.release(follower, REPLICA_FETCH)

    # Compaction

    async def fail_while_cleaning(self) -> None:
        """A host is killed while it puts cleaned segments in place, or fails soon after."""
        faults = self._faults
        host = self._world.hosts[self._random.choice(self._world.layout.brokers)]
        if self._random.random() < 0.5:
            if faults.kill_while_cleaning(host, self._random.randint(1, 16)):
                await self._until(lambda: not host.is_up)
        else:
            swaps = host.disk.renames[SWAP]
            if await self._until(lambda: host.disk.renames[SWAP] > swaps):
                await self._sleep(0, 50)
                self._random.choice((faults.lose_power, faults.kill))(host)
        await self._sleep(20, 300)
        faults.start(host)

    # The quorum

    async def lose_commit(self) -> None:
        """Metadata is committed by two of three controllers, and one of these loses its power."""
        controller = self._controller()
        if controller is None:
            return
        losing, behind = self._random.sample(
            [host for host in self._controllers if host is not controller], 2
        )
        cut_off = self._faults.links_of(behind, self._controllers)
        self._faults.cut(cut_off)
        self._faults.slow_disk(losing, 1.0, self._random.choice((20, 100, 400)))
        changing = self._change_metadata()
        await self._sleep(20, 200)
        has_lost_power = self._faults.lose_power(losing)
        self._faults.end_slow_disk(losing)
        alone = self._faults.links_of(controller, self._controllers)
        self._faults.heal(cut_off)
        self._faults.cut(alone)
        await self._sleep(0, 200)
        if has_lost_power:
            self._faults.start(losing)
        await self._until(lambda: self._controller() not in (None, controller))
        await self._sleep(0, 300)
        self._faults.heal(alone)
        changing.cancel()

    async def disturb_new_controllers(self) -> None:
        """One controller after the other fails, right after it was elected."""
        recoveries = []
        for _ in range(self._random.randint(2, 4)):
            controller = self._controller()
            if controller is None:
                break
            changing = self._change_metadata()
            await self._sleep(0, 40)
            recoveries.append(self._fail(controller))
            await self._until(lambda old=controller: self._controller() not in (None, old))
            changing.cancel()
            if len(recoveries) > 1 or self._random.random() < 0.5:
                recoveries.pop(0)()
        for recover in recoveries:
            recover()

    # Steps

    def _fail(self, host: Host) -> Callable[[], None]:
        """Makes a host fail in some way. Returns what ends the fault."""
        faults = self._faults
        fail = self._random.choice((faults.kill, faults.lose_power, faults.pause, None))
        has_failed = fail is not None and fail(host)
        links = [] if has_failed else faults.links_of(host, faults.hosts)

        def recover() -> None:
            faults.start(host)
            faults.resume(host)
            faults.heal(links)

        faults.cut(links)
        return recover

    async def _elect(self, target: _Target, host: Host) -> None:
        """Makes a replica the preferred leader, and elects it, as an operator would."""
        replicas = [other.node_id for other in (target.leader, *target.followers)]
        replicas.sort(key=lambda node_id: node_id != host.node_id)
        process = self._world.clients_process
        moving = process.spawn(self._operator.move_leader(target.topic, target.index, replicas))
        await asyncio.wait([moving], timeout=PATIENCE_MS / 1000)

    def _change_metadata(self) -> "asyncio.Task[None]":
        """Changes settings of a topic, again and again."""

        async def change() -> None:
            while True:
                await self._operator.change_config(topic)
                await asyncio.sleep(0.01)

        topic = self._random.choice(self._world.admin.topics)
        return self._world.clients_process.spawn(change())

    async def _sleep(self, min_ms: int, max_ms: int) -> None:
        await asyncio.sleep(self._random.randint(min_ms, max_ms) / 1000)

    async def _until(self, is_true: Callable[[], bool]) -> bool:
        """Waits, but not for ever. Returns whether it became true."""
        until_ms = self._world.loop.now_ms + PATIENCE_MS
        while not is_true():
            if self._world.loop.now_ms > until_ms:
                return False
            await asyncio.sleep(POLL_S)
        return True

    async def _until_registered(self, host: Host) -> None:
        """Waits until the process of a broker is registered and unfenced."""

        def is_registered() -> bool:
            broker = self._world.newest_image.brokers.get(host.node_id)
            return broker is not None and broker.active and broker.epoch == host.broker_epoch

        await self._until(is_registered)

    # Targets

    def _draw_target(self) -> _Target | None:
        """Returns a partition whose replicas are all in sync, if there is one."""
        hosts = self._world.hosts
        targets = [
            _Target(
                topic.name,
                topic.topic_id,
                index,
                hosts[state.leader],
                [hosts[node_id] for node_id in state.replicas if node_id != state.leader],
            )
            for topic in self._world.newest_image.topics
            for index, state in topic.partitions.items()
            if state.leader != NO_LEADER and len(state.isr) == len(state.replicas) == 3
        ]
        return self._random.choice(targets) if targets else None

    def _has_another_leader(self, target: _Target) -> bool:
        state = self._state_of(target)
        return state is not None and state.leader not in (NO_LEADER, target.leader.node_id)

    def _is_in_sync(self, target: _Target, host: Host) -> bool:
        state = self._state_of(target)
        return state is not None and host.node_id in state.isr

    def _state_of(self, target: _Target) -> PartitionRegistration | None:
        """Returns the partition in the newest image, if any node runs."""
        topic = self._world.newest_image.topics.by_id(target.topic_id)
        return topic.partitions[target.index] if topic is not None else None

    @property
    def _controllers(self) -> list[Host]:
        return [self._world.hosts[node_id] for node_id in self._world.layout.controllers]

    def _controller(self) -> Host | None:
        """Returns the active controller, that of the newest epoch if there are several."""
        active = [host for host in self._controllers if host.node and host.node.quorum.is_leader]
        return max(active, key=_quorum_epoch, default=None)

    def _is_controller(self, host: Host) -> bool:
        return host is self._controller()


def _quorum_epoch(host: Host) -> int:
    return host.node.quorum.epoch if host.node is not None else -1
