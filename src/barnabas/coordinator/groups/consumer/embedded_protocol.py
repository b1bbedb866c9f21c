"""The consumer protocol that JoinGroup and SyncGroup carry as bytes.

A subscription or an assignment is a message that follows its version, an int16. A version that is
newer than ours is read as our newest one: it begins with the same fields.
"""

from collections.abc import Iterable
from struct import Struct
from typing import TypeVar

from barnabas.coordinator.groups.assignors.model import Assignment
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ProtocolViolation
from barnabas.wire.messages.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
)
from barnabas.wire.schema import Message

M = TypeVar("M", bound=Message)

_VERSION = Struct(">h")
NEWEST = ConsumerProtocolSubscription.VERSIONS.max


def read_subscription(embedded: bytes) -> ConsumerProtocolSubscription:
    return _read(ConsumerProtocolSubscription, embedded)


def read_assignment(embedded: bytes) -> ConsumerProtocolAssignment:
    """Reads an assignment. No bytes are an empty assignment."""
    if not embedded:
        return ConsumerProtocolAssignment()
    return _read(ConsumerProtocolAssignment, embedded)


def write_assignment(assignment: Assignment, version: int, image: MetadataImage) -> bytes:
    """Returns the assignment in that version, without topics that were deleted."""
    named = [
        TopicPartition(topic=topic.name, partitions=sorted(partitions))
        for topic_id, partitions in assignment.items()
        if (topic := image.topics.by_id(topic_id)) is not None
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=named)
    return _VERSION.pack(version) + message.write(version)


def version_of(embedded: bytes) -> int:
    """Returns the version to respond in."""
    if len(embedded) < _VERSION.size:
        raise ProtocolViolation("A message of the consumer protocol begins with its version.")
    version: int = _VERSION.unpack_from(embedded)[0]
    if version < 0:
        raise ProtocolViolation(f"The consumer protocol has no version {version}.")
    return min(version, NEWEST)


def by_topic_id(partitions: Iterable[TopicPartition], image: MetadataImage) -> Assignment:
    """Returns the partitions that exist."""
    existing: Assignment = {}
    for topic_partitions in partitions:
        topic = image.topics.by_name(topic_partitions.topic)
        if topic is None:
            continue
        indexes = existing.get(topic.topic_id, frozenset()).union(
            topic.partitions.keys() & topic_partitions.partitions
        )
        if indexes:
            existing[topic.topic_id] = indexes
    return existing


def _read(kind: type[M], embedded: bytes) -> M:
    message, _ = kind.reader(version_of(embedded))(embedded, _VERSION.size)
    return message
