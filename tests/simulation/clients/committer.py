"""Clients that have to do with offsets and nothing else."""

from typing import TYPE_CHECKING

from tests.simulation.clients.client import Client
from tests.simulation.clients.work import Identity, commit_offsets, fetch_offsets
from tests.simulation.events import TopicPartition

if TYPE_CHECKING:
    from tests.simulation.world import World


class Committer(Client):
    """Assigns itself its partitions, and commits in the name of a group that nobody joins."""

    def __init__(
        self, world: "World", name: str, group_id: str, partitions: list[TopicPartition]
    ) -> None:
        super().__init__(world, name)
        self.group_id = group_id
        self.partitions = partitions

    async def live(self) -> None:
        identity = Identity(self.group_id)
        found = await fetch_offsets(self, identity, self.partitions)
        positions = {each: max(found.get(each, 0), 0) for each in self.partitions}
        while True:
            await self.sleep(self.between(200, 2_000))
            for each in self.partitions:
                if self.chance(0.5):
                    positions[each] += self.between(1, 5)
            chosen = [each for each in self.partitions if self.chance(0.6)] or self.partitions[:1]
            await commit_offsets(self, identity, {each: positions[each] for each in chosen})


class Auditor(Client):
    """Looks now and then what groups have committed, for the checkers to see."""

    def __init__(self, world: "World", name: str, groups: dict[str, list[TopicPartition]]) -> None:
        super().__init__(world, name)
        self.groups = groups

    async def live(self) -> None:
        while True:
            await self.sleep(self.between(1_500, 6_000))
            await self.look()

    async def look(self) -> None:
        for group_id, partitions in self.groups.items():
            await fetch_offsets(self, Identity(group_id), partitions)
