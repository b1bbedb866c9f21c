"""The state of one partition of `__consumer_offsets`: groups, and the offsets they committed."""

from collections.abc import Sequence

from barnabas.coordinator.decision import Effect
from barnabas.coordinator.groups import classic, consumer
from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.consumer.group import ConsumerGroup, Subscriptions
from barnabas.coordinator.groups.consumer.migration import StartClassicGroup, start_classic_group
from barnabas.coordinator.groups.consumer.topics import MarkTopicsChecked
from barnabas.coordinator.groups.context import GroupContext
from barnabas.coordinator.groups.group import Group
from barnabas.coordinator.groups.offsets import expiration
from barnabas.coordinator.groups.offsets.record import OFFSET_RECORDS, LegacyOffsetKey, OffsetKey
from barnabas.coordinator.groups.offsets.store import OffsetStore
from barnabas.coordinator.records import CoordinatorRecord, RecordTypes
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


class GroupCoordinatorState:
    """The state machine of one shard. The packages beside this module decide on it."""

    __slots__ = ("by_id", "offsets", "subscriptions", "timers")

    def __init__(self, timers: ShardTimers, image: MetadataImage) -> None:
        self.by_id: dict[str, Group] = {}
        self.subscriptions = Subscriptions(image.offset)
        self.offsets = OffsetStore()
        self.timers = timers
        """For classic groups, which change in memory. Other decisions return effects."""

    def replay(self, record: CoordinatorRecord, producer_id: int) -> None:
        kind = type(record.key)
        if kind is OffsetKey or kind is LegacyOffsetKey:
            self._replay_offset(record, producer_id)
        elif kind is records.GroupMetadataKey:
            classic.replay(record.key, record.value, self)
        else:
            consumer.replay(record, self)

    def _replay_offset(self, record: CoordinatorRecord, producer_id: int) -> None:
        key, committed, _ = record
        if committed is None:
            self.offsets.remove(key)
            return
        if key.group not in self.by_id:
            # The client is not a member of any group: this one only keeps its offsets.
            self.by_id[key.group] = ClassicGroup(key.group, committed.commit_timestamp)
        self.offsets.put(key, committed, producer_id)

    def replay_end(self, producer_id: int, committed: bool) -> None:
        self.offsets.end_transaction(producer_id, committed)

    def on_loaded(self, context: GroupContext) -> Sequence[Effect]:
        effects: list[Effect] = []
        for group in self.by_id.values():
            if isinstance(group, ClassicGroup):
                classic.on_loaded(group, self, context)
            elif isinstance(group, ConsumerGroup):
                effects += consumer.on_loaded(group, context)
        return [*effects, expiration.start(context)]

    def on_unloaded(self) -> None:
        for group in self.by_id.values():
            if isinstance(group, ClassicGroup):
                classic.on_unloaded(group, self)

    def on_metadata_update(
        self, delta: MetadataDelta, image: MetadataImage, context: GroupContext
    ) -> Sequence[Effect]:
        consumer.on_metadata_update(delta, image, self)
        return expiration.on_metadata_update(delta, self, context)

    def perform(self, effect: Effect, context: GroupContext) -> None:
        match effect:
            case MarkTopicsChecked():
                group = self.by_id.get(effect.group_id)
                if isinstance(group, ConsumerGroup):
                    group.has_new_topics = False
            case StartClassicGroup():
                start_classic_group(effect, self, context)
