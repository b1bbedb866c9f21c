"""All that one partition of `__consumer_offsets` keeps: groups, and the offsets they committed."""

import importlib
from typing import Any, Protocol

from barnabas.coordinator.groups.group import Group
from barnabas.coordinator.groups.subscriptions import Subscriptions
from barnabas.coordinator.records import CoordinatorRecord, RecordTypes
from barnabas.coordinator.shard import Shard
from barnabas.coordinator.timers import Timers
from barnabas.metadata.delta import Delta
from barnabas.metadata.image import Image
from barnabas.wire.messages import group_records as records

GROUPS_TOPIC = "__consumer_offsets"

OFFSET_RECORDS = (
    (records.LegacyOffsetCommitKey, records.LegacyOffsetCommitValue),
    (records.OffsetCommitKey, records.OffsetCommitValue),
)
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
GROUP_RECORDS = RecordTypes(OFFSET_RECORDS + CLASSIC_RECORDS + CONSUMER_RECORDS)


class GroupSettings(Protocol):
    """Settings in force, as the broker's Resolver finds them."""

    def broker(self, name: str) -> Any: ...

    def group(self, group_name: str) -> Any:
        """The settings of one group by name."""


class Groups:
    """The state machine of one shard. What each request decides is in the modules beside."""

    def __init__(self, shard: "Shard[Groups]", settings: GroupSettings, image: Image) -> None:
        self.shard = shard
        self.settings = settings
        self.image = image
        self.groups: dict[str, Group] = {}
        self.subscriptions = Subscriptions(image.offset)
        self.offsets: Any = _module("offsets.store").Offsets() if _module("offsets.store") else None

    @property
    def timers(self) -> Timers:
        return self.shard.timers

    def now_ms(self) -> int:
        return self.shard.now_ms()

    def replay(self, record: CoordinatorRecord, producer_id: int) -> None:
        key = type(record.key)
        if any(key is each for each, _ in OFFSET_RECORDS):
            _module("offsets.replay").replay(self, record, producer_id)
        elif key is records.GroupMetadataKey:
            _module("classic.replay").replay(self, record.key, record.value)
        else:
            _module("consumer.replay").replay(self, record)

    def replay_end(self, producer_id: int, committed: bool) -> None:
        _module("offsets.replay").replay_end(self, producer_id, committed)

    def loaded(self) -> None:
        pass

    def unloaded(self) -> None:
        pass

    def follow(self, delta: Delta, image: Image) -> None:
        self.image = image


def _module(name: str) -> Any:
    """For as long as the modules beside are not all there."""
    try:
        return importlib.import_module(f"barnabas.coordinator.groups.{name}")
    except ModuleNotFoundError:
        return None
