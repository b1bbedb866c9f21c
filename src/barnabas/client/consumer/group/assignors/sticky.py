"""`sticky`: as even as can be, and of those divisions one that moves few partitions (KIP-54).

Even means that no partition could go to a member with at least two fewer than its present one. All
partitions that the same members may have are alike, so topics with the same subscribers make one
pool: a group whose members all subscribe to the same has a single one.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Collection, Iterable

from barnabas.client.consumer.group.assignors.model import (
    NO_GENERATION,
    ClusterTopics,
    GroupAssignment,
    SubscribedMember,
    subscribers_by_topic,
)
from barnabas.client.consumer.group.assignors.sticky_user_data import (
    read_user_data,
    write_user_data,
)
from barnabas.client.values import TopicPartitionTuple


class StickyAssignor:
    """The eager one: members give everything back before they join, and remember it for this."""

    name = "sticky"
    is_cooperative = False

    def user_data(self, owned: Collection[TopicPartitionTuple], generation: int) -> bytes | None:
        return write_user_data(owned, generation) if generation != NO_GENERATION else None

    def assign(
        self, members: Collection[SubscribedMember], topics: ClusterTopics
    ) -> GroupAssignment:
        return assign_sticky(members, topics, [(m, *read_user_data(m)) for m in members])


OwnershipClaim = tuple[SubscribedMember, Collection[TopicPartitionTuple], int]
"""Who says that it has which partitions, since which generation."""


def assign_sticky(
    members: Collection[SubscribedMember], topics: ClusterTopics, claims: Iterable[OwnershipClaim]
) -> GroupAssignment:
    """Give everybody what it rightly claims, the rest to those with least, then even it out."""
    members_of: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for topic, subscribers in subscribers_by_topic(members, topics).items():
        members_of[tuple(member.member_id for member in subscribers)].append(topic)
    loads = dict.fromkeys((member.member_id for member in members), 0)
    keepers = _keepers(claims, topics)
    # Those with the fewest to choose from first: the others can make up for what they get.
    ordered = sorted(members_of.items(), key=lambda item: len(item[0]))
    pools = [_Pool(subscribers, named, topics, keepers, loads) for subscribers, named in ordered]
    for pool in pools:
        pool.hand_out()
    _even_out(pools)
    assignment: GroupAssignment = {member_id: [] for member_id in loads}
    for pool in pools:
        for member_id, partitions in pool.held.items():
            assignment[member_id].extend(partitions)
    for partitions in assignment.values():
        partitions.sort()
    return assignment


def _keepers(
    claims: Iterable[OwnershipClaim], topics: ClusterTopics
) -> dict[TopicPartitionTuple, str]:
    """Who may keep what it has.

    The latest generation is right; of two who claim the same in one, neither is to be trusted.
    """
    latest: dict[TopicPartitionTuple, tuple[int, str | None]] = {}
    for member, partitions, generation in claims:
        for partition in partitions:
            topic, index = partition
            if topic not in member.topics or index >= topics.partitions.get(topic, 0):
                continue
            since, _ = latest.get(partition, (NO_GENERATION - 1, None))
            if generation > since:
                latest[partition] = (generation, member.member_id)
            elif generation == since:
                latest[partition] = (generation, None)
    return {
        partition: member_id
        for partition, (_, member_id) in latest.items()
        if member_id is not None
    }


class _Pool:
    """The partitions that the same members may have.

    Invariant: `loads`, which all pools share, counts what each member holds in any of them.
    """

    def __init__(
        self,
        members: tuple[str, ...],
        topics: Iterable[str],
        known: ClusterTopics,
        keepers: dict[TopicPartitionTuple, str],
        loads: dict[str, int],
    ) -> None:
        self.members = members
        self.held: dict[str, list[TopicPartitionTuple]] = {member_id: [] for member_id in members}
        self._loads = loads
        self._rank = {member_id: rank for rank, member_id in enumerate(members)}
        self._unclaimed: list[TopicPartitionTuple] = []
        for topic in topics:
            for partition in known.of(topic):
                keeper = keepers.get(partition)
                if keeper is None:
                    self._unclaimed.append(partition)
                else:
                    self.held[keeper].append(partition)
                    loads[keeper] += 1

    def hand_out(self) -> None:
        """Give what nobody claims to those who have least."""
        lightest = [(self._loads[each], rank, each) for each, rank in self._rank.items()]
        heapq.heapify(lightest)
        for partition in self._unclaimed:
            load, rank, member_id = lightest[0]
            self._give(member_id, partition)
            heapq.heapreplace(lightest, (load + 1, rank, member_id))

    def even_out(self) -> set[str]:
        """Move partitions while somebody has two more than another; whose load that changed."""
        moved: set[str] = set()
        lightest = [(self._loads[each], rank, each) for each, rank in self._rank.items()]
        heaviest = [(-load, rank, each) for load, rank, each in lightest if self.held[each]]
        heapq.heapify(lightest)
        heapq.heapify(heaviest)
        while heaviest:
            giver, taker = heaviest[0][2], lightest[0][2]
            if self._loads[giver] - self._loads[taker] < 2:
                break
            # What was handed out or moved here last was nobody's before: it goes first.
            self._give(taker, self.held[giver].pop())
            self._loads[giver] -= 1
            moved |= {giver, taker}
            heapq.heapreplace(lightest, (self._loads[taker], self._rank[taker], taker))
            if self.held[giver]:
                heapq.heapreplace(heaviest, (-self._loads[giver], self._rank[giver], giver))
            else:
                heapq.heappop(heaviest)
        return moved

    def _give(self, member_id: str, partition: TopicPartitionTuple) -> None:
        self.held[member_id].append(partition)
        self._loads[member_id] += 1


def _even_out(pools: list[_Pool]) -> None:
    """Until no pool has anything to move: each move makes the loads more even, so it ends."""
    pools_of: dict[str, list[int]] = defaultdict(list)
    for place, pool in enumerate(pools):
        for member_id in pool.members:
            pools_of[member_id].append(place)
    waiting = deque(range(len(pools)))
    is_waiting = [True] * len(pools)
    while waiting:
        place = waiting.popleft()
        is_waiting[place] = False
        for member_id in pools[place].even_out():
            for other in pools_of[member_id]:
                if other != place and not is_waiting[other]:
                    is_waiting[other] = True
                    waiting.append(other)
