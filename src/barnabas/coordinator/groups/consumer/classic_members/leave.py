"""LeaveGroup (key 13) to a consumer group.

v3 several members; a static one may be named by its instance id alone.
"""

import logging
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.groups.classic.leave import leave_response, members_of
from barnabas.coordinator.groups.consumer import sessions
from barnabas.coordinator.groups.consumer.group import ConsumerGroup
from barnabas.coordinator.groups.consumer.member import ConsumerMember
from barnabas.coordinator.groups.consumer.membership import consumer_group, existing_member
from barnabas.coordinator.groups.context import GroupRequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.classic_groups import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

log = logging.getLogger(__name__)


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
    log.info("[GroupId %s] Members %s left the group.", group.group_id, ", ".join(leaving))
    return sessions.fence(list(leaving.values()), group, response, context)


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
