"""The user data of the sticky assignor: a member's last assignment, as Java writes it.

It has no version number: version 1 ends with the generation, version 0 does not have it.
"""

from __future__ import annotations

from collections.abc import Collection

from barnabas.client.consumer.group.assignors.model import NO_GENERATION, SubscribedMember
from barnabas.client.values import PartitionKey, group_by_topic
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.schema import Message, Struct, field, int32, string


class StickyAssignorUserData(Message, versions="0-1"):
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
