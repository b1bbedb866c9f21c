"""`sticky` (KIP-54) and `cooperative-sticky`: balanced assignments that move few partitions.

Balanced means that no partition could move to a member with at least two fewer partitions. All
partitions that the same members may have are interchangeable, so topics with the same subscribers
are one pool: a group whose members have the same subscription has a single pool.
"""

from __future__ import annotations

import heapq
import struct
from collections import defaultdict, deque
from collections.abc import Collection, Iterable

from barnabas.client.consumer.group.assignors.model import (
    NO_GENERATION,
    ClusterTopics,
    GroupAssignment,
    SubscribedMember,
    subscribers_by_topic,
)
from barnabas.client.values import PartitionKey, group_by_topic
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.schema import Message, Struct, field, int32, string

_GENERATION = struct.Struct(">i")

OwnershipClaim = tuple[SubscribedMember, Collection[PartitionKey], int]
"""A member, the partitions that it claims to own, and their generation."""


class StickyAssignor:
    """The eager variant: members revoke all partitions and send them as user data."""

    name = "sticky"
    is_cooperative = False

    def user_data(self, owned: Collection[PartitionKey], generation: int) -> bytes | None:
        return write_user_data(owned, generation) if generation != NO_GENERATION else None

    def assign(
        self, members: Collection[SubscribedMember], topics: ClusterTopics
    ) -> GroupAssignment:
        return assign_sticky(members, topics, [(m, *read_user_data(m)) for m in members])


class CooperativeStickyAssignor:
    """The variant for members that keep their partitions while they join (KIP-429).

    A partition that has to move is assigned to no member at first: its owner revokes it and joins
    again, and then the partition is assigned to the new owner. The others are not interrupted.
    """

    name = "cooperative-sticky"
    is_cooperative = True

    def user_data(self, owned: Collection[PartitionKey], generation: int) -> bytes:
        """Returns the generation, for leaders that read it from here (older subscriptions)."""
        return _GENERATION.pack(generation)

    def assign(
        self, members: Collection[SubscribedMember], topics: ClusterTopics
    ) -> GroupAssignment:
        claims = [(member, member.owned, _generation(member)) for member in members]
        assignment = assign_sticky(members, topics, claims)
        owned = {member.member_id: member.owned for member in members}
        owned_by_any = frozenset().union(*owned.values())
        return {
            member_id: [
                partition
                for partition in partitions
                if partition in owned[member_id] or partition not in owned_by_any
            ]
            for member_id, partitions in assignment.items()
        }


def assign_sticky(
    members: Collection[SubscribedMember], topics: ClusterTopics, claims: Iterable[OwnershipClaim]
) -> GroupAssignment:
    """Keeps valid claims, assigns the rest to the members with fewest, then balances."""
    topics_by_members: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for topic, subscribers in subscribers_by_topic(members, topics).items():
        topics_by_members[tuple(member.member_id for member in subscribers)].append(topic)
    loads = dict.fromkeys((member.member_id for member in members), 0)
    owners = _rightful_owners(claims, topics)
    # Pools with the fewest members first: larger pools can balance what they get.
    ordered = sorted(topics_by_members.items(), key=lambda item: len(item[0]))
    pools = [_Pool(subscribers, named, topics, owners, loads) for subscribers, named in ordered]
    for pool in pools:
        pool.assign_unowned()
    _balance(pools)
    assignment: GroupAssignment = {member_id: [] for member_id in loads}
    for pool in pools:
        for member_id, partitions in pool.held.items():
            assignment[member_id].extend(partitions)
    for partitions in assignment.values():
        partitions.sort()
    return assignment


