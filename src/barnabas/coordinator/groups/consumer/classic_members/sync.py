"""SyncGroup (key 14) to a consumer group: tell a member what it may consume.

v3 static members; v5 protocol type and name, which then are required.
"""

from typing import TYPE_CHECKING

from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.classic.group import CONSUMER
from barnabas.coordinator.groups.classic.sync import FIRST_VERSION_WITH_PROTOCOL
from barnabas.coordinator.groups.context import GroupClient
from barnabas.coordinator.groups.consumer.classic_members import timeouts
from barnabas.coordinator.groups.consumer.embedded_protocol import version_of, write_assignment
from barnabas.coordinator.groups.consumer.heartbeat import known_group
from barnabas.coordinator.groups.consumer.member import MemberState
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState


def sync(
    groups: "GroupCoordinatorState", request: SyncGroupRequest, client: GroupClient
) -> Decision[SyncGroupResponse]:
    group = known_group(groups, request.group_id)
    _check_protocol_named(request, client)
    member = timeouts.speaker(group, request)
    assert member.classic is not None
    protocol = member.classic.supported_protocols[0]
    if request.protocol_type not in (None, CONSUMER) or (
        request.protocol_name not in (None, protocol.name)
    ):
        raise _inconsistent(request)
    has_new_target = member.member_epoch < group.assignment_epoch
    if has_new_target and member.state is not MemberState.UNREVOKED_PARTITIONS:
        timeouts.await_join(groups, group, member)
        raise KafkaError(
            ErrorCode.REBALANCE_IN_PROGRESS,
            f"Group {group.group_id} rebalances: member {member.member_id} has to join again.",
        )
    timeouts.has_synced(groups, group, member)
    owned = {topic_id: frozenset(each) for topic_id, each in member.assigned.items()}
    return Decision(
        SyncGroupResponse(
            protocol_type=request.protocol_type,
            protocol_name=request.protocol_name,
            assignment=write_assignment(owned, version_of(protocol.metadata), groups.image),
        )
    )


def _check_protocol_named(request: SyncGroupRequest, client: GroupClient) -> None:
    if client.api_version >= FIRST_VERSION_WITH_PROTOCOL and (
        request.protocol_type is None or request.protocol_name is None
    ):
        raise _inconsistent(request)


def _inconsistent(request: SyncGroupRequest) -> KafkaError:
    return KafkaError(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        f"Member {request.member_id} of group {request.group_id} did not join by "
        f"{request.protocol_type} {request.protocol_name}.",
    )
