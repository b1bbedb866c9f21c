"""The member that a heartbeat or a join is from: an existing one, a new one, or one that replaces
a static member."""

from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import DecisionBuilder
from barnabas.coordinator.groups.consumer import events, records
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import (
    LEAVING_TEMPORARILY,
    ConsumerMember,
    OwnedPartitions,
)
from barnabas.coordinator.groups.consumer.reconciliation import ReportedPartitions
from barnabas.coordinator.groups.context import GroupContext
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def consumer_group(group_id: str, groups: "GroupCoordinatorState") -> ConsumerGroup:
    """Returns the consumer group. Raises KafkaError if there is none, or it is of another type."""
    group = groups.by_id.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    reason = "not found" if group is None else "is not a consumer group"
    raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {reason}.")


def check_size(group: ConsumerGroup, member_id: str, context: GroupContext) -> None:
    """Raises KafkaError if the group has no room for a new member."""
    max_size = context.settings.broker("group.consumer.max.size")
    if len(group.members) >= max_size and member_id not in group.members:
        raise KafkaError(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {max_size} members.",
        )


def joining_member(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    decision: DecisionBuilder,
    *,
    uses_classic_protocol: bool = False,
) -> ConsumerMember:
    """Returns the member before it joins. It may be in the group already, under this id or, as a
    static member, under another."""
    if instance_id is not None:
        predecessor = group.static_member(instance_id)
        if predecessor is not None:
            if not uses_classic_protocol and not predecessor.uses_classic_protocol:
                _check_released(group, predecessor, member_id)
            return _replace(group, predecessor, member_id, decision)
    member = group.members.get(member_id)
    return member if member is not None else ConsumerMember(member_id)


def existing_member(
    group: ConsumerGroup, member_id: str, instance_id: str | None
) -> ConsumerMember:
    """Returns the member. Raises KafkaError if it is not in the group, or was replaced."""
    if instance_id is None:
        return group.member(member_id)
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def check_epoch(member: ConsumerMember, epoch: int, reported: ReportedPartitions) -> None:
    """Raises KafkaError if the member is at another epoch, unless the request is a retry with the
    previous one."""
    if epoch == member.member_epoch:
        return
    if (
        epoch < member.member_epoch
        and epoch == member.previous_member_epoch
        and _is_within(member.assigned, reported)
    ):
        return  # the response with the new epoch was lost
    relation = "greater" if epoch > member.member_epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {relation} member epoch ({epoch}) than the one known by "
        f"the group coordinator ({member.member_epoch}). "
        "The member must abandon all its partitions and rejoin.",
    )


def _check_released(group: ConsumerGroup, predecessor: ConsumerMember, member_id: str) -> None:
    if predecessor.member_epoch != LEAVING_TEMPORARILY:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {predecessor.instance_id} cannot join the "
            f"group because the instance id is owned by {predecessor.member_id} member.",
        )


def _replace(
    group: ConsumerGroup, predecessor: ConsumerMember, member_id: str, decision: DecisionBuilder
) -> ConsumerMember:
    """Replaces a static member by one that takes over everything the predecessor had."""
    member = replace(predecessor, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    group_id = group.group_id
    target = group.target(predecessor.member_id)
    decision.records += records.member_tombstones(group_id, predecessor.member_id)
    decision.records.append(records.member(group_id, member))
    decision.records.append(records.target_assignment(group_id, member_id, target))
    decision.records.append(records.current_assignment(group_id, member))
    decision.log(events.member_replaced, group_id, predecessor, member_id)
    return member


def _is_within(owned: OwnedPartitions, reported: ReportedPartitions) -> bool:
    """Whether the member reports its partitions, and owns all that it reports."""
    return reported is not None and all(
        topic.topic_id in owned and owned[topic.topic_id].keys() >= set(topic.partitions)
        for topic in reported
    )
