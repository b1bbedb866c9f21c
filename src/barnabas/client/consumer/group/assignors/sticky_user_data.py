"""What a member of a sticky group remembers of its last assignment, as Java writes it.

It travels in the user data of a subscription, without a number that says which version it is: v1
ends with the generation, v0 does not have one.
"""

from __future__ import annotations

from collections.abc import Collection

from barnabas.client.consumer.group.assignors.model import NO_GENERATION, SubscribedMember
from barnabas.client.consumer.group.partitions import by_topic
from barnabas.client.values import TopicPartitionTuple
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.schema import Message, Struct, field, int32, string


class StickyAssignorUserData(Message, versions="0-1"):
    previous_assignment: list[TopicAssignment] = field()
    generation: int32 = field("1+", default=NO_GENERATION, ignorable=True)


class TopicAssignment(Struct):
    topic: string = field()
    partitions: list[int32] = field()


def write_user_data(owned: Collection[TopicPartitionTuple], generation: int) -> bytes:
    previous = [
        TopicAssignment(topic=topic, partitions=indexes)
        for topic, indexes in by_topic(owned).items()
    ]
    return StickyAssignorUserData(previous_assignment=previous, generation=generation).write(1)


def read_user_data(member: SubscribedMember) -> tuple[Collection[TopicPartitionTuple], int]:
    """What the member had, and since when; what it says that it owns, if it remembers nothing."""
    if member.user_data:
        for version in (1, 0):
            try:
                memory = StickyAssignorUserData.read_exactly(member.user_data, version)
            except ProtocolViolation:
                continue
            previous = [
                (each.topic, index)
                for each in memory.previous_assignment
                for index in each.partitions
            ]
            return previous, memory.generation
    return member.owned, member.generation
