"""SyncGroup (key 14) to a consumer group: return the partitions that a member may consume.

v3 static members; v5 protocol type and name, which are then required.
"""

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.groups.classic.group import CONSUMER
from barnabas.coordinator.groups.classic.sync import check_protocol_is_named
from barnabas.coordinator.groups.consumer.classic_members.timeouts import (
    classic_member,
    join_timer,
    on_synced,
)
from barnabas.coordinator.groups.consumer.embedded_protocol import version_of, write_assignment
from barnabas.coordinator.groups.consumer.member import MemberState
from barnabas.coordinator.groups.consumer.membership import consumer_group
from barnabas.coordinator.groups.context import GroupRequestContext
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.classic_groups import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def sync(
    request: SyncGroupRequest, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> CoordinatorDecision[SyncGroupResponse]:
    group = consumer_group(request.group_id, groups)
    inconsistent = KafkaError(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        f"Member {request.member_id} of group {request.group_id} did not join by "
        f"{request.protocol_type} {request.protocol_name}.",
    )
    check_protocol_is_named(request, context, inconsistent)
    member = classic_member(group, request)
    assert member.classic is not None
    protocol = member.classic.supported_protocols[0]
    if request.protocol_type not in (None, CONSUMER) or (
        request.protocol_name not in (None, protocol.name)
    ):
        raise inconsistent
    has_new_target = member.member_epoch < group.assignment_epoch
    if has_new_target and member.state is not MemberState.UNREVOKED_PARTITIONS:
        response = SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
        return CoordinatorDecision((), response, [join_timer(group, member)])
    owned = {topic_id: frozenset(each) for topic_id, each in member.assigned.items()}
    response = SyncGroupResponse(
        protocol_type=request.protocol_type,
        protocol_name=request.protocol_name,
        assignment=write_assignment(owned, version_of(protocol.metadata), context.image),
    )
    return CoordinatorDecision((), response, on_synced(group, member, context))
