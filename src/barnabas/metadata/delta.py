"""What changed in an image between two moments: what listeners need to look at again."""

from dataclasses import dataclass, field, fields

from barnabas.metadata.states import ConfigResource, PartitionState, QuotaEntity, TopicState


@dataclass(slots=True)
class Delta:
    """The changes of one or more committed batches, net: created and then deleted is nothing.

    `partitions_changed` holds every partition that is new or differs, as it is now, those of
    created topics included; partitions of deleted topics are found in `topics_deleted`, which
    holds those topics as they were. The sets name what to look up in the image again; what is
    not there any more was removed.
    """

    topics_created: dict[bytes, TopicState] = field(default_factory=dict)
    topics_deleted: dict[bytes, TopicState] = field(default_factory=dict)
    partitions_changed: dict[tuple[bytes, int], PartitionState] = field(default_factory=dict)
    configs_changed: set[ConfigResource] = field(default_factory=set)
    brokers_changed: set[int] = field(default_factory=set)
    controllers_changed: set[int] = field(default_factory=set)
    features_changed: set[str] = field(default_factory=set)
    quotas_changed: set[QuotaEntity] = field(default_factory=set)
    acls_changed: set[bytes] = field(default_factory=set)
    scram_changed: set[tuple[str, int]] = field(default_factory=set)
    tokens_changed: set[str] = field(default_factory=set)
    producer_ids_changed: bool = False

    def __bool__(self) -> bool:
        return any(getattr(self, changed.name) for changed in fields(self))
