"""A member of a group, of either protocol."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.simulation.clients.client import Client
from tests.simulation.clients.holdings import Holdings
from tests.simulation.clients.work import Identity, Work
from tests.simulation.events import TopicPartition

if TYPE_CHECKING:
    from tests.simulation.world import World

REVOKING_MS = 2_500
"""How long a member finishes its work before it gives partitions back regardless."""


class Member(Client):
    """Owns partitions, works on them, gives them back."""

    session_ms: int
    rebalance_ms: int

    def __init__(
        self,
        world: "World",
        name: str,
        group_id: str,
        topics: list[str],
        work: Callable[["Member"], Work],
        instance_id: str | None,
    ) -> None:
        super().__init__(world, name)
        self.group_id = group_id
        self.topics = topics
        self.instance_id = instance_id
        self.member_id = ""
        self.is_leaving = False
        self.holdings = Holdings(self, group_id, self.session_ms, self.rebalance_ms)
        self.work = work(self)

    def describe(self) -> str:
        static = f" as {self.instance_id}" if self.instance_id is not None else ""
        return f"{type(self).__name__} of {self.group_id}{static}"

    @property
    def identity(self) -> Identity:
        """By what it commits."""
        raise NotImplementedError

    def leave(self) -> None:
        """Stop as soon as possible, and say goodbye."""
        self.is_leaving = True
        self.note("is going to leave")

    def adopt(self, partitions: set[TopicPartition]) -> None:
        added = self.holdings.take(partitions)
        self.work.assigned(sorted(added))

    async def give_back(self, partitions: set[TopicPartition]) -> None:
        """Finish with them, then let go."""
        if partitions:
            revoking = self.spawn(self.work.revoke(sorted(partitions)))
            until_ms = self.now_ms + REVOKING_MS
            while not revoking.done() and self.now_ms < until_ms:
                await self.sleep(50)
            self.work.lost(sorted(partitions))
            self.holdings.give_up(partitions)

    def lose_all(self) -> None:
        """The coordinator does not know it, or not as it was."""
        owned = set(self.holdings.owned)
        self.work.lost(sorted(owned))
        self.holdings.give_up(owned)
