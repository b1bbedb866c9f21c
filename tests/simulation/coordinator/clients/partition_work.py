"""The work of a member on its partitions: it consumes them and commits its positions."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.coordinator.clients import offsets
from tests.simulation.coordinator.clients.client import Client
from tests.simulation.coordinator.events import TopicPartition
from tests.simulation.coordinator.network import Unreachable

from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from tests.simulation.coordinator.clients.member import Member


class Identity(NamedTuple):
    """The identity of a client that commits offsets of a group."""

    group_id: str
    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None


class PartitionWork:
    """Keeps the positions in the partitions of the member."""

    def __init__(self, member: "Member") -> None:
        self.member = member
        self.positions: dict[TopicPartition, int | None] = {}
        """None until the committed offset is fetched."""

    def start(self) -> None:
        self.member.spawn(self.run())

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self.positions[partition] = None

    async def revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Finishes the work on partitions."""
        self.lost(partitions)

    def lost(self, partitions: Iterable[TopicPartition]) -> None:
        """Other members own the partitions by now."""
        for partition in partitions:
            self.positions.pop(partition, None)

    async def run(self) -> None:
        raise NotImplementedError

    async def find_positions(self) -> None:
        """Fetches the committed offsets of new partitions."""
        new = [partition for partition, position in self.positions.items() if position is None]
        if not new:
            return
        offsets = await fetch_offsets(self.member, self.member.identity, new)
        for partition, position in offsets.items():
            if self.positions.get(partition, 0) is None:
                self.positions[partition] = max(position, 0)


class Consuming(PartitionWork):
    """Consumes and commits, as most consumers do."""

    async def run(self) -> None:
        member = self.member
        while True:
            await member.sleep(member.between(100, 1_500))
            await self.find_positions()
            for partition, position in self.positions.items():
                if position is not None:
                    self.positions[partition] = position + member.between(0, 5)
            if member.chance(0.7):
                await self.commit(self.positions)

    async def revoke(self, partitions: Collection[TopicPartition]) -> None:
        if self.member.chance(0.5):
            await self.commit(partitions)
        self.lost(partitions)

    async def commit(self, partitions: Iterable[TopicPartition]) -> None:
        """Commits now, and sometimes once more much later, as if the request was queued."""
        member = self.member
        positions = {
            partition: position
            for partition in partitions
            if (position := self.positions.get(partition)) is not None
        }
        if positions:
            if member.chance(0.1):
                member.spawn(self._commit_late(member.identity, positions))
            await commit_offsets(member, member.identity, positions)

    async def _commit_late(self, identity: Identity, positions: dict[TopicPartition, int]) -> None:
        """Commits the earlier positions with the earlier identity."""
        await self.member.sleep(self.member.between(500, 8_000))
        await commit_offsets(self.member, identity, positions)


async def commit_offsets(
    client: Client,
    identity: Identity,
    positions: dict[TopicPartition, int],
) -> None:
    """Commits once, without retries. An abandoned request may still arrive, and move the committed
    offset back if its sender may still commit."""
    try:
        request = offsets.commit_request(identity, positions, tag=client.world.next_tag(client))
        await client.send_request(request, offsets.COMMIT_VERSION, may_arrive_late=True)
    except Unreachable:
        pass


async def fetch_offsets(
    client: Client, identity: Identity, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """Returns the committed offsets, or -1. Partitions whose fetch must be retried are missing."""
    request = offsets.fetch_request(identity, partitions)
    try:
        response = await client.send_request(request, offsets.FETCH_VERSION)
    except Unreachable:
        return {}
    group = response.groups[0]
    if group.error_code != ErrorCode.NONE:
        return {}
    return {
        (topic.name, partition.partition_index): partition.committed_offset
        for topic in group.topics
        for partition in topic.partitions
        if partition.error_code == ErrorCode.NONE
    }
