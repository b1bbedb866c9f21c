"""The responses to JoinGroup (key 11), SyncGroup (key 14) and DescribeGroups (key 15).

DescribeGroups says of a group that does not exist that it is dead; from v6 on that is an error as
well.
"""

from typing import TYPE_CHECKING

from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.member import ClassicMember
from barnabas.coordinator.groups.context import GroupRequestContext
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import (
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupResponse,
)
from barnabas.wire.messages.groups import DescribedGroup, DescribedGroupMember

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


FIRST_VERSION_WITH_ERROR_MESSAGES = 6


def join_response(
    group: ClassicGroup,
    member_id: str,
    members: list[JoinGroupResponseMember],
    *,
    leader: str | None = None,
    skip_assignment: bool = False,
) -> JoinGroupResponse:
    """The member is in the current generation. `leader` is reported instead of the real one."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol or "",
        leader=leader or group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    )


def rejoin_response(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """The same for a member that retries: the leader alone gets the members."""
    return join_response(group, member_id, members_of(group) if group.leader == member_id else [])


def join_error(code: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def members_of(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """Returns all members with their metadata, for the leader."""
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            metadata=member.metadata(group.protocol),
        )
        for member in group.members.values()
    ]


def sync_response(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=member.assignment,
    )


def sync_error(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)


def describe(
    group_id: str, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> DescribedGroup:
    group = groups.by_id.get(group_id)
    if not isinstance(group, ClassicGroup):
        return _not_found(group_id, context, exists=group is not None)
    # The protocol and the members' metadata are valid in a stable group only.
    protocol = group.protocol if group.state is ClassicState.STABLE else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(protocol),
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def _not_found(group_id: str, context: GroupRequestContext, *, exists: bool) -> DescribedGroup:
    group = DescribedGroup(group_id=group_id, group_state=ClassicState.DEAD)
    if context.client.api_version >= FIRST_VERSION_WITH_ERROR_MESSAGES:
        group.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        reason = "is not a classic group" if exists else "not found"
        group.error_message = f"Group {group_id} {reason}."
    return group
