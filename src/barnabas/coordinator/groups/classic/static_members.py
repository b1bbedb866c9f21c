"""A static member that joins again without its member id (KIP-345): it keeps its assignment.

The member that had the instance id before is fenced. If the group is stable and would select the
same protocol, the other members do not rebalance.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.groups.classic import rebalance
from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.member import ClassicMember, JoinOptions
from barnabas.coordinator.groups.classic.records import group_record
from barnabas.coordinator.groups.classic.responses import join_error, join_response, members_of
from barnabas.coordinator.groups.context import GroupRequestContext
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.classic_groups import JoinGroupResponse

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

FIRST_VERSION_THAT_SKIPS_ASSIGNMENT = 9


def replace_static_member(
    member: ClassicMember,
    member_id: str,
    options: JoinOptions,
    group: ClassicGroup,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> CoordinatorDecision[JoinGroupResponse]:
    """Gives a static member the new `member_id`."""
    former = replace(member)
    former_leader = group.leader
    response = _rename(member, member_id, options, group, groups)
    if group.state is ClassicState.STABLE and group.elect_protocol() == group.protocol:
        decision = _keep_generation(member, former, former_leader, response, group, groups, context)
    else:
        reason = f"static member {member.instance_id} is replaced by {member_id}"
        records = rebalance.proceed(group, reason, groups, context)
        decision = CoordinatorDecision(records, response, is_replayed=False)
    rebalance.fail_pending(former, ErrorCode.FENCED_INSTANCE_ID)
    return decision


def _rename(
    member: ClassicMember,
    member_id: str,
    options: JoinOptions,
    group: ClassicGroup,
    groups: "GroupCoordinatorState",
) -> PendingResponse[JoinGroupResponse]:
    rebalance.cancel_session(group, member.member_id, groups)
    group.unpark(member)
    member.pending_sync = None
    member.is_new = False
    group.rename(member, member_id)
    group.change_options(member, options)
    groups.timers.start(rebalance.session_timer(group, member))
    return group.park(member)


def _keep_generation(
    member: ClassicMember,
    former: ClassicMember,
    former_leader: str | None,
    response: PendingResponse[JoinGroupResponse],
    group: ClassicGroup,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> CoordinatorDecision[JoinGroupResponse]:
    """Writes the new id, and responds when that is committed.

    If the group begins to rebalance meanwhile, the member has joined that rebalance, and the next
    generation writes the whole group again.
    """

    def on_committed(error: KafkaError | None) -> None:
        if group.state is not ClassicState.STABLE or member.pending_join is not response:
            return
        if error is None:
            group.unpark(member)
            response.complete(_response(member, former_leader, group, context))
            return
        rebalance.cancel_session(group, member.member_id, groups)
        group.unpark(member)
        group.rename(member, former.member_id)
        group.change_options(member, former.join_options)
        groups.timers.start(rebalance.session_timer(group, member))
        response.complete(join_error(error.code, ""))

    return CoordinatorDecision(
        [group_record(group)], response, is_replayed=False, on_committed=on_committed
    )


def _response(
    member: ClassicMember,
    former_leader: str | None,
    group: ClassicGroup,
    context: GroupRequestContext,
) -> JoinGroupResponse:
    if context.client.api_version >= FIRST_VERSION_THAT_SKIPS_ASSIGNMENT:
        is_leader = group.leader == member.member_id
        members = members_of(group) if is_leader else []
        return join_response(group, member.member_id, members, skip_assignment=is_leader)
    # A leader would compute an assignment that no other member gets. So the member gets the id of
    # the former leader, and takes itself for a follower.
    return join_response(group, member.member_id, [], leader=former_leader)
