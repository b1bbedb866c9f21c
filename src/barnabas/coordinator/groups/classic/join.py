"""JoinGroup (key 11): become a member of a classic group, and learn who leads it.

The answer waits for the next generation. v0 one timeout for session and rebalance; v4 a dynamic
member is told its id first and joins with that (KIP-394); v5 static members (KIP-345); v9 a static
leader that comes back need not assign (KIP-814).
"""

from typing import TYPE_CHECKING

from barnabas.coordinator.pending_response import PendingResponse
from barnabas.coordinator.decision import Decision
from barnabas.coordinator.groups.classic import rebalance
from barnabas.coordinator.groups.classic.rebalance import let_go
from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.member import (
    ClassicMember,
    Terms,
    new_member_id,
    terms_of,
)
from barnabas.coordinator.groups.classic.records import group_record
from barnabas.coordinator.groups.classic.responses import not_joined, rejoined
from barnabas.coordinator.groups.classic.static_members import come_back
from barnabas.coordinator.groups.context import GroupClient
from barnabas.coordinator.groups.group import Group
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

FIRST_VERSION_WITH_REQUIRED_IDS = 4
FIRST_VERSION_WITH_NULL_PROTOCOL = 7

NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000
"""How long a new member waits for its first generation. It cannot send heartbeats, and its client
may be gone: should it still be there, it joins again."""


def join(
    groups: "GroupCoordinatorState", request: JoinGroupRequest, client: GroupClient
) -> Decision[JoinGroupResponse]:
    """Decide for a group that is classic, or not there; one of another kind has to be empty."""
    decision = _decide(groups, request, client)
    if client.api_version >= FIRST_VERSION_WITH_NULL_PROTOCOL:
        return decision
    response = decision.response
    named = response.map(_named) if isinstance(response, PendingResponse) else _named(response)
    return decision._replace(response=named)


def _named(response: JoinGroupResponse) -> JoinGroupResponse:
    """Without a null where old versions have no room for it."""
    response.protocol_name = response.protocol_name or ""
    return response


def _decide(
    groups: "GroupCoordinatorState", request: JoinGroupRequest, client: GroupClient
) -> Decision[JoinGroupResponse]:
    try:
        check_request(groups, request)
        present = groups.by_id.get(request.group_id)
        if isinstance(present, ClassicGroup):
            return _join(groups, present, request, client)
        if request.member_id:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"There is no group {request.group_id}: join it without a member id.",
            )
        group = ClassicGroup(request.group_id, groups.now_ms())
        return _found(groups, group, present, _join(groups, group, request, client))
    except KafkaError as error:
        return Decision(not_joined(error.code, request.member_id))


