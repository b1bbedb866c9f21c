"""JoinGroup (key 11): become a member of a classic group, and learn which member leads it.

The response waits for the next generation. v0 one timeout for session and rebalance; v4 a dynamic
member gets its id first and joins with it (KIP-394); v5 static members (KIP-345); v9 a static
leader that comes back need not assign (KIP-814).
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from barnabas.coordinator.decision import CoordinatorDecision
from barnabas.coordinator.groups.classic import rebalance
from barnabas.coordinator.groups.classic.group import ClassicGroup, ClassicState
from barnabas.coordinator.groups.classic.member import ClassicMember, JoinOptions, join_options_of
from barnabas.coordinator.groups.classic.records import group_record
from barnabas.coordinator.groups.classic.responses import join_error, rejoin_response
from barnabas.coordinator.groups.classic.static_members import replace_static_member
from barnabas.coordinator.groups.context import GroupRequestContext
from barnabas.coordinator.groups.group import Group
from barnabas.coordinator.pending_response import PendingResponse
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.classic_groups import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from barnabas.coordinator.groups.state import GroupCoordinatorState

FIRST_VERSION_WITH_REQUIRED_IDS = 4
FIRST_VERSION_WITH_NULL_PROTOCOL = 7

NEW_MEMBER_TIMEOUT_MS = 5 * 60 * 1000
"""How long a new member waits for its first generation. It cannot send heartbeats, and its client
may have disconnected: a client that is still there joins again."""


def join(
    request: JoinGroupRequest, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> CoordinatorDecision[JoinGroupResponse]:
    """Decides for a group that is classic or does not exist; one of another type must be empty."""
    decision = _decide(request, groups, context)
    if context.client.api_version >= FIRST_VERSION_WITH_NULL_PROTOCOL:
        return decision
    response = decision.response
    if isinstance(response, PendingResponse):
        return replace(decision, response=response.map(_without_null))
    return replace(decision, response=_without_null(response))


def _without_null(response: JoinGroupResponse) -> JoinGroupResponse:
    """Old versions have no null protocol."""
    response.protocol_name = response.protocol_name or ""
    return response


def _decide(
    request: JoinGroupRequest, groups: "GroupCoordinatorState", context: GroupRequestContext
) -> CoordinatorDecision[JoinGroupResponse]:
    try:
        check_request(request, context)
        existing = groups.by_id.get(request.group_id)
        if isinstance(existing, ClassicGroup):
            return _join(request, existing, groups, context)
        if request.member_id:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"There is no group {request.group_id}: join it without a member id.",
            )
        group = ClassicGroup(request.group_id, context.now_ms)
        decision = _join(request, group, groups, context)
        return _create_group(group, existing, decision, groups)
    except KafkaError as error:
        return CoordinatorDecision((), join_error(error.code, request.member_id))


def check_request(request: JoinGroupRequest, context: GroupRequestContext) -> None:
    """Raises KafkaError if the request is not valid, whatever the type of the group is."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "A group to join needs a name.")
    min_ms = context.settings.broker("group.min.session.timeout.ms")
    max_ms = context.settings.broker("group.max.session.timeout.ms")
    if not min_ms <= request.session_timeout_ms <= max_ms:
        raise KafkaError(
            ErrorCode.INVALID_SESSION_TIMEOUT,
            f"A session timeout of {request.session_timeout_ms} ms is not between {min_ms} "
            f"(group.min.session.timeout.ms) and {max_ms} (group.max.session.timeout.ms).",
        )


def _join(
    request: JoinGroupRequest,
    group: ClassicGroup,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> CoordinatorDecision[JoinGroupResponse]:
    group.check_alive()
    if not _has_room(group, request.member_id, context):
        return _reject(request.member_id, group, groups, context)
    options = join_options_of(request, context.client.api_version)
    if not group.supports(request.protocol_type, options.protocols):
        raise KafkaError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"{request.protocol_type!r} {list(options.protocols)} has nothing in common with what "
            f"the members of group {group.group_id} offer.",
        )
    if not request.member_id:
        return _join_without_id(request, options, group, groups, context)
    if request.member_id in group.pending and request.group_instance_id is None:
        return _add(request.member_id, request, options, group, groups, context)
    group.check_member(request.member_id, request.group_instance_id)
    member = group.members[request.member_id]
    return _rejoin(member, request, options, group, groups, context)


def _has_room(group: ClassicGroup, member_id: str, context: GroupRequestContext) -> bool:
    max_size = context.settings.broker("group.max.size")
    member = group.members.get(member_id)
    match group.state:
        case ClassicState.EMPTY:
            return True
        case ClassicState.PREPARING_REBALANCE:
            # If the group is over a limit that was lowered, the first to join again stay.
            has_joined = member is not None and member.pending_join is not None
            return has_joined or group.pending_join_count < max_size
        case _:
            return member is not None or len(group.members) < max_size


