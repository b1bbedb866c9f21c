"""LeaveGroup (key 13): members leave a classic group.

v3 several members, each with a response of its own; a static one may be named by its instance id
alone, as administrators do. v5 a reason.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.groups.classic import rebalance
from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.context import GroupRequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.classic_groups import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

FIRST_VERSION_WITH_MEMBERS = 3


def leave(
    request: LeaveGroupRequest, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> CoordinatorDecision[LeaveGroupResponse]:
    if not request.group_id:
        return CoordinatorDecision((), LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
    group = groups.by_id.get(request.group_id)
    members = members_of(request, context)
    records: rebalance.Records = []
    if isinstance(group, ClassicGroup):
        group.check_alive()
        codes = [_leave_one(member, group, groups) for member in members]
        left = [
            f"{member.member_id or member.group_instance_id} "
            f"({member.reason or 'no reason was given'})"
            for member, code in zip(members, codes, strict=True)
            if not code
        ]
        if left and not group.is_empty:
            reason = f"explicit `LeaveGroup` request for {', '.join(left)} members"
            records = rebalance.proceed(group, reason, groups, context)
    else:
        codes = [ErrorCode.UNKNOWN_MEMBER_ID for _ in members]
    return CoordinatorDecision(records, leave_response(members, codes, context), is_replayed=False)


def members_of(
    request: LeaveGroupRequest, context: GroupRequestContext
) -> Sequence[MemberIdentity]:
    if context.client.api_version >= FIRST_VERSION_WITH_MEMBERS:
        return request.members
    return [MemberIdentity(member_id=request.member_id)]


def leave_response(
    members: Sequence[MemberIdentity], codes: Sequence[ErrorCode], context: GroupRequestContext
) -> LeaveGroupResponse:
    if context.client.api_version < FIRST_VERSION_WITH_MEMBERS:
        return LeaveGroupResponse(error_code=codes[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                error_code=code,
            )
            for member, code in zip(members, codes, strict=True)
        ]
    )


def _leave_one(
    leaving: MemberIdentity, group: ClassicGroup, groups: "GroupCoordinatorState"
) -> ErrorCode:
    """Removes one member, before the group rebalances without it."""
    member_id = leaving.member_id
    if not member_id:
        if leaving.group_instance_id not in group.static_members:
            return ErrorCode.UNKNOWN_MEMBER_ID
        member_id = group.static_members[leaving.group_instance_id]
    elif member_id not in group.pending:
        try:
            group.check_member(member_id, leaving.group_instance_id)
        except KafkaError as error:
            return error.code
    rebalance.remove_member(group, member_id, groups)
    return ErrorCode.NONE
