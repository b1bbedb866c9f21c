"""What changed in an image: the entries that subscribers need to read again."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.metadata.states import ConfigResource, PartitionRegistration, QuotaEntity, TopicImage

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage

K = TypeVar("K")


@dataclass(slots=True)
class MetadataDelta:
    """The net changes of one or more committed batches: created and then deleted is no change.

    `partitions_changed` has every partition that is new or differs, in its current state,
    including those of created topics. Partitions of deleted topics are in `topics_deleted`,
    which has those topics as they were. The sets hold keys to look up in the image; a key that
    the image does not have was removed.
    """

    topics_created: dict[bytes, TopicImage] = field(default_factory=dict)
    topics_deleted: dict[bytes, TopicImage] = field(default_factory=dict)
    partitions_changed: dict[tuple[bytes, int], PartitionRegistration] = field(default_factory=dict)
    configs_changed: set[ConfigResource] = field(default_factory=set)
    brokers_changed: set[int] = field(default_factory=set)
    controllers_changed: set[int] = field(default_factory=set)
    features_changed: set[str] = field(default_factory=set)
    quotas_changed: set[QuotaEntity] = field(default_factory=set)
    acls_changed: set[bytes] = field(default_factory=set)
    scram_changed: set[tuple[str, int]] = field(default_factory=set)
    tokens_changed: set[str] = field(default_factory=set)
    producer_ids_changed: bool = False

    @classmethod
    def between(cls, before: "MetadataImage", after: "MetadataImage") -> "MetadataDelta":
        """Returns the difference, for a node that loaded a snapshot instead of records."""
        delta = cls(
            configs_changed=_differing(before.configs, after.configs),
            brokers_changed=_differing(before.brokers, after.brokers),
            controllers_changed=_differing(before.controllers, after.controllers),
            features_changed=_differing(before.features, after.features),
            quotas_changed=_differing(before.quotas, after.quotas),
            acls_changed=_differing(before.acls, after.acls),
            scram_changed=_differing(before.scram, after.scram),
            tokens_changed=_differing(before.tokens, after.tokens),
            producer_ids_changed=before.next_producer_id != after.next_producer_id,
        )
        for topic in before.topics:
            if not _is_same_topic(topic, after.topics.by_id(topic.topic_id)):
                delta.topics_deleted[topic.topic_id] = topic
        for topic in after.topics:
            delta._compare(before.topics.by_id(topic.topic_id), topic)
        return delta

    def __bool__(self) -> bool:
        return any(getattr(self, changed.name) for changed in fields(self))

    def _compare(self, before: TopicImage | None, after: TopicImage) -> None:
        if before is after:
            return
        old_partitions: Mapping[int, PartitionRegistration] = {}
        if before is not None and _is_same_topic(before, after):
            old_partitions = before.partitions
        else:
            self.topics_created[after.topic_id] = after
        for number, partition in after.partitions.items():
            if old_partitions.get(number) != partition:
                self.partitions_changed[(after.topic_id, number)] = partition


def _is_same_topic(before: TopicImage, after: TopicImage | None) -> bool:
    """Whether it is the same topic: topics keep their name and never lose a partition."""
    return (
        after is not None
        and before.name == after.name
        and before.partitions.keys() <= after.partitions.keys()
    )


def _differing(before: Mapping[K, Any], after: Mapping[K, Any]) -> set[K]:
    return {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
