"""The partitions that a member owns, and the lease that limits how long.

Both the member and its coordinator measure the same two timeouts. The member starts when it *sent*
a request and the coordinator when it handled it, which is later; so the lease of a member ends
before its timeout at the coordinator.

- session timeout: after it the coordinator removes the member, unless it got a request meanwhile;
- rebalance timeout: a member that must revoke partitions, or join again, has so much time. A
  response that demands nothing (`is_stable`) shows that this timeout has not started.

A member whose lease has expired must consider itself fenced. If a response then shows that it is
still a member of the same generation, its partitions were not assigned to another member, and the
lease continues; but it must not keep partitions in another generation.
"""

from collections.abc import Collection, Iterable

from tests.simulation.coordinator.clients.client import Client
from tests.simulation.coordinator.events import Claimed, Leased, Released, TopicPartition


class OwnedPartitions:
    """The partitions of one member."""

    def __init__(self, member: Client, group_id: str, session_ms: int, rebalance_ms: int) -> None:
        self.partitions: set[TopicPartition] = set()
        self._member = member
        self._group_id = group_id
        self._session_ms = session_ms
        self._rebalance_ms = rebalance_ms
        self._confirmed_ms = 0
        self._stable_ms = 0

    @property
    def lease_until_ms(self) -> int:
        return min(self._confirmed_ms + self._session_ms, self._stable_ms + self._rebalance_ms)

    @property
    def has_lease(self) -> bool:
        return self._member.now_ms < self.lease_until_ms

    def renew(self, sent_ms: int, *, is_stable: bool) -> None:
        """The coordinator has confirmed the membership in response to a request of that time."""
        before_ms = self.lease_until_ms
        self._confirmed_ms = max(self._confirmed_ms, sent_ms)
        if is_stable:
            self._stable_ms = max(self._stable_ms, sent_ms)
        if self.lease_until_ms != before_ms:
            self._member.world.events.record(Leased(self._member, self.lease_until_ms))

    def add(self, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Returns the partitions that are new."""
        added = set(partitions) - self.partitions
        if added:
            self.partitions |= added
            self._member.world.events.record(Claimed(self._member, self._group_id, added))
        return added

    def remove(self, partitions: Collection[TopicPartition]) -> None:
        removed = self.partitions.intersection(partitions)
        if removed:
            self.partitions -= removed
            self._member.world.events.record(Released(self._member, self._group_id, removed))
