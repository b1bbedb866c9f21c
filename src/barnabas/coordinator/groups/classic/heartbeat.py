"""Heartbeat (key 12): a member of a classic group is alive.

v3 static members.
"""

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.rebalance import session_timer
from barnabas.coordinator.groups.context import GroupRequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    SyncGroupRequest,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def heartbeat(
    request: HeartbeatRequest, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> CoordinatorDecision[HeartbeatResponse]:
    group = group_of_member(request, groups)
    response = HeartbeatResponse()
    if group.state is ClassicState.PREPARING_REBALANCE:
        response.error_code = ErrorCode.REBALANCE_IN_PROGRESS
    return CoordinatorDecision(
        (), response, [session_timer(group, group.members[request.member_id])]
    )


def group_of_member(
    request: HeartbeatRequest | SyncGroupRequest, groups: "GroupCoordinatorState"
) -> ClassicGroup:
    """Returns the group. Raises KafkaError if the sender is not a member of its generation."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "A group to be a member of has a name.")
    group = groups.by_id.get(request.group_id)
    if not isinstance(group, ClassicGroup):
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"There is no group {request.group_id}: join it first."
        )
    group.check_alive()
    group.check_member(request.member_id, request.group_instance_id)
    group.check_generation(request.generation_id)
    return group
