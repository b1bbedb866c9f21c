"""What a member does with its partitions: read on, and commit how far it has come."""

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

from tests.simulation.clients import offsets
from tests.simulation.clients.client import Client
from tests.simulation.events import TopicPartition
from tests.simulation.network import Unreachable

from barnabas.wire.errors import ErrorCode

if TYPE_CHECKING:
    from tests.simulation.clients.member import Member


class Identity(NamedTuple):
    """By what a group knows who commits."""

    group_id: str
    member_id: str = ""
    generation: int = -1
    instance_id: str | None = None


class Work:
    """Keeps the position in each partition that is its to read."""

    def __init__(self, member: "Member") -> None:
        self.member = member
        self.positions: dict[TopicPartition, int | None] = {}
        """None while it is not known yet."""

    def start(self) -> None:
        self.member.spawn(self.go_on())

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self.positions[partition] = None

    async def revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Finish with them; there is not much time."""
        self.lost(partitions)

    def lost(self, partitions: Iterable[TopicPartition]) -> None:
        """They are another's by now."""
        for partition in partitions:
            self.positions.pop(partition, None)

    async def go_on(self) -> None:
        raise NotImplementedError

    async def find_positions(self) -> None:
        """Ask where to begin with the partitions that are new."""
        wanted = [each for each, position in self.positions.items() if position is None]
        if not wanted:
            return
        found = await fetch_offsets(self.member, self.member.identity, wanted)
        for partition, position in found.items():
            if self.positions.get(partition, 0) is None:
                self.positions[partition] = max(position, 0)


class Reading(Work):
    """Reads and commits, as most consumers do."""

    async def go_on(self) -> None:
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
        """Now; sometimes once more much later, as a client does that has it in some queue."""
        member = self.member
        known = {each: self.positions.get(each) for each in partitions}
        positions = {each: position for each, position in known.items() if position is not None}
        if positions:
            if member.chance(0.1):
                member.spawn(self._commit_late(member.identity, positions))
            await commit_offsets(member, member.identity, positions)

    async def _commit_late(self, identity: Identity, positions: dict[TopicPartition, int]) -> None:
        """Much may have happened since, but who commits what stays as it was."""
        await self.member.sleep(self.member.between(500, 8_000))
        await commit_offsets(self.member, identity, positions)


async def commit_offsets(
    client: Client,
    identity: Identity,
    positions: dict[TopicPartition, int],
) -> None:
    """Once; who reads on commits again soon. What was given up may still arrive, and then what was
    committed before counts again, if its sender may still commit."""
    try:
        request = offsets.commit_request(identity, positions, tag=client.world.next_tag(client))
        await client.ask(request, offsets.COMMIT_VERSION, haunts=True)
    except Unreachable:
        pass


async def fetch_offsets(
    client: Client, identity: Identity, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """What is committed, -1 where nothing is; those are left out that must be asked for again."""
    request = offsets.fetch_request(identity, partitions)
    try:
        response = await client.ask(request, offsets.FETCH_VERSION)
    except Unreachable:
        return {}
    group = response.groups[0]
    if group.error_code != ErrorCode.NONE:
        return {}
    return {
        (topic.name, each.partition_index): each.committed_offset
        for topic in group.topics
        for each in topic.partitions
        if each.error_code == ErrorCode.NONE
    }
