"""Subscriptions and assignments inside JoinGroup and SyncGroup (protocol type "consumer").

Both are a message with its version as an int16 before it. A newer version begins with the same
fields as ours. Assignments are written as version 0: later versions are the same.
"""

from collections.abc import Iterable
from struct import Struct

from barnabas.client.consumer.group.assignors import SubscribedMember
from barnabas.client.values import PartitionKey, group_by_topic
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.messages.classic_groups import JoinGroupResponseMember
from barnabas.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)

_VERSION_PREFIX = Struct(">h")
_MAX_VERSION = ConsumerProtocolSubscription.VERSIONS.max
_ASSIGNMENT_VERSION = 0


def write_subscription(member: SubscribedMember, user_data: bytes | None) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=sorted(member.topics),
        user_data=user_data,
        owned_partitions=_group_partitions(member.owned),
        generation_id=member.generation,
        rack_id=member.rack,
    )
    return _VERSION_PREFIX.pack(_MAX_VERSION) + message.write(_MAX_VERSION)


def read_subscription(member: JoinGroupResponseMember) -> SubscribedMember:
    """Returns a member of the group. Raises ProtocolViolation if its metadata is unreadable."""
    version = _version(member.metadata)
    message, _ = ConsumerProtocolSubscription.reader(version)(member.metadata, _VERSION_PREFIX.size)
    return SubscribedMember(
        member.member_id,
        frozenset(message.topics),
        member.group_instance_id,
        frozenset(_flatten(message.owned_partitions)),
        message.generation_id,
        message.rack_id,
        None if message.user_data is None else bytes(message.user_data),
    )


def write_assignment(partitions: Iterable[PartitionKey]) -> bytes:
    message = ConsumerProtocolAssignment(assigned_partitions=_group_partitions(partitions))
    return _VERSION_PREFIX.pack(_ASSIGNMENT_VERSION) + message.write(_ASSIGNMENT_VERSION)


def read_assignment(data: bytes) -> frozenset[PartitionKey]:
    """Returns the assigned partitions; none if the assignment is empty."""
    if not data:
        return frozenset()
    version = _version(data)
    message, _ = ConsumerProtocolAssignment.reader(version)(data, _VERSION_PREFIX.size)
    return frozenset(_flatten(message.assigned_partitions))


def _version(data: bytes) -> int:
    if len(data) < _VERSION_PREFIX.size or (version := _VERSION_PREFIX.unpack_from(data)[0]) < 0:
        raise ProtocolViolation("a message of the consumer protocol begins with its version")
    return int(min(version, _MAX_VERSION))


def _group_partitions(partitions: Iterable[PartitionKey]) -> list[TopicPartition]:
    return [
        TopicPartition(topic=topic, partitions=indexes)
        for topic, indexes in group_by_topic(sorted(partitions)).items()
    ]


def _flatten(topics: Iterable[TopicPartition]) -> Iterable[PartitionKey]:
    return ((entry.topic, index) for entry in topics for index in entry.partitions)