def _rightful_owners(
    claims: Iterable[OwnershipClaim], topics: ClusterTopics
) -> dict[PartitionKey, str]:
    """Returns the members that keep their partitions.

    The claim of the latest generation wins; two claims of one generation are both void.
    """
    latest: dict[PartitionKey, tuple[int, str | None]] = {}
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

    Invariant: `loads`, which all pools share, counts the partitions of a member in all pools.
    """

    def __init__(
        self,
        members: tuple[str, ...],
        topics: Iterable[str],
        cluster: ClusterTopics,
        owners: dict[PartitionKey, str],
        loads: dict[str, int],
    ) -> None:
        self.members = members
        self.held: dict[str, list[PartitionKey]] = {member_id: [] for member_id in members}
        self._loads = loads
        self._order = {member_id: rank for rank, member_id in enumerate(members)}
        self._unowned: list[PartitionKey] = []
        for topic in topics:
            for partition in cluster.of(topic):
                owner = owners.get(partition)
                if owner is None:
                    self._unowned.append(partition)
                else:
                    self.held[owner].append(partition)
                    loads[owner] += 1

    def assign_unowned(self) -> None:
        """Assigns partitions without an owner to the members with the fewest partitions."""
        lightest = [
            (self._loads[member_id], rank, member_id) for member_id, rank in self._order.items()
        ]
        heapq.heapify(lightest)
        for partition in self._unowned:
            load, rank, member_id = lightest[0]
            self._give(member_id, partition)
            heapq.heapreplace(lightest, (load + 1, rank, member_id))

    def balance(self) -> set[str]:
        """Moves partitions while a member has two more than another; returns both members."""
        moved: set[str] = set()
        lightest = [
            (self._loads[member_id], rank, member_id) for member_id, rank in self._order.items()
        ]
        heaviest = [
            (-load, rank, member_id) for load, rank, member_id in lightest if self.held[member_id]
        ]
        heapq.heapify(lightest)
        heapq.heapify(heaviest)
        while heaviest:
            giver, taker = heaviest[0][2], lightest[0][2]
            if self._loads[giver] - self._loads[taker] < 2:
                break
            # The partitions added last had no owner before: they move first.
            self._give(taker, self.held[giver].pop())
            self._loads[giver] -= 1
            moved |= {giver, taker}
            heapq.heapreplace(lightest, (self._loads[taker], self._order[taker], taker))
            if self.held[giver]:
                heapq.heapreplace(heaviest, (-self._loads[giver], self._order[giver], giver))
            else:
                heapq.heappop(heaviest)
        return moved

    def _give(self, member_id: str, partition: PartitionKey) -> None:
        self.held[member_id].append(partition)
        self._loads[member_id] += 1


def _balance(pools: list[_Pool]) -> None:
    """Balances pools until none can move a partition; it ends, as every move evens loads."""
    pools_of: dict[str, list[int]] = defaultdict(list)
    for index, pool in enumerate(pools):
        for member_id in pool.members:
            pools_of[member_id].append(index)
    waiting = deque(range(len(pools)))
    is_waiting = [True] * len(pools)
    while waiting:
        index = waiting.popleft()
        is_waiting[index] = False
        for member_id in pools[index].balance():
            for other in pools_of[member_id]:
                if other != index and not is_waiting[other]:
                    is_waiting[other] = True
                    waiting.append(other)


class StickyAssignorUserData(Message, versions="0-1", flexible="none"):
    """A member's last assignment, as Java writes it, without a version number.

    Version 1 ends with the generation, version 0 does not have it.
    """

    previous_assignment: list[TopicAssignment] = field()
    generation: int32 = field("1+", default=NO_GENERATION, ignorable=True)


class TopicAssignment(Struct):
    topic: string = field()
    partitions: list[int32] = field()


def write_user_data(owned: Collection[PartitionKey], generation: int) -> bytes:
    previous = [
        TopicAssignment(topic=topic, partitions=indexes)
        for topic, indexes in group_by_topic(sorted(owned)).items()
    ]
    return StickyAssignorUserData(previous_assignment=previous, generation=generation).write(1)


def read_user_data(member: SubscribedMember) -> tuple[Collection[PartitionKey], int]:
    """Returns the last partitions and generation; the owned ones without user data."""
    if member.user_data:
        for version in (1, 0):
            try:
                data = StickyAssignorUserData.read_exactly(member.user_data, version)
            except ProtocolViolation:
                continue
            previous = [
                (entry.topic, index)
                for entry in data.previous_assignment
                for index in entry.partitions
            ]
            return previous, data.generation
    return member.owned, member.generation


def _generation(member: SubscribedMember) -> int:
    """Returns the generation of the subscription, or of its user data, as Java writes it."""
    if member.generation != NO_GENERATION or len(member.user_data or b"") != _GENERATION.size:
        return member.generation
    assert member.user_data is not None
    generation: int = _GENERATION.unpack(member.user_data)[0]
    return generation
