"""Heartbeat (key 12): tell the coordinator that a member of a classic group lives.

v3 static members.
"""

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.classic import rebalance
from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.context import GroupClient
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.wire.messages.sync_group import SyncGroupRequest

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def heartbeat(
    groups: "GroupCoordinatorState", request: HeartbeatRequest, client: GroupClient
) -> Decision[HeartbeatResponse]:
    group = group_of(groups, request)
    rebalance.restart_session(groups, group, group.members[request.member_id])
    if group.state is ClassicState.PREPARING_REBALANCE:
        return Decision(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
    return Decision(HeartbeatResponse())


def group_of(groups: "GroupCoordinatorState", request: HeartbeatRequest | SyncGroupRequest) -> ClassicGroup:
    """The group; KafkaError unless who speaks is a member of it, in its present generation."""
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
