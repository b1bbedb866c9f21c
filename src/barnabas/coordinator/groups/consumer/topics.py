"""The topics that a group subscribes to, and a hash that shows whether they have changed.

The hash is Kafka's own (64-bit XXH3), so that a group can move between its brokers and ours
without a new assignment. All numbers in it are little-endian; strings are UTF-16, followed by
their length in units:

    topic    one zero byte | the two halves of the id | name | partition count
             and for each partition: its index, then for each rack of its replicas: length | rack
    group    the hashes of its topics, in the order of their names
"""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING

import xxhash

from barnabas.coordinator.decision import Effect
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.states import TopicImage

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

_INT32 = Struct("<i")
_UINT64 = Struct("<Q")
_HALVES = Struct(">QQ")
_FIRST = Struct("<BQQ")
_MAGIC = 0

Racks = tuple[tuple[str, ...], ...]
"""The racks of each partition's replicas."""


def topics_after(
    group: ConsumerGroup, old: Sequence[ConsumerMember], new: ConsumerMember | None = None
) -> Set[str]:
    """Returns the topics that the group subscribes to with `new` instead of `old`. Only their
    topics are looked at, unless the set of topics changes."""
    changes: dict[str, int] = {}
    for member in old:
        for topic in member.subscribed_topic_names:
            changes[topic] = changes.get(topic, 0) - 1
    for topic in new.subscribed_topic_names if new is not None else ():
        changes[topic] = changes.get(topic, 0) + 1
    for pattern in unused_regexes(group, old, new):
        resolved = group.resolved_regexes.get(pattern)
        for topic in resolved.topics if resolved is not None else ():
            changes[topic] = changes.get(topic, 0) - 1
    counts = group.subscribed_topics
    added = {topic for topic, step in changes.items() if step > 0 and topic not in counts}
    gone = {topic for topic, step in changes.items() if step < 0 and counts.get(topic, 0) <= -step}
    return (counts.keys() - gone) | added if added or gone else counts.keys()


def unused_regexes(
    group: ConsumerGroup, old: Sequence[ConsumerMember], new: ConsumerMember | None = None
) -> list[str]:
    """Returns the regular expressions that no member subscribes by with `new` instead of `old`."""
    kept = new.subscribed_topic_regex if new is not None else ""
    leaving: dict[str, int] = {}
    for member in old:
        pattern = member.subscribed_topic_regex
        if pattern and pattern != kept:
            leaving[pattern] = leaving.get(pattern, 0) + 1
    return [pattern for pattern, count in leaving.items() if group.regexes.get(pattern) == count]


def metadata_hash(names: Iterable[str], image: MetadataImage) -> int:
    """Returns the hash of the topics that exist; 0 if none does."""
    has_racks = any(broker.rack is not None for broker in image.brokers.values())
    hashes = []
    for name in sorted(names):
        topic = image.topics.by_name(name)
        if topic is not None:
            racks = _racks(topic, image) if has_racks else None
            hashes.append(_topic_hash(topic.topic_id, name, len(topic.partitions), racks))
    if not hashes:
        return 0
    digest = xxhash.xxh3_64_intdigest(b"".join(map(_UINT64.pack, hashes)))
    return digest - (1 << 64) if digest >> 63 else digest


@dataclass(slots=True, frozen=True)
class MarkTopicsChecked(Effect):
    """The subscribed topics of a group have been compared with the current metadata image."""

    group_id: str


def on_metadata_update(
    delta: MetadataDelta, image: MetadataImage, groups: "GroupCoordinatorState"
) -> None:
    """Topics have changed: the groups that subscribe to them check them by the next heartbeat."""
    if delta.topics_created:
        groups.subscriptions.new_topics_offset = image.offset
    changed = {topic_id for topic_id, _ in delta.partitions_changed} | delta.topics_created.keys()
    topics = [image.topics.by_id(topic_id) for topic_id in changed]
    names = {topic.name for topic in (*topics, *delta.topics_deleted.values()) if topic is not None}
    for name in names:
        for group_id in groups.subscriptions.of(name):
            group = groups.by_id.get(group_id)
            if isinstance(group, ConsumerGroup):
                group.has_new_topics = True


@lru_cache(maxsize=4096)
def _topic_hash(topic_id: bytes, name: str, partition_count: int, racks: Racks | None) -> int:
    first, second = _HALVES.unpack(topic_id)
    hashed = bytearray(_FIRST.pack(_MAGIC, first, second))
    hashed += _text(name) + _INT32.pack(partition_count)
    for index in range(partition_count):
        hashed += _INT32.pack(index)
        for rack in racks[index] if racks is not None else ():
            text = _text(rack)
            hashed += text[-_INT32.size :] + text
    return xxhash.xxh3_64_intdigest(bytes(hashed))


def _racks(topic: TopicImage, image: MetadataImage) -> Racks:
    def rack_of(broker_id: int) -> str | None:
        broker = image.brokers.get(broker_id)
        return broker.rack if broker is not None else None

    partitions = (topic.partitions[index] for index in range(len(topic.partitions)))
    return tuple(
        tuple(sorted(rack for each in partition.replicas if (rack := rack_of(each)) is not None))
        for partition in partitions
    )


def _text(text: str) -> bytes:
    units = text.encode("utf-16-le", "surrogatepass")
    return units + _INT32.pack(len(units) // 2)
