"""LeaveGroup (key 13) to a consumer group.

v3 several members; a static one may be named by its instance id alone.
"""

import logging
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.classic.leave import FIRST_VERSION_WITH_MEMBERS
from barnabas.coordinator.groups.context import GroupClient
from barnabas.coordinator.groups.consumer import sessions
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.heartbeat import known_group
from barnabas.coordinator.groups.consumer.membership import known_member
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

log = logging.getLogger(__name__)


def leave(
    groups: "GroupCoordinatorState", request: LeaveGroupRequest, client: GroupClient
) -> Decision[LeaveGroupResponse]:
    """Members of either protocol: it is also how administrators remove them."""
    group = known_group(groups, request.group_id)
    takes_several = client.api_version >= FIRST_VERSION_WITH_MEMBERS
    named = request.members if takes_several else [MemberIdentity(member_id=request.member_id)]
    leaving: dict[str, ConsumerMember] = {}
    told = []
    for each in named:
        code = ErrorCode.NONE
        try:
            member = _leaver(group, each)
            leaving[member.member_id] = member
        except KafkaError as error:
            code = error.code
        told.append(
            MemberResponse(
                member_id=each.member_id, group_instance_id=each.group_instance_id, error_code=code
            )
        )
    if takes_several:
        response = LeaveGroupResponse(members=told)
    else:
        response = LeaveGroupResponse(error_code=told[0].error_code)
    if not leaving:
        return Decision(response)
    log.info("group %s: %s leave", group.group_id, ", ".join(leaving))
    return sessions.fence(groups, group, list(leaving.values()), response)


def _leaver(group: ConsumerGroup, named: MemberIdentity) -> ConsumerMember:
    if named.group_instance_id is None or named.member_id:
        return known_member(group, named.member_id, named.group_instance_id)
    member = group.static_member(named.group_instance_id)
    if member is None:
        raise KafkaError(
            ErrorCode.UNKNOWN_MEMBER_ID,
            f"Group {group.group_id} has no instance id {named.group_instance_id}.",
        )
    return member
