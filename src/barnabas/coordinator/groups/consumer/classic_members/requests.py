"""Requests of the classic protocol to a consumer group.

SyncGroup (key 14): return the partitions that a member may consume. v3 static members; v5 protocol
type and name, which are then required.
Heartbeat (key 12): the member is alive, and learns whether to join again.
LeaveGroup (key 13): v3 several members; a static one may be named by its instance id alone.
"""

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision, log_line
from barnabas.coordinator.groups.classic.group import CONSUMER
from barnabas.coordinator.groups.classic.leave import leave_response, members_of
from barnabas.coordinator.groups.classic.sync import check_protocol_is_named
from barnabas.coordinator.groups.consumer import events, sessions
from barnabas.coordinator.groups.consumer.classic_members.timeouts import (
    classic_member,
    join_timer,
    on_synced,
)
from barnabas.coordinator.groups.consumer.embedded_protocol import version_of, write_assignment
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import ConsumerMember, MemberState
from barnabas.coordinator.groups.consumer.membership import consumer_group, existing_member
from barnabas.coordinator.groups.consumer.sessions import session_timer
from barnabas.coordinator.groups.context import GroupRequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupResponse,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def sync(
    request: SyncGroupRequest, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> CoordinatorDecision[SyncGroupResponse]:
    group = consumer_group(request.group_id, groups)
    inconsistent = KafkaError(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        f"Member {request.member_id} of group {request.group_id} did not join by "
        f"{request.protocol_type} {request.protocol_name}.",
    )
    check_protocol_is_named(request, context, inconsistent)
    member = classic_member(group, request)
    assert member.classic is not None
    protocol = member.classic.supported_protocols[0]
    if request.protocol_type not in (None, CONSUMER) or (
        request.protocol_name not in (None, protocol.name)
    ):
        raise inconsistent
    has_new_target = member.member_epoch < group.assignment_epoch
    if has_new_target and member.state is not MemberState.UNREVOKED_PARTITIONS:
        response = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        return CoordinatorDecision((), response, [join_timer(group, member)])
    owned = {topic_id: frozenset(each) for topic_id, each in member.assigned.items()}
    response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=write_assignment(owned, version_of(protocol.metadata), context.image),
    )
    return CoordinatorDecision((), response, on_synced(group, member, context))


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


def leave(
    request: LeaveGroupRequest, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> CoordinatorDecision[LeaveGroupResponse]:
    """Removes members of either protocol: administrators use it as well."""
    group = consumer_group(request.group_id, groups)
    identities = members_of(request, context)
    leaving: dict[str, ConsumerMember] = {}
    codes = []
    for identity in identities:
        code = ErrorCode.NONE
        try:
            member = _find(group, identity)
            leaving[member.member_id] = member
        except KafkaError as error:
            code = error.code
        codes.append(code)
    response = leave_response(identities, codes, context)
    if not leaving:
        return CoordinatorDecision((), response)
    left = [log_line(events.member_left, group.group_id, member) for member in leaving.values()]
    reason = (
        f"member {next(iter(leaving))} left"
        if len(leaving) == 1
        else f"{len(leaving)} members left"
    )
    return sessions.fence(list(leaving.values()), group, reason, response, context, *left)


def _find(group: ConsumerGroup, identity: MemberIdentity) -> ConsumerMember:
    if identity.group_instance_id is None or identity.member_id:
        return existing_member(group, identity.member_id, identity.group_instance_id)
    member = group.static_member(identity.group_instance_id)
    if member is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Group {group.group_id} has no instance id {identity.group_instance_id}.",
        )
    return member
