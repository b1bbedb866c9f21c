"""Heartbeat (key 12) to a consumer group: the member is alive, and learns whether to join again."""

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.groups.consumer.classic_members.timeouts import classic_member, join_timer
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import ConsumerMember, MemberState
from barnabas.coordinator.groups.consumer.membership import consumer_group
from barnabas.coordinator.groups.consumer.sessions import session_timer
from barnabas.coordinator.groups.context import GroupRequestContext
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def heartbeat(
    request: HeartbeatRequest, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> CoordinatorDecision[HeartbeatResponse]:
    group = consumer_group(request.group_id, groups)
    member = classic_member(group, request)
    session = session_timer(group.group_id, member, context)
    if not _has_to_join(group, member):
        return CoordinatorDecision((), HeartbeatResponse(), [session])
    response = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
    return CoordinatorDecision((), response, [session, join_timer(group, member)])


def _has_to_join(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether the member has another step to take."""
    if member.member_epoch < group.assignment_epoch:
        return True
    if group.classic_member_count == len(group.members) and (
        member.member_epoch < group.epoch or group.has_new_topics
    ):
        return True  # no member of the consumer protocol updates the target: a join does
    match member.state:
        case MemberState.UNREVOKED_PARTITIONS:
            return True
        case MemberState.UNRELEASED_PARTITIONS:
            return not _waits_for_others(group, member)
    return False


def _waits_for_others(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether other members still own partitions of its target."""
    return any(
        partition not in member.assigned.get(topic_id, ()) and group.is_owned(topic_id, partition)
        for topic_id, partitions in group.target(member.member_id).items()
        for partition in partitions
    )
