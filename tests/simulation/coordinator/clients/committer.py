"""Clients that only commit or fetch offsets."""

from typing import TYPE_CHECKING

from tests.simulation.coordinator.clients.client import Client
from tests.simulation.coordinator.clients.partition_work import (
    Identity,
    commit_offsets,
    fetch_offsets,
)
from tests.simulation.coordinator.events import TopicPartition

if TYPE_CHECKING:
    from tests.simulation.coordinator.world import CoordinatorWorld


class Committer(Client):
    """Commits offsets of a group without members."""

    def __init__(
        self, world: "CoordinatorWorld", name: str, group_id: str, partitions: list[TopicPartition]
    ) -> None:
        super().__init__(world, name)
        self.group_id = group_id
        self.partitions = partitions

    async def run(self) -> None:
        identity = Identity(self.group_id)
        offsets = await fetch_offsets(self, identity, self.partitions)
        positions = {partition: max(offsets.get(partition, 0), 0) for partition in self.partitions}
        while True:
            await self.sleep(self.between(200, 2_000))
            for partition in self.partitions:
                if self.chance(0.5):
                    positions[partition] += self.between(1, 5)
            some = [
                partition for partition in self.partitions if self.chance(0.6)
            ] or self.partitions[:1]
            await commit_offsets(
                self, identity, {partition: positions[partition] for partition in some}
            )


class Auditor(Client):
    """Fetches the committed offsets of groups from time to time, for the checkers."""

    def __init__(
        self, world: "CoordinatorWorld", name: str, groups: dict[str, list[TopicPartition]]
    ) -> None:
        super().__init__(world, name)
        self.groups = groups

    async def run(self) -> None:
        while True:
            await self.sleep(self.between(1_500, 6_000))
            await self.fetch_all()

    async def fetch_all(self) -> None:
        for group_id, partitions in self.groups.items():
            await fetch_offsets(self, Identity(group_id), partitions)