def check_request(groups: "GroupCoordinatorState", request: JoinGroupRequest) -> None:
    """KafkaError unless the request makes sense by itself, whatever kind of group it is for."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "A group to join needs a name.")
    shortest_ms = groups.settings.broker("group.min.session.timeout.ms")
    longest_ms = groups.settings.broker("group.max.session.timeout.ms")
    if not shortest_ms <= request.session_timeout_ms <= longest_ms:
        raise KafkaError(
            ErrorCode.INVALID_SESSION_TIMEOUT,
            f"A session timeout of {request.session_timeout_ms} ms is not between {shortest_ms} "
            f"(group.min.session.timeout.ms) and {longest_ms} (group.max.session.timeout.ms).",
        )


def _join(
    groups: "GroupCoordinatorState", group: ClassicGroup, request: JoinGroupRequest, client: GroupClient
) -> Decision[JoinGroupResponse]:
    group.check_alive()
    if not _has_room(groups, group, request.member_id):
        return _turn_away(groups, group, request.member_id)
    terms = terms_of(request, client.api_version)
    if not group.supports(request.protocol_type, terms.protocols):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"{request.protocol_type!r} {list(terms.protocols)} has nothing in common with what "
            f"the members of group {group.group_id} offer.",
        )
    if not request.member_id:
        return _join_without_id(groups, group, request, terms, client)
    if request.member_id in group.pending and request.group_instance_id is None:
        return _add(groups, group, request.member_id, request, terms, client)
    group.check_member(request.member_id, request.group_instance_id)
    return _rejoin(groups, group, group.members[request.member_id], request, terms)


def _has_room(groups: "GroupCoordinatorState", group: ClassicGroup, member_id: str) -> bool:
    most = groups.settings.broker("group.max.size")
    member = group.members.get(member_id)
    match group.state:
        case ClassicState.EMPTY:
            return True
        case ClassicState.PREPARING_REBALANCE:
            # The first to come back stay, should the group have grown over a limit set since.
            is_back = member is not None and member.awaiting_join is not None
            return is_back or group.awaiting_join_count < most
        case _:
            return member is not None or len(group.members) < most


def _turn_away(
    groups: "GroupCoordinatorState", group: ClassicGroup, member_id: str
) -> Decision[JoinGroupResponse]:
    """The group is full. Those who are in it wait no longer for this one."""
    let_go(groups, group, member_id)
    records: rebalance.Records = []
    if group.state is ClassicState.PREPARING_REBALANCE:
        records = rebalance.proceed(groups, group, f"no room for {member_id}")
    return Decision(not_joined(ErrorCode.GROUP_MAX_SIZE_REACHED, ""), records, is_replayed=False)


def _join_without_id(
    groups: "GroupCoordinatorState", group: ClassicGroup, request: JoinGroupRequest, terms: Terms, client: GroupClient
) -> Decision[JoinGroupResponse]:
    instance_id = request.group_instance_id
    member_id = new_member_id(client.client_id, instance_id)
    if instance_id is not None and instance_id in group.static_members:
        holder = group.members[group.static_members[instance_id]]
        return come_back(groups, group, holder, member_id, terms, client)
    if instance_id is None and client.api_version >= FIRST_VERSION_WITH_REQUIRED_IDS:
        group.pending.add(member_id)
        rebalance.expect(groups, group, member_id, terms.session_timeout_ms)
        return Decision(not_joined(ErrorCode.MEMBER_ID_REQUIRED, member_id))
    return _add(groups, group, member_id, request, terms, client)


def _add(
    groups: "GroupCoordinatorState",
    group: ClassicGroup,
    member_id: str,
    request: JoinGroupRequest,
    terms: Terms,
    client: GroupClient,
) -> Decision[JoinGroupResponse]:
    member = ClassicMember(
        member_id, request.group_instance_id, client.client_id, client.host, *terms, is_new=True
    )
    group.add(member, request.protocol_type)
    group.has_new_members = True
    rebalance.expect(groups, group, member_id, NEW_MEMBER_TIMEOUT_MS)
    return _park(groups, group, member, f"{member_id} joins", request)


def _rejoin(
    groups: "GroupCoordinatorState",
    group: ClassicGroup,
    member: ClassicMember,
    request: JoinGroupRequest,
    terms: Terms,
) -> Decision[JoinGroupResponse]:
    has_changed = not member.offers(terms.protocols)
    match group.state:
        case ClassicState.COMPLETING_REBALANCE:
            # It may not have heard that it is in this generation.
            stays = not has_changed
        case ClassicState.STABLE:
            # A leader may have other reasons to rebalance, such as topics that changed.
            stays = not has_changed and group.leader != member.member_id
        case _:
            stays = False
    if stays:
        rebalance.restart_session(groups, group, member)
        return Decision(rejoined(group, member.member_id))
    group.change_terms(member, terms)
    return _park(groups, group, member, f"{member.member_id} joins again", request)


def _park(
    groups: "GroupCoordinatorState",
    group: ClassicGroup,
    member: ClassicMember,
    reason: str,
    request: JoinGroupRequest,
) -> Decision[JoinGroupResponse]:
    """Wait for the next generation, which this join may begin or complete."""
    answer = group.park(member)
    if request.reason:
        reason = f"{reason} ({request.reason[:255]})"
    return Decision(answer, rebalance.proceed(groups, group, reason), is_replayed=False)


def _found(
    groups: "GroupCoordinatorState",
    group: ClassicGroup,
    present: Group | None,
    decision: Decision[JoinGroupResponse],
) -> Decision[JoinGroupResponse]:
    """Begin a group, in the log as well, in place of an empty one of another kind if there is."""
    groups.by_id[group.group_id] = group
    nobody_yet = group_record(ClassicGroup(group.group_id, group.state_since_ms))
    records = [nobody_yet] if present is None else [*present.tombstones(), nobody_yet]

    def abandon(failure: KafkaError) -> None:
        if group.generation or groups.by_id.get(group.group_id) is not group:
            return  # it has written more of itself since
        rebalance.dissolve(groups, group, failure.code)
        if present is None:
            del groups.by_id[group.group_id]
        else:
            groups.by_id[group.group_id] = present

    return decision._replace(records=records, refused=abandon, is_replayed=False)
