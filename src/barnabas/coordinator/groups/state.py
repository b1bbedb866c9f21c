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
from barnabas.coordinator.records import CoordinatorRecord, EncodedRecord, RecordTypes
from barnabas.coordinator.timers import ShardTimers
from barnabas.metadata.delta import MetadataDelta
from barnabas.metadata.image import MetadataImage
from barnabas.wire.messages import group_records as records
from barnabas.wire.records.batch import NO_PRODUCER_ID

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


class GroupRecordTypes(RecordTypes):
    """The records of groups. Nearly all are plain commits of offsets, which need no decoding."""

    __slots__ = ()

    def replay(
        self, records: list[EncodedRecord], producer_id: int, state: "GroupCoordinatorState"
    ) -> None:
        start = 0
        while producer_id == NO_PRODUCER_ID and start < len(records):
            end = state.replay_plain_commits(records, start)
            super().replay(records[end : end + 1], producer_id, state)
            start = end + 1
        super().replay(records[start:], producer_id, state)


GROUP_RECORDS = GroupRecordTypes([*OFFSET_RECORDS, *CLASSIC_RECORDS, *CONSUMER_RECORDS])


class GroupCoordinatorState:
    """The state machine of one shard. The packages beside this module decide on it."""

    __slots__ = ("by_id", "offsets", "subscriptions", "timers")

    def __init__(self, timers: ShardTimers, image: MetadataImage) -> None:
        self.by_id: dict[str, Group] = {}
        self.subscriptions = Subscriptions(image.offset)
        self.offsets = OffsetStore()
        self.timers = timers
        """For classic groups, which change in memory, and for sessions that are refreshed. Other
        decisions return effects."""

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
        self.ensure_group(key.group, committed.commit_timestamp)
        self.offsets.put(key, committed, producer_id)

    def replay_plain_commits(self, encoded: list[EncodedRecord], start: int) -> int:
        """Replays commits from index `start` on. Returns the index of the first other record."""
        return self.offsets.put_plain(encoded, start, self.ensure_group)

    def ensure_group(self, group_id: str, commit_timestamp: int) -> None:
        """Adds the group of an offset that is committed, unless it is there."""
        if group_id not in self.by_id:
            # The client is not a member of any group: this one only keeps its offsets.
            self.by_id[group_id] = ClassicGroup(group_id, commit_timestamp)

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
