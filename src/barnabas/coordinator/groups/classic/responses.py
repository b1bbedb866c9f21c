"""The responses to JoinGroup and SyncGroup."""

from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.classic.member import ClassicMember
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.classic_groups import (
    JoinGroupResponse,
    JoinGroupResponseMember,
    SyncGroupResponse,
)


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
