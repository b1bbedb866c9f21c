"""A member of a consumer group, of either protocol."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.coordinator.clients.client import Client
from tests.simulation.coordinator.clients.owned_partitions import OwnedPartitions
from tests.simulation.coordinator.clients.partition_work import Identity, PartitionWork
from tests.simulation.coordinator.events import TopicPartition

if TYPE_CHECKING:
    from tests.simulation.coordinator.world import CoordinatorWorld

REVOKING_MS = 2_500
"""How long a member may finish its work before it revokes partitions anyway."""


class Member(Client):
    """Owns partitions, processes them, and revokes them."""

    session_ms: int
    rebalance_ms: int

    def __init__(
        self,
        world: "CoordinatorWorld",
        name: str,
        group_id: str,
        topics: list[str],
        work: Callable[["Member"], PartitionWork],
        instance_id: str | None,
    ) -> None:
        super().__init__(world, name)
        self.group_id = group_id
        self.topics = topics
        self.instance_id = instance_id
        self.member_id = ""
        self.is_leaving = False
        self.owned = OwnedPartitions(self, group_id, self.session_ms, self.rebalance_ms)
        self.work = work(self)

    def describe(self) -> str:
        static = f" as {self.instance_id}" if self.instance_id is not None else ""
        return f"{type(self).__name__} of {self.group_id}{static}"

    @property
    def identity(self) -> Identity:
        """The identity with which it commits."""
        raise NotImplementedError

    def leave(self) -> None:
        """Stops as soon as possible, and leaves the group."""
        self.is_leaving = True
        self.note("is going to leave the group")

    def assign(self, partitions: set[TopicPartition]) -> None:
        added = self.owned.add(partitions)
        self.work.assigned(sorted(added))

    async def revoke(self, partitions: set[TopicPartition]) -> None:
        """Finishes the work on partitions, then releases them."""
        if partitions:
            revoking = self.spawn(self.work.revoke(sorted(partitions)))
            until_ms = self.now_ms + REVOKING_MS
            while not revoking.done() and self.now_ms < until_ms:
                await self.sleep(50)
            self.work.lost(sorted(partitions))
            self.owned.remove(partitions)

    def lose_all(self) -> None:
        """The coordinator has removed or fenced the member."""
        owned = set(self.owned.partitions)
        self.work.lost(sorted(owned))
        self.owned.remove(owned)
