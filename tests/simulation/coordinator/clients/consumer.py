"""A member with the consumer protocol (KIP-848), which only sends heartbeats."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.simulation.coordinator.clients.client import COORDINATOR_ERRORS
from tests.simulation.coordinator.clients.member import Member
from tests.simulation.coordinator.clients.offsets import by_topic
from tests.simulation.coordinator.clients.partition_work import Identity, PartitionWork
from tests.simulation.coordinator.events import TopicPartition
from tests.simulation.coordinator.network import Unreachable

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

if TYPE_CHECKING:
    from tests.simulation.coordinator.world import CoordinatorWorld

VERSION = 1
SESSION_MS = 6_000
HEARTBEAT_MS = 1_500
JOINING, LEAVING, LEAVING_TEMPORARILY = 0, -1, -2

REJOIN_ERRORS = frozenset(
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
        world: "CoordinatorWorld",
        name: str,
        group_id: str,
        topics: list[str],
        work: Callable[[Member], PartitionWork],
        instance_id: str | None = None,
    ) -> None:
        super().__init__(world, name, group_id, topics, work, instance_id)
        self.member_id = f"{name}-id"
        self.epoch = JOINING
        self._target: set[TopicPartition] = set()
        self._reported: set[TopicPartition] | None = None
        """The partitions that it last reported; None if it must send a full heartbeat."""
        self._reconciling: asyncio.Task[None] | None = None
        self._must_send = asyncio.Event()

    @property
    def identity(self) -> Identity:
        return Identity(self.group_id, self.member_id, self.epoch, self.instance_id)

    async def run(self) -> None:
        self.work.start()
        while not self.is_leaving:
            await self._heartbeat()
            if self._target != self.owned.partitions and self._is_idle:
                self._reconciling = self.spawn(self._reconcile())
            await self._wait()
        await self.revoke(set(self.owned.partitions))
        is_temporary = self.instance_id is not None and self.chance(0.7)
        await self._send_leave(LEAVING_TEMPORARILY if is_temporary else LEAVING)

    async def _heartbeat(self) -> None:
        sent_ms, epoch = self.now_ms, self.epoch
        owned = set(self.owned.partitions)
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
            response = await self.send_request(request, VERSION)
        except Unreachable:
            self._reported = None
            return
        if response.error_code == ErrorCode.NONE:
            self._reported = owned
            self._on_response(response, sent_ms, owned)
        else:
            self._reported = None
            self._on_error(response.error_code)

    def _on_response(
        self,
        response: ConsumerGroupHeartbeatResponse,
        sent_ms: int,
        owned: set[TopicPartition],
    ) -> None:
        """Applies the response to a heartbeat of a member that owned `owned` when it sent it."""
        assert response.member_epoch >= self.epoch, f"the epoch of {self} goes back"
        self.epoch = response.member_epoch
        if response.assignment is not None:
            self._target = {
                (self.world.topic_name(topic.topic_id), index)
                for topic in response.assignment.topic_partitions
                for index in topic.partitions
            }
        self.owned.renew(sent_ms, is_stable=owned <= self._target)

    def _on_error(self, code: int) -> None:
        if code in REJOIN_ERRORS:
            self._rejoin()
        elif code == ErrorCode.FENCED_INSTANCE_ID:
            self._rejoin()
            self.note("is fenced by another member with its instance id")
            self.is_leaving = True
        else:
            # The previous static member may not have left yet.
            must_wait = code == ErrorCode.UNRELEASED_INSTANCE_ID
            assert must_wait or code in COORDINATOR_ERRORS, f"{self} gets {ErrorCode(code).name}"

    def _rejoin(self) -> None:
        self.lose_all()
        self.epoch = JOINING
        self._target = set()
        self._reported = None

    async def _reconcile(self) -> None:
        """Revokes partitions, then adds the new ones, and sends a heartbeat at once."""
        target = self._target
        revoked = self.owned.partitions - target
        if revoked:
            await self.revoke(revoked)
        if self._target == target:  # else the next round reconciles with the newer target
            self.assign(target)
        self._must_send.set()

    @property
    def _is_idle(self) -> bool:
        return self._reconciling is None or self._reconciling.done()

    async def _wait(self) -> None:
        """Waits until the next heartbeat is due, or must be sent at once."""
        try:
            delay_ms = self.between(HEARTBEAT_MS // 2, HEARTBEAT_MS)
            await asyncio.wait_for(self._must_send.wait(), delay_ms / 1000)
        except TimeoutError:
            pass
        self._must_send.clear()
        await self.sleep(0)

    async def _send_leave(self, epoch: int) -> None:
        if self.epoch == JOINING:
            return
        with suppress(Unreachable):
            await self.send_request(
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
