"""A static member that comes back without its id (KIP-345): it takes the place it had.

Whoever was there under the same instance id is fenced. If the group is stable and would choose
the same protocol, nobody else hears of it.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.classic import rebalance
from barnabas.coordinator.groups.classic.rebalance import dismiss, session_key
from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.member import ClassicMember, Terms
from barnabas.coordinator.groups.classic.records import group_record
from barnabas.coordinator.groups.classic.responses import joined, not_joined, roster
from barnabas.coordinator.groups.context import GroupClient
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupResponse

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

FIRST_VERSION_THAT_SKIPS_ASSIGNMENT = 9


def come_back(
    groups: "GroupCoordinatorState",
    group: ClassicGroup,
    member: ClassicMember,
    member_id: str,
    terms: Terms,
    client: GroupClient,
) -> Decision[JoinGroupResponse]:
    """Put one with the new `member_id` into the place of a static member."""
    former = replace(member)
    former_leader = group.leader
    answer = _take_place(groups, group, member, member_id, terms)
    if group.state is ClassicState.STABLE and group.elect_protocol() == group.protocol:
        decision = _keep_generation(groups, group, member, former, former_leader, answer, client)
    else:
        reason = f"static member {member.instance_id} is {member_id} now"
        records = rebalance.proceed(groups, group, reason)
        decision = Decision(answer, records, is_replayed=False)
    dismiss(former, ErrorCode.FENCED_INSTANCE_ID)
    return decision


def _take_place(
    groups: "GroupCoordinatorState", group: ClassicGroup, member: ClassicMember, member_id: str, terms: Terms
) -> PendingResponse[JoinGroupResponse]:
    groups.timers.cancel(session_key(group, member.member_id))
    group.unpark(member)
    member.awaiting_sync = None
    member.is_new = False
    group.rename(member, member_id)
    group.change_terms(member, terms)
    rebalance.restart_session(groups, group, member)
    return group.park(member)


def _keep_generation(
    groups: "GroupCoordinatorState",
    group: ClassicGroup,
    member: ClassicMember,
    former: ClassicMember,
    former_leader: str | None,
    answer: PendingResponse[JoinGroupResponse],
    client: GroupClient,
) -> Decision[JoinGroupResponse]:
    """Write the new id down, and answer when that is committed.

    Should the group begin to rebalance meanwhile, then the member has joined that, and the next
    generation has everything written anew.
    """

    def is_waiting() -> bool:
        return group.state is ClassicState.STABLE and member.awaiting_join is answer

    def confirm() -> None:
        if not is_waiting():
            return
        group.unpark(member)
        if client.api_version >= FIRST_VERSION_THAT_SKIPS_ASSIGNMENT:
            leads = group.leader == member.member_id
            members = roster(group) if leads else []
            response = joined(group, member.member_id, members, skip_assignment=leads)
        else:
            # Told that it leads it would assign, and members would be given what they never hear
            # of. So it is told of the leader by its former id.
            response = joined(group, member.member_id, [], leader=former_leader)
        answer.complete(response)

    def revert(failure: KafkaError) -> None:
        if not is_waiting():
            return
        groups.timers.cancel(session_key(group, member.member_id))
        group.unpark(member)
        group.rename(member, former.member_id)
        group.change_terms(member, former.terms)
        rebalance.restart_session(groups, group, member)
        answer.complete(not_joined(failure.code, ""))

    return Decision(
        answer, [group_record(group)], committed=confirm, refused=revert, is_replayed=False
    )
