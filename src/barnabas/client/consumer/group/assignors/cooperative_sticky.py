"""`cooperative-sticky`: sticky, for members that keep their partitions while they join (KIP-429).

A partition that has to move is assigned to no member at first: its owner revokes it and joins
again, and then the partition is assigned to the new owner.
"""

from collections.abc import Collection
from struct import Struct

from barnabas.client.consumer.group.assignors.model import (
    NO_GENERATION,
    ClusterTopics,
    GroupAssignment,
    SubscribedMember,
)
from barnabas.client.consumer.group.assignors.sticky import assign_sticky
from barnabas.client.values import PartitionKey

_GENERATION = Struct(">i")


class CooperativeStickyAssignor:
    """Partitions that move take two rebalances; the others are not interrupted."""

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


def _generation(member: SubscribedMember) -> int:
    """Returns the generation of the subscription, or of its user data, as Java writes it."""
    if member.generation != NO_GENERATION or len(member.user_data or b"") != _GENERATION.size:
        return member.generation
    assert member.user_data is not None
    generation: int = _GENERATION.unpack(member.user_data)[0]
    return generation
