"""LeaveGroup (key 13): members leave a classic group.

v3 several members, each with an answer of its own; a static one may be named by its instance id
alone, as administrators do. v5 a reason.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.classic import rebalance
from barnabas.coordinator.groups.classic.rebalance import let_go
from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.context import GroupClient
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

FIRST_VERSION_WITH_MEMBERS = 3


def leave(
    groups: "GroupCoordinatorState", request: LeaveGroupRequest, client: GroupClient
) -> Decision[LeaveGroupResponse]:
    if not request.group_id:
        return Decision(LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
    group = groups.by_id.get(request.group_id)
    takes_several = client.api_version >= FIRST_VERSION_WITH_MEMBERS
    leaving = request.members if takes_several else [MemberIdentity(member_id=request.member_id)]
    if isinstance(group, ClassicGroup):
        group.check_alive()
        codes = [_leave_one(groups, group, member) for member in leaving]
        records = _without(groups, group, leaving, codes)
    else:
        codes = [ErrorCode.UNKNOWN_MEMBER_ID for _ in leaving]
        records = []
    response = _told_each(leaving, codes) if takes_several else _told_one(codes[0])
    return Decision(response, records, is_replayed=False)


def _leave_one(groups: "GroupCoordinatorState", group: ClassicGroup, leaving: MemberIdentity) -> ErrorCode:
    """How it went. It is gone, though the others are not told yet."""
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
    let_go(groups, group, member_id)
    return ErrorCode.NONE


def _without(
    groups: "GroupCoordinatorState",
    group: ClassicGroup,
    leaving: Sequence[MemberIdentity],
    codes: Sequence[ErrorCode],
) -> rebalance.Records:
    """Have the others go on."""
    left = [
        f"{each.member_id or each.group_instance_id} leaves ({each.reason or 'no reason given'})"
        for each, code in zip(leaving, codes, strict=True)
        if not code
    ]
    if not left or group.is_empty:
        return []
    return rebalance.proceed(groups, group, ", ".join(left))


def _told_each(leaving: Sequence[MemberIdentity], codes: Sequence[ErrorCode]) -> LeaveGroupResponse:
    return LeaveGroupResponse(
        members=[
            MemberResponse(
                member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=code
            )
            for each, code in zip(leaving, codes, strict=True)
        ]
    )


def _told_one(code: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=code)
