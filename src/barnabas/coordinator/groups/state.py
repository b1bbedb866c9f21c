"""All that one partition of `__consumer_offsets` keeps: groups, and the offsets they committed."""

from collections.abc import Mapping
from typing import Any, Protocol

from barnabas.coordinator.groups import classic, consumer
from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.group import Group
from barnabas.coordinator.groups.offsets import expiry
from barnabas.coordinator.groups.offsets.record import OFFSET_RECORDS, LegacyOffsetKey, OffsetKey
from barnabas.coordinator.groups.offsets.replay import replay as replay_offset
from barnabas.coordinator.groups.offsets.replay import replay_end as replay_end_of_offsets
from barnabas.coordinator.groups.offsets.store import OffsetStore
from barnabas.coordinator.groups.consumer.group import Subscriptions
from barnabas.coordinator.ports import ResolvedSettings
from barnabas.coordinator.records import CoordinatorRecord, RecordTypes
from barnabas.coordinator.shard import CoordinatorShard
from barnabas.coordinator.timers import ShardTimers
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages import group_records as records

CLASSIC_RECORDS = ((records.GroupMetadataKey, records.GroupMetadataValue),)
CONSUMER_RECORDS = (
    (records.ConsumerGroupMetadataKey, records.ConsumerGroupMetadataValue),
    (records.ConsumerGroupPartitionMetadataKey, records.ConsumerGroupPartitionMetadataValue),
    (records.ConsumerGroupMemberMetadataKey, records.ConsumerGroupMemberMetadataValue),
    (
        records.ConsumerGroupTargetAssignmentMetadataKey,
        records.ConsumerGroupTargetAssignmentMetadataValue,
    ),
    (
        records.ConsumerGroupTargetAssignmentMemberKey,
        records.ConsumerGroupTargetAssignmentMemberValue,
    ),
    (
        records.ConsumerGroupCurrentMemberAssignmentKey,
        records.ConsumerGroupCurrentMemberAssignmentValue,
    ),
    (records.ConsumerGroupRegularExpressionKey, records.ConsumerGroupRegularExpressionValue),
)
GROUP_RECORDS = RecordTypes([*OFFSET_RECORDS, *CLASSIC_RECORDS, *CONSUMER_RECORDS])


class GroupSettings(ResolvedSettings, Protocol):
    """Those of groups as well."""

    def group(self, group_name: str) -> Mapping[str, Any]:
        """The settings of one group, by their names."""


class GroupCoordinatorState:
    """The state machine of one shard. What each request decides is in the modules beside."""

    __slots__ = ("by_id", "image", "offsets", "settings", "shard", "subscriptions")

    def __init__(self, shard: "CoordinatorShard[GroupCoordinatorState]", settings: GroupSettings, image: MetadataImage) -> None:
        self.shard = shard
        self.settings = settings
        self.image = image
        self.by_id: dict[str, Group] = {}
        self.subscriptions = Subscriptions(image.offset)
        self.offsets = OffsetStore()

    @property
    def timers(self) -> ShardTimers:
        return self.shard.timers

    def now_ms(self) -> int:
        return self.shard.now_ms()

    def replay(self, record: CoordinatorRecord, producer_id: int) -> None:
        kind = type(record.key)
        if kind is OffsetKey or kind is LegacyOffsetKey:
            replay_offset(self, record, producer_id)
        elif kind is records.GroupMetadataKey:
            classic.replay(self, record.key, record.value)
        else:
            consumer.replay(self, record)

    def replay_end(self, producer_id: int, committed: bool) -> None:
        replay_end_of_offsets(self, producer_id, committed)

    def loaded(self) -> None:
        for group in self.by_id.values():
            if isinstance(group, ClassicGroup):
                classic.loaded(self, group)
            elif isinstance(group, ConsumerGroup):
                consumer.loaded(self, group)
        expiry.loaded(self)

    def unloaded(self) -> None:
        for group in self.by_id.values():
            if isinstance(group, ClassicGroup):
                classic.unloaded(self, group)

    def follow(self, delta: MetadataDelta, image: MetadataImage) -> None:
        self.image = image
        consumer.follow(self, delta, image)
        expiry.follow(self, delta)
