"""What members of a classic group tell each other inside JoinGroup and SyncGroup.

Both are a message of the consumer protocol behind its version as an int16. A version newer than
ours begins with the same fields. Assignments are written as v0, which all later ones equal.
"""

from collections.abc import Iterable
from struct import Struct

from barnabas.client.consumer.group.assignors import SubscribedMember
from barnabas.client.consumer.group.partitions import by_topic
from barnabas.client.values import TopicPartitionTuple
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from barnabas.wire.messages.join_group import JoinGroupResponseMember

_VERSION = Struct(">h")
_NEWEST = ConsumerProtocolSubscription.VERSIONS.max
_ASSIGNMENT_VERSION = 0


def write_subscription(member: SubscribedMember, user_data: bytes | None) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=sorted(member.topics),
        user_data=user_data,
        owned_partitions=_grouped(member.owned),
        generation_id=member.generation,
        rack_id=member.rack,
    )
    return _VERSION.pack(_NEWEST) + message.write(_NEWEST)


def read_subscription(member: JoinGroupResponseMember) -> SubscribedMember:
    """The member; ProtocolViolation if what it says cannot be read."""
    version = _version(member.metadata)
    message, _ = ConsumerProtocolSubscription.reader(version)(member.metadata, _VERSION.size)
    return SubscribedMember(
        member.member_id,
        frozenset(message.topics),
        member.group_instance_id,
        frozenset(_flat(message.owned_partitions)),
        message.generation_id,
        message.rack_id,
        None if message.user_data is None else bytes(message.user_data),
    )


def write_assignment(partitions: Iterable[TopicPartitionTuple]) -> bytes:
    message = ConsumerProtocolAssignment(assigned_partitions=_grouped(partitions))
    return _VERSION.pack(_ASSIGNMENT_VERSION) + message.write(_ASSIGNMENT_VERSION)


def read_assignment(embedded: bytes) -> frozenset[TopicPartitionTuple]:
    """Of nothing at all there is nothing assigned."""
    if not embedded:
        return frozenset()
    version = _version(embedded)
    message, _ = ConsumerProtocolAssignment.reader(version)(embedded, _VERSION.size)
    return frozenset(_flat(message.assigned_partitions))


def _version(embedded: bytes) -> int:
    if len(embedded) < _VERSION.size or (version := _VERSION.unpack_from(embedded)[0]) < 0:
        raise ProtocolViolation("a message of the consumer protocol begins with its version")
    return int(min(version, _NEWEST))


def _grouped(partitions: Iterable[TopicPartitionTuple]) -> list[TopicPartition]:
    return [
        TopicPartition(topic=topic, partitions=indexes)
        for topic, indexes in by_topic(partitions).items()
    ]


def _flat(topics: Iterable[TopicPartition]) -> Iterable[TopicPartitionTuple]:
    return ((each.topic, index) for each in topics for index in each.partitions)
