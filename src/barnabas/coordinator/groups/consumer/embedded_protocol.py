"""What classic consumers say inside JoinGroup and are told inside SyncGroup.

Both are a message of the consumer protocol behind its version as an int16. A version that is newer
than ours is read as our newest: it begins with the same fields.
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
    """Of nothing at all there is nothing assigned."""
    if not embedded:
        return ConsumerProtocolAssignment()
    return _read(ConsumerProtocolAssignment, embedded)


def write_assignment(assignment: Assignment, version: int, image: MetadataImage) -> bytes:
    """The assignment for a member that speaks that version; topics that are gone are left out."""
    named = [
        TopicPartition(topic=topic.name, partitions=sorted(partitions))
        for topic_id, partitions in assignment.items()
        if (topic := image.topics.by_id(topic_id)) is not None
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=named)
    return _VERSION.pack(version) + message.write(version)


def version_of(embedded: bytes) -> int:
    """The version to answer in."""
    if len(embedded) < _VERSION.size:
        raise ProtocolViolation("A message of the consumer protocol begins with its version.")
    version: int = _VERSION.unpack_from(embedded)[0]
    if version < 0:
        raise ProtocolViolation(f"The consumer protocol has no version {version}.")
    return min(version, NEWEST)


def by_topic_id(partitions: Iterable[TopicPartition], image: MetadataImage) -> Assignment:
    """The partitions, as far as they exist."""
    existing: Assignment = {}
    for each in partitions:
        topic = image.topics.by_name(each.topic)
        if topic is None:
            continue
        indexes = existing.get(topic.topic_id, frozenset()).union(
            topic.partitions.keys() & each.partitions
        )
        if indexes:
            existing[topic.topic_id] = indexes
    return existing


def _read(kind: type[M], embedded: bytes) -> M:
    message, _ = kind.reader(version_of(embedded))(embedded, _VERSION.size)
    return message
