"""The assignors of the leader of a classic group."""

from collections.abc import Mapping
from struct import Struct
from typing import NamedTuple

from tests.simulation.coordinator.clients.offsets import by_topic
from tests.simulation.coordinator.events import TopicPartition

from barnabas.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from barnabas.wire.messages.consumer_protocol import TopicPartition as WireTopicPartition

_VERSION = Struct(">h")
VERSION = 3

EAGER = "range"
COOPERATIVE = "cooperative-sticky"

Assignments = dict[str, set[TopicPartition]]


class Subscription(NamedTuple):
    """The subscription of a member."""

    topics: list[str]
    owned: set[TopicPartition]
    generation: int


def assign_eagerly(
    members: Mapping[str, Subscription], partitions: list[TopicPartition]
) -> Assignments:
    """Assigns all partitions from scratch, because all members have revoked theirs."""
    assigned: Assignments = {member_id: set() for member_id in members}
    names = sorted(members)
    for number, partition in enumerate(partitions):
        assigned[names[number % len(names)]].add(partition)
    return assigned


def assign_cooperatively(
    members: Mapping[str, Subscription], partitions: list[TopicPartition]
) -> Assignments:
    """A partition that moves between members is unassigned for one generation."""
    owners = _owners(members)
    quota = -(-len(partitions) // len(members))
    target: Assignments = {member_id: set() for member_id in members}
    moving = []
    for partition in partitions:
        owner = owners.get(partition)
        if owner is not None and len(target[owner]) < quota:
            target[owner].add(partition)
        else:
            moving.append(partition)
    for partition in moving:
        least = min(sorted(target), key=lambda member_id: len(target[member_id]))
        target[least].add(partition)
    return {
        member_id: {
            partition for partition in owned if owners.get(partition, member_id) == member_id
        }
        for member_id, owned in target.items()
    }


def _owners(members: Mapping[str, Subscription]) -> dict[TopicPartition, str]:
    """If two members claim a partition, the one with the later generation owns it."""
    owners: dict[TopicPartition, str] = {}
    for member_id, subscription in sorted(members.items()):
        for partition in subscription.owned:
            other = owners.get(partition)
            if other is None or members[other].generation < subscription.generation:
                owners[partition] = member_id
    return owners


def write_subscription(subscription: Subscription) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=subscription.topics,
        owned_partitions=_wire(subscription.owned),
        generation_id=subscription.generation,
    )
    return _VERSION.pack(VERSION) + bytes(message.write(VERSION))


def read_subscription(encoded: bytes) -> Subscription:
    (version,) = _VERSION.unpack_from(encoded)
    message, _ = ConsumerProtocolSubscription.read(encoded, version, _VERSION.size)
    return Subscription(message.topics, _plain(message.owned_partitions), message.generation_id)


def write_assignment(partitions: set[TopicPartition]) -> bytes:
    message = ConsumerProtocolAssignment(assigned_partitions=_wire(partitions))
    return _VERSION.pack(VERSION) + bytes(message.write(VERSION))


def read_assignment(encoded: bytes) -> set[TopicPartition]:
    if not encoded:
        return set()
    (version,) = _VERSION.unpack_from(encoded)
    message, _ = ConsumerProtocolAssignment.read(encoded, version, _VERSION.size)
    return _plain(message.assigned_partitions)


def _wire(partitions: set[TopicPartition]) -> list[WireTopicPartition]:
    return [
        WireTopicPartition(topic=topic, partitions=indexes)
        for topic, indexes in by_topic(partitions).items()
    ]


def _plain(topics: list[WireTopicPartition]) -> set[TopicPartition]:
    return {(topic.topic, index) for topic in topics for index in topic.partitions}
