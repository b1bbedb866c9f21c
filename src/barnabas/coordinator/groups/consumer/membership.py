"""Who a heartbeat or a join speaks for: a member of the group, a new one, or one that takes the
place of a static member."""

import logging
from dataclasses import replace

from barnabas.coordinator.groups.consumer import records
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import (
    LEFT_FOR_A_WHILE,
    ConsumerMember,
    OwnedPartitions,
)
from barnabas.coordinator.groups.consumer.reconciliation import Reported
from barnabas.coordinator.records import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError

log = logging.getLogger(__name__)


def joining_member(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    into: list[CoordinatorRecord],
    *,
    uses_classic_protocol: bool = False,
) -> ConsumerMember:
    """The member as it is before it joins: it may be in the group already, under this id, or
    under another which its static instance had before."""
    if instance_id is not None:
        predecessor = group.static_member(instance_id)
        if predecessor is not None:
            if not uses_classic_protocol and not predecessor.uses_classic_protocol:
                _check_released(group, predecessor, member_id)
            return _replace(group, predecessor, member_id, into)
    member = group.members.get(member_id)
    return member if member is not None else ConsumerMember(member_id)


def known_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """The member that says it is in the group; KafkaError if it is not, or not any more."""
    if instance_id is None:
        return group.member(member_id)
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Group {group.group_id} has no static member of instance id {instance_id}.",
        )
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Member {member_id} is fenced from group {group.group_id}: "
            f"instance id {instance_id} is that of member {member.member_id} now.",
        )
    return member


def check_epoch(member: ConsumerMember, epoch: int, reported: Reported) -> None:
    """KafkaError unless the member is at that epoch, or is about to hear that it has moved on."""
    if epoch == member.member_epoch:
        return
    if (
        epoch < member.member_epoch
        and epoch == member.previous_member_epoch
        and _is_within(member.assigned, reported)
    ):
        return  # the answer that told the new epoch was lost
    relation = "greater" if epoch > member.member_epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"Member {member.member_id} has a {relation} epoch ({epoch}) than the coordinator knows "
        f"({member.member_epoch}). It must abandon all its partitions and rejoin.",
    )


def _check_released(group: ConsumerGroup, predecessor: ConsumerMember, member_id: str) -> None:
    if predecessor.member_epoch != LEFT_FOR_A_WHILE:
        raise KafkaError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Member {member_id} cannot join group {group.group_id}: instance id "
            f"{predecessor.instance_id} is still that of member {predecessor.member_id}.",
        )


def _replace(
    group: ConsumerGroup,
    predecessor: ConsumerMember,
    member_id: str,
    into: list[CoordinatorRecord],
) -> ConsumerMember:
    """Give a member all that its predecessor had; the predecessor is gone."""
    member = replace(predecessor, member_id=member_id, member_epoch=0, previous_member_epoch=0)
    group_id = group.group_id
    target = group.target(predecessor.member_id)
    into += records.member_tombstones(group_id, predecessor.member_id)
    into.append(records.member(group_id, member))
    into.append(records.target_assignment(group_id, member_id, target))
    into.append(records.current_assignment(group_id, member))
    log.info("group %s: member %s takes the place of %s, instance id %s", group_id, member_id,
             predecessor.member_id, predecessor.instance_id)  # fmt: skip
    return member


def _is_within(owned: OwnedPartitions, reported: Reported) -> bool:
    """Whether the member reports what it has, and nothing that it is not to have."""
    return reported is not None and all(
        topic.topic_id in owned and owned[topic.topic_id].keys() >= set(topic.partitions)
        for topic in reported
    )
