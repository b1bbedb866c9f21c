"""SyncGroup (key 14) and Heartbeat (key 12) of the members of a classic group.

By SyncGroup the leader sends the assignment of every member. The response waits until the
assignment is committed. v3 static members; v5 protocol type and name, which are then required.
Heartbeat keeps a member alive. v3 static members.
"""

import logging
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.groups.classic import rebalance
from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.rebalance import session_timer
from barnabas.coordinator.groups.classic.records import group_record
from barnabas.coordinator.groups.classic.responses import sync_response
from barnabas.coordinator.groups.context import GroupRequestContext
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

FIRST_VERSION_WITH_PROTOCOL = 5

log = logging.getLogger(__name__)


def sync(
    request: SyncGroupRequest, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> CoordinatorDecision[SyncGroupResponse]:
    group = _group_to_sync(request, groups, context)
    match group.state:
        case ClassicState.COMPLETING_REBALANCE:
            return _await_assignment(request, group, groups, context)
        case ClassicState.STABLE:
            member = group.members[request.member_id]
            rebalance.mark_synced(group, member.member_id, groups)
            timer = rebalance.session_timer(group, member)
            return CoordinatorDecision((), sync_response(group, member), [timer])
        case _:
            raise KafkaError(
                ErrorCode.REBALANCE_IN_PROGRESS,
                f"Group {group.group_id} is rebalancing: member {request.member_id} has to join.",
            )


def check_protocol_is_named(
    request: SyncGroupRequest, context: GroupRequestContext, error: KafkaError
) -> None:
    if context.client.api_version >= FIRST_VERSION_WITH_PROTOCOL and (
        request.protocol_type is None or request.protocol_name is None
    ):
        raise error


def _group_to_sync(
    request: SyncGroupRequest, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> ClassicGroup:
    """Returns the group. Raises KafkaError if the member may not sync with it."""
    inconsistent = KafkaError(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        f"Group {request.group_id} does not assign by {request.protocol_type} "
        f"{request.protocol_name}: join it again.",
    )
    check_protocol_is_named(request, context, inconsistent)
    group = group_of_member(request, groups)
    if request.protocol_type not in (None, group.protocol_type) or (
        request.protocol_name not in (None, group.protocol)
    ):
        raise inconsistent
    return group


def _await_assignment(
    request: SyncGroupRequest,
    group: ClassicGroup,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> CoordinatorDecision[SyncGroupResponse]:
    member = group.members[request.member_id]
    if member.pending_sync is not None:
        return CoordinatorDecision((), member.pending_sync)  # a retry gets the same response
    response = member.pending_sync = PendingResponse()
    rebalance.mark_synced(group, request.member_id, groups)
    if group.leader != request.member_id:
        return CoordinatorDecision((), response)

    log.info(
        "Assignment received from leader %s for group %s for generation %d. "
        "The group has %d members, %d of which are static.",
        request.member_id,
        group.group_id,
        group.generation,
        len(group.members),
        len(group.static_members),
    )
    generation = group.generation
    assignments = {each.member_id: each.assignment for each in request.assignments}

    def on_committed(error: KafkaError | None) -> None:
        is_current = (
            group.state is ClassicState.COMPLETING_REBALANCE and group.generation == generation
        )
        if not is_current:
            return
        if error is None:
            _install(assignments, group, groups, context)
        else:
            rebalance.cancel_syncs(group, error.code, groups)
            reason = f"the assignment cannot be written: {error}"
            rebalance.prepare(group, reason, groups, context)

    return CoordinatorDecision(
        [group_record(group, assignments)], response, is_replayed=False, on_committed=on_committed
    )


def _install(
    assignments: dict[str, bytes],
    group: ClassicGroup,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> None:
    """The leader's assignment is committed: gives every member its part."""
    group.transition(ClassicState.STABLE, context.now_ms)
    pending = []
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
        if member.pending_sync is not None:
            pending.append((member.pending_sync, sync_response(group, member)))
            member.pending_sync = None
            groups.timers.start(rebalance.session_timer(group, member))
    for response, value in pending:
        response.complete(value)


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


def refresh_session(
    group_id: str,
    generation: int,
    member_id: str,
    instance_id: str | None,
    groups: "GroupCoordinatorState",
) -> bool:
    """Does what a heartbeat to a stable group does, without a request and its context.

    Returns False, and does nothing, if the group is not stable, or has no such member in this
    generation: `heartbeat` finds the response.
    """
    group = groups.by_id.get(group_id)
    if (
        not isinstance(group, ClassicGroup)
        or group.state is not ClassicState.STABLE
        or group.generation != generation
        or not group_id
    ):
        return False
    member = group.members.get(member_id)
    if member is None:
        return False
    if instance_id is not None and group.static_members.get(instance_id) != member_id:
        return False
    return groups.timers.restart(
        rebalance.session_key(group, member.member_id), member.session_timeout_ms
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
