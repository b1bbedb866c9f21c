"""`cooperative-sticky`: sticky, for members that keep their partitions while they join (KIP-429).

A partition that has to move is given to nobody at first: its owner gives it up when it sees that,
and joins again, and only then the new owner is given it.
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
from barnabas.client.values import TopicPartitionTuple

_GENERATION = Struct(">i")


class CooperativeStickyAssignor:
    """Two rebalances where partitions move, none that stops those which do not."""

    name = "cooperative-sticky"
    is_cooperative = True

    def user_data(self, owned: Collection[TopicPartitionTuple], generation: int) -> bytes:
        """The generation, for leaders that look for it here: subscriptions had no room for it."""
        return _GENERATION.pack(generation)

    def assign(
        self, members: Collection[SubscribedMember], topics: ClusterTopics
    ) -> GroupAssignment:
        claims = [(member, member.owned, _generation(member)) for member in members]
        assignment = assign_sticky(members, topics, claims)
        owned = {member.member_id: member.owned for member in members}
        taken = frozenset().union(*owned.values())
        return {
            member_id: [
                each for each in partitions if each in owned[member_id] or each not in taken
            ]
            for member_id, partitions in assignment.items()
        }


def _generation(member: SubscribedMember) -> int:
    """Of the subscription itself, or from its user data if that is what Java puts there."""
    if member.generation != NO_GENERATION or len(member.user_data or b"") != _GENERATION.size:
        return member.generation
    assert member.user_data is not None
    generation: int = _GENERATION.unpack(member.user_data)[0]
    return generation
