"""Replays the records of consumer groups. It never fails: records that compaction has removed are
completed by those after them."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from barnabas.coordinator.groups.consumer.group import ConsumerGroup, ResolvedRegex
from barnabas.coordinator.groups.consumer.member import (
    LEAVING,
    ConsumerMember,
    MemberState,
    OwnedPartitions,
)
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.messages import group_records as wire

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def replay(record: CoordinatorRecord, groups: "GroupCoordinatorState") -> None:
    """A value may create a group. A tombstone of a group that does not exist is ignored."""
    key, value, _ = record
    group = groups.by_id.get(key.group_id)
    if not isinstance(group, ConsumerGroup):
        if value is None:
            return
        group = ConsumerGroup(key.group_id, groups.subscriptions)
        groups.by_id[key.group_id] = group
    if value is None and type(key) is wire.ConsumerGroupMetadataKey:
        group.unsubscribe_all()
        del groups.by_id[key.group_id]
    else:
        _REPLAY[type(key)](group, key, value)


def _group_epoch(
    group: ConsumerGroup, _: wire.ConsumerGroupMetadataKey, value: wire.ConsumerGroupMetadataValue
) -> None:
    group.epoch = value.epoch
    group.metadata_hash = value.metadata_hash
    group.has_new_topics = False  # the hash was computed just now, unless the log is being loaded


def _partition_metadata(
    group: ConsumerGroup,
    _: wire.ConsumerGroupPartitionMetadataKey,
    value: wire.ConsumerGroupPartitionMetadataValue | None,
) -> None:
    group.has_partition_metadata = value is not None


def _member(
    group: ConsumerGroup,
    key: wire.ConsumerGroupMemberMetadataKey,
    value: wire.ConsumerGroupMemberMetadataValue | None,
) -> None:
    if value is None:
        group.remove_member(key.member_id)
        return
    group.put_member(
        replace(
            group.members.get(key.member_id) or ConsumerMember(key.member_id),
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            subscribed_topic_names=frozenset(value.subscribed_topic_names),
            subscribed_topic_regex=value.subscribed_topic_regex or "",
            server_assignor=value.server_assignor,
            classic=value.classic_member_metadata,
        )
    )


def _assignment_epoch(
    group: ConsumerGroup,
    _: wire.ConsumerGroupTargetAssignmentMetadataKey,
    value: wire.ConsumerGroupTargetAssignmentMetadataValue | None,
) -> None:
    group.assignment_epoch = value.assignment_epoch if value is not None else -1
    group.assignment_timestamp_ms = value.assignment_timestamp if value is not None else 0


def _target(
    group: ConsumerGroup,
    key: wire.ConsumerGroupTargetAssignmentMemberKey,
    value: wire.ConsumerGroupTargetAssignmentMemberValue | None,
) -> None:
    if value is None:
        group.targets.pop(key.member_id, None)
    else:
        group.targets[key.member_id] = {
            topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions
        }


def _current(
    group: ConsumerGroup,
    key: wire.ConsumerGroupCurrentMemberAssignmentKey,
    value: wire.ConsumerGroupCurrentMemberAssignmentValue | None,
) -> None:
    member = group.members.get(key.member_id)
    if value is not None:
        group.put_member(
            replace(
                member or ConsumerMember(key.member_id),
                member_epoch=value.member_epoch,
                previous_member_epoch=value.previous_member_epoch,
                state=MemberState(value.state),
                assigned=_owned(value.assigned_partitions, value.member_epoch),
                pending_revocation=_owned(value.partitions_pending_revocation, value.member_epoch),
            )
        )
    elif member is not None:
        group.put_member(
            replace(
                member,
                member_epoch=LEAVING,
                previous_member_epoch=LEAVING,
                assigned={},
                pending_revocation={},
            )
        )


def _owned(topics: list[wire.TopicPartitions], member_epoch: int) -> OwnedPartitions:
    """Before Kafka 4.3 partitions had no epochs of their own: that of the member is not older."""
    owned: OwnedPartitions = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)
        owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned


def _regex(
    group: ConsumerGroup,
    key: wire.ConsumerGroupRegularExpressionKey,
    value: wire.ConsumerGroupRegularExpressionValue | None,
) -> None:
    if value is None:
        group.remove_regex(key.regular_expression)
    else:
        resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
        group.put_regex(key.regular_expression, resolved)


_REPLAY: dict[type, Callable[[ConsumerGroup, Any, Any], None]] = {
    wire.ConsumerGroupMetadataKey: _group_epoch,
    wire.ConsumerGroupPartitionMetadataKey: _partition_metadata,
    wire.ConsumerGroupMemberMetadataKey: _member,
    wire.ConsumerGroupTargetAssignmentMetadataKey: _assignment_epoch,
    wire.ConsumerGroupTargetAssignmentMemberKey: _target,
    wire.ConsumerGroupCurrentMemberAssignmentKey: _current,
    wire.ConsumerGroupRegularExpressionKey: _regex,
}
