"""A member by the consumer protocol (KIP-848): one heartbeat that says and hears everything."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.simulation.clients.client import COORDINATOR_ERRORS
from tests.simulation.clients.member import Member
from tests.simulation.clients.offsets import by_topic
from tests.simulation.clients.work import Identity, Work
from tests.simulation.events import TopicPartition
from tests.simulation.network import Unreachable

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from tests.simulation.world import World

VERSION = 1
SESSION_MS = 6_000
HEARTBEAT_MS = 1_500
JOINING, LEAVING, LEAVING_FOR_A_WHILE = 0, -1, -2

STARTS_ANEW = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
    }
)


class ConsumerMember(Member):
    session_ms = SESSION_MS
    rebalance_ms = 7_000

    def __init__(
        self,
        world: "World",
        name: str,
        group_id: str,
        topics: list[str],
        work: Callable[[Member], Work],
        instance_id: str | None = None,
    ) -> None:
        super().__init__(world, name, group_id, topics, work, instance_id)
        self.member_id = f"{name}-id"
        self.epoch = JOINING
        self._target: set[TopicPartition] = set()
        self._reported: set[TopicPartition] | None = None
        """What the coordinator knows it to own; None if it must be told everything."""
        self._reconciling: asyncio.Task[None] | None = None
        self._has_news = asyncio.Event()

    @property
    def identity(self) -> Identity:
        return Identity(self.group_id, self.member_id, self.epoch, self.instance_id)

    async def live(self) -> None:
        self.work.start()
        while not self.is_leaving:
            await self._heartbeat()
            if self._target != self.holdings.owned and self._is_idle:
                self._reconciling = self.spawn(self._reconcile())
            await self._wait()
        await self.give_back(set(self.holdings.owned))
        stays = self.instance_id is not None and self.chance(0.7)
        await self._say_goodbye(LEAVING_FOR_A_WHILE if stays else LEAVING)

    async def _heartbeat(self) -> None:
        sent_ms, epoch = self.now_ms, self.epoch
        owned = set(self.holdings.owned)
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance_id,
        )
        if self._reported is None:
            request.rebalance_timeout_ms = self.rebalance_ms
            request.subscribed_topic_names = self.topics
        if self._reported != owned:
            request.topic_partitions = self._as_wire(owned)
        try:
            response = await self.ask(request, VERSION)
        except Unreachable:
            self._reported = None
            return
        if response.error_code == ErrorCode.NONE:
            self._reported = owned
            self._hear(response, sent_ms, owned)
        else:
            self._reported = None
            self._hear_error(response.error_code)

    def _hear(
        self,
        response: ConsumerGroupHeartbeatResponse,
        sent_ms: int,
        owned: set[TopicPartition],
    ) -> None:
        """The coordinator has answered to a member that owned that much when it asked."""
        assert response.member_epoch >= self.epoch, f"the epoch of {self} goes back"
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self._target = {
                (self.world.topic_name(each.topic_id), index)
                for each in response.assignment.topic_partitions
                for index in each.partitions
            }
        self.holdings.renew(sent_ms, is_calm=owned <= self._target)

    def _hear_error(self, code: int) -> None:
        if code in STARTS_ANEW:
            self._start_anew()
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self._start_anew()
            self.note("is fenced by its double")
            self.is_leaving = True
        else:
            # A static member's predecessor may not have left yet.
            waits = code == ErrorCode.UNRELEASED_INSTANCE_ID
            assert waits or code in COORDINATOR_ERRORS, f"{self} is told {ErrorCode(code).name}"

    def _start_anew(self) -> None:
        self.lose_all()
        self.epoch = JOINING
        self._target = set()
        self._reported = None

    async def _reconcile(self) -> None:
        """Give back first, then take, and tell the coordinator at once."""
        target = self._target
        revoked = self.holdings.owned - target
        if revoked:
            await self.give_back(revoked)
        if self._target == target:  # else there is news, which the next round looks at
            self.adopt(target)
        self._has_news.set()

    @property
    def _is_idle(self) -> bool:
        return self._reconciling is None or self._reconciling.done()

    async def _wait(self) -> None:
        """For the next heartbeat's time, or until there is something to tell."""
        try:
            delay_ms = self.between(HEARTBEAT_MS // 2, HEARTBEAT_MS)
            await asyncio.wait_for(self._has_news.wait(), delay_ms / 1000)
        except TimeoutError:
            pass
        self._has_news.clear()
        await self.sleep(0)

    async def _say_goodbye(self, epoch: int) -> None:
        if self.epoch == JOINING:
            return
        with suppress(Unreachable):
            await self.ask(
                ConsumerGroupHeartbeatRequest(
                    group_id=self.group_id,
                    member_id=self.member_id,
                    member_epoch=epoch,
                    instance_id=self.instance_id,
                ),
                VERSION,
            )

    def _as_wire(self, partitions: set[TopicPartition]) -> list[TopicPartitions]:
        return [
            TopicPartitions(topic_id=self.world.topic_id(topic), partitions=indexes)
            for topic, indexes in by_topic(partitions).items()
        ]