def _reject(
    member_id: str,
    group: ClassicGroup,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> CoordinatorDecision[JoinGroupResponse]:
    """The group is full. Its members no longer wait for this one."""
    rebalance.remove_member(group, member_id, groups)
    records: rebalance.Records = []
    if group.state is ClassicState.PREPARING_REBALANCE:
        records = rebalance.proceed(
            group, f"the group is full without {member_id}", groups, context
        )
    return CoordinatorDecision(
        records, join_error(ErrorCode.GROUP_MAX_SIZE_REACHED, ""), is_replayed=False
    )


def _join_without_id(
    request: JoinGroupRequest,
    options: JoinOptions,
    group: ClassicGroup,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> CoordinatorDecision[JoinGroupResponse]:
    client, instance_id = context.client, request.group_instance_id
    member_id = context.new_classic_member_id(
        client.client_id if instance_id is None else instance_id
    )
    if instance_id is not None and instance_id in group.static_members:
        member = group.members[group.static_members[instance_id]]
        return replace_static_member(member, member_id, options, group, groups, context)
    if instance_id is None and client.api_version >= FIRST_VERSION_WITH_REQUIRED_IDS:
        group.pending.add(member_id)
        groups.timers.start(rebalance.member_timer(group, member_id, options.session_timeout_ms))
        return CoordinatorDecision((), join_error(ErrorCode.MEMBER_ID_REQUIRED, member_id))
    return _add(member_id, request, options, group, groups, context)


def _add(
    member_id: str,
    request: JoinGroupRequest,
    options: JoinOptions,
    group: ClassicGroup,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> CoordinatorDecision[JoinGroupResponse]:
    client = context.client
    member = ClassicMember(
        member_id, request.group_instance_id, client.client_id, client.host, *options, is_new=True
    )
    group.add(member, request.protocol_type)
    group.has_new_members = True
    groups.timers.start(rebalance.member_timer(group, member_id, NEW_MEMBER_TIMEOUT_MS))
    return _park(member, f"adding new member {member_id}", request, group, groups, context)


def _rejoin(
    member: ClassicMember,
    request: JoinGroupRequest,
    options: JoinOptions,
    group: ClassicGroup,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> CoordinatorDecision[JoinGroupResponse]:
    has_changed = not member.has_protocols(options.protocols)
    match group.state:
        case ClassicState.COMPLETING_REBALANCE:
            # The response of this generation may have been lost.
            stays = not has_changed
        case ClassicState.STABLE:
            # A leader may have other reasons to rebalance, such as topics that changed.
            stays = not has_changed and group.leader != member.member_id
        case _:
            stays = False
    if stays:
        timer = rebalance.session_timer(group, member)
        return CoordinatorDecision((), rejoin_response(group, member.member_id), [timer])
    group.change_options(member, options)
    reason = f"updating metadata for member {member.member_id}"
    return _park(member, reason, request, group, groups, context)


def _park(
    member: ClassicMember,
    reason: str,
    request: JoinGroupRequest,
    group: ClassicGroup,
    groups: "GroupCoordinatorState",
    context: GroupRequestContext,
) -> CoordinatorDecision[JoinGroupResponse]:
    """Has the member wait for the next generation, which this join may begin or complete."""
    response = group.park(member)
    if request.reason:
        reason = f"{reason}; client reason: {request.reason[:255]}"
    records = rebalance.proceed(group, reason, groups, context)
    return CoordinatorDecision(records, response, is_replayed=False)


def _create_group(
    group: ClassicGroup,
    replaced: Group | None,
    decision: CoordinatorDecision[JoinGroupResponse],
    groups: "GroupCoordinatorState",
) -> CoordinatorDecision[JoinGroupResponse]:
    """Creates a group, also in the log. It replaces an empty group of another type."""
    groups.by_id[group.group_id] = group
    empty = group_record(ClassicGroup(group.group_id, group.state_since_ms))
    records = [empty] if replaced is None else [*replaced.tombstones(), empty]

    def on_committed(error: KafkaError | None) -> None:
        if error is None or group.generation or groups.by_id.get(group.group_id) is not group:
            return  # it was written, or a later record of it was
        rebalance.dissolve(group, error.code, groups)
        if replaced is None:
            del groups.by_id[group.group_id]
        else:
            groups.by_id[group.group_id] = replaced

    return replace(decision, records=records, is_replayed=False, on_committed=on_committed)
