"""What a member believes to own, and until when it may believe so.

A member hears from its coordinator now and then. Both ends measure the same two timeouts, but the
member from the moment it *sent* the request, and the coordinator from the later moment it handled
it; so a member that gives up on time gives up first.

- session: after it no coordinator remembers the member, unless it was heard of since;
- rebalance: once asked to give something back, or to join again, the member must have done so.
  An answer that asks for nothing shows that this time has not begun to run: such an answer is
  called calm.

A member whose lease has run out must consider itself fenced. If it then hears that it is still a
member of the same generation, nobody can have been given its partitions, and the lease goes on;
but it takes nothing along into another generation.
"""

from collections.abc import Collection, Iterable

from tests.simulation.clients.client import Client
from tests.simulation.events import Claimed, Leased, Released, TopicPartition


class Holdings:
    """The partitions of one member."""

    def __init__(self, member: Client, group_id: str, session_ms: int, rebalance_ms: int) -> None:
        self.owned: set[TopicPartition] = set()
        self._member = member
        self._group_id = group_id
        self._session_ms = session_ms
        self._rebalance_ms = rebalance_ms
        self._heard_ms = 0
        self._calm_ms = 0

    @property
    def lease_until_ms(self) -> int:
        return min(self._heard_ms + self._session_ms, self._calm_ms + self._rebalance_ms)

    @property
    def has_lease(self) -> bool:
        return self._member.now_ms < self.lease_until_ms

    def renew(self, sent_ms: int, *, is_calm: bool) -> None:
        """The coordinator has answered as to a member what was sent then."""
        before_ms = self.lease_until_ms
        self._heard_ms = max(self._heard_ms, sent_ms)
        if is_calm:
            self._calm_ms = max(self._calm_ms, sent_ms)
        if self.lease_until_ms != before_ms:
            self._member.world.events.tell(Leased(self._member, self.lease_until_ms))

    def take(self, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Those that it did not have before."""
        added = set(partitions) - self.owned
        if added:
            self.owned |= added
            self._member.world.events.tell(Claimed(self._member, self._group_id, added))
        return added

    def give_up(self, partitions: Collection[TopicPartition]) -> None:
        given = self.owned.intersection(partitions)
        if given:
            self.owned -= given
            self._member.world.events.tell(Released(self._member, self._group_id, given))
