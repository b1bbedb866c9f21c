"""Heartbeat (key 12) to a consumer group: a member lives, and learns whether to join again."""

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.context import GroupClient
from barnabas.coordinator.groups.consumer.classic_members import timeouts
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.heartbeat import known_group
from barnabas.coordinator.groups.consumer.member import ConsumerMember, MemberState
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def heartbeat(
    groups: "GroupCoordinatorState", request: HeartbeatRequest, client: GroupClient
) -> Decision[HeartbeatResponse]:
    group = known_group(groups, request.group_id)
    member = timeouts.speaker(group, request)
    timeouts.keep(groups, group, member)
    if not _has_a_step_to_take(group, member):
        return Decision(HeartbeatResponse())
    timeouts.await_join(groups, group, member)
    return Decision(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))


def _has_a_step_to_take(group: ConsumerGroup, member: ConsumerMember) -> bool:
    if member.member_epoch < group.assignment_epoch:
        return True
    if group.classic_member_count == len(group.members) and (
        member.member_epoch < group.epoch or group.has_new_topics
    ):
        return True  # no heartbeat of the other protocol brings a new target: a join does
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS:
            return not _waits_for_others(group, member)
    return False


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether others still have some of what it is to have."""
    return any(
        partition not in member.assigned.get(topic_id, ()) and group.is_owned(topic_id, partition)
        for topic_id, partitions in group.target(member.member_id).items()
        for partition in partitions
    )
