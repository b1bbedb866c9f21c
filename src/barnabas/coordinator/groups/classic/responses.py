"""What members are told in answer to JoinGroup and SyncGroup."""

from barnabas.coordinator.groups.classic.group import ClassicGroup
from barnabas.coordinator.groups.classic.member import ClassicMember
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from barnabas.wire.messages.sync_group import SyncGroupResponse


def joined(
    group: ClassicGroup,
    member_id: str,
    members: list[JoinGroupResponseMember],
    *,
    leader: str | None = None,
    skip_assignment: bool = False,
) -> JoinGroupResponse:
    """The member is in the current generation. `leader`: if it is to think so of another."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol or "",
        leader=leader or group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members,
    )


def rejoined(group: ClassicGroup, member_id: str) -> JoinGroupResponse:
    """The same, for one that asks again: what it needs depends on whether it leads."""
    return joined(group, member_id, roster(group) if group.leader == member_id else [])


def not_joined(code: ErrorCode, member_id: str) -> JoinGroupResponse:
    return JoinGroupResponse(error_code=code, member_id=member_id, protocol_name=None)


def roster(group: ClassicGroup) -> list[JoinGroupResponseMember]:
    """All members with what they tell the leader, which alone is given it."""
    return [
        JoinGroupResponseMember(
            member_id=member.member_id,
            group_instance_id=member.instance_id,
            metadata=member.metadata(group.protocol),
        )
        for member in group.members.values()
    ]


def synced(group: ClassicGroup, member: ClassicMember) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        assignment=member.assignment,
    )


def not_synced(code: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=code)
