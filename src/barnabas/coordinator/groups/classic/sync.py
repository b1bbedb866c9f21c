"""SyncGroup (key 14): the leader of a classic group hands in what each member receives.

The answer waits until the assignment is in the log. v3 static members; v5 protocol type and name,
which then are required.
"""

from typing import TYPE_CHECKING

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.classic import rebalance
from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.heartbeat import group_of
from barnabas.coordinator.groups.classic.records import group_record
from barnabas.coordinator.groups.classic.responses import synced
from barnabas.coordinator.groups.context import GroupClient
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

FIRST_VERSION_WITH_PROTOCOL = 5


def sync(
    groups: "GroupCoordinatorState", request: SyncGroupRequest, client: GroupClient
) -> Decision[SyncGroupResponse]:
    group = _group_to_sync_with(groups, request, client)
    match group.state:
        case ClassicState.COMPLETING_REBALANCE:
            return _await_assignment(groups, group, request)
        case ClassicState.STABLE:
            member = group.members[request.member_id]
            rebalance.mark_synced(groups, group, member.member_id)
            rebalance.restart_session(groups, group, member)
            return Decision(synced(group, member))
        case _:
            raise KafkaError(
                ErrorCode.REBALANCE_IN_PROGRESS,
                f"Group {group.group_id} is rebalancing: member {request.member_id} has to join.",
            )


def _group_to_sync_with(
    groups: "GroupCoordinatorState", request: SyncGroupRequest, client: GroupClient
) -> ClassicGroup:
    """The group, if this member may sync with it."""
    if client.api_version >= FIRST_VERSION_WITH_PROTOCOL and (
        request.protocol_type is None or request.protocol_name is None
    ):
        raise _inconsistent(request)
    group = group_of(groups, request)
    if request.protocol_type not in (None, group.protocol_type) or (
        request.protocol_name not in (None, group.protocol)
    ):
        raise _inconsistent(request)
    return group


def _await_assignment(
    groups: "GroupCoordinatorState", group: ClassicGroup, request: SyncGroupRequest
) -> Decision[SyncGroupResponse]:
    member = group.members[request.member_id]
    if member.awaiting_sync is not None:
        return Decision(member.awaiting_sync)  # who asks twice waits for one answer
    answer = member.awaiting_sync = PendingResponse()
    rebalance.mark_synced(groups, group, request.member_id)
    if group.leader != request.member_id:
        return Decision(answer)

    generation = group.generation
    assignments = {each.member_id: each.assignment for each in request.assignments}

    def is_awaited() -> bool:
        return group.state is ClassicState.COMPLETING_REBALANCE and group.generation == generation

    def install() -> None:
        if is_awaited():
            _install(groups, group, assignments)

    def refuse(failure: KafkaError) -> None:
        if is_awaited():
            rebalance.cancel_syncs(groups, group, failure.code)
            rebalance.prepare(groups, group, f"its assignment cannot be written: {failure}")

    record = group_record(group, assignments)
    return Decision(answer, [record], committed=install, refused=refuse, is_replayed=False)


def _install(groups: "GroupCoordinatorState", group: ClassicGroup, assignments: dict[str, bytes]) -> None:
    """The leader's word is in the log: all members go by it."""
    group.move(ClassicState.STABLE, groups.now_ms())
    waiting = []
    for member in group.members.values():
        member.assignment = assignments.get(member.member_id, b"")
        if member.awaiting_sync is not None:
            waiting.append((member.awaiting_sync, synced(group, member)))
            member.awaiting_sync = None
            rebalance.restart_session(groups, group, member)
    for answer, response in waiting:
        answer.complete(response)


def _inconsistent(request: SyncGroupRequest) -> KafkaError:
    return KafkaError(
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        f"Group {request.group_id} does not assign by {request.protocol_type} "
        f"{request.protocol_name}: join it again.",
    )
